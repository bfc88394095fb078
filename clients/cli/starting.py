"""`new`, `fork`: threads that begin with a message. Trio shell. PROTOCOL.md section 4."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from clients.cli.doors import LinkTeller, open_door
from clients.cli.doubting import doubt
from clients.cli.exits import ExitCode
from clients.cli.find import find_folder, find_thread
from clients.cli.following import begin, carry_out
from clients.cli.message import (
    NOTHING,
    PLAIN,
    Enclosed,
    Manner,
    message_parts,
    output_schema,
    request_key,
)
from clients.cli.screen import Screen
from transport.protocol.gateway import ApprovalPolicyName, SandboxName
from transport.protocol.methods import THREAD_FORK, THREAD_START
from transport.protocol.thread_acts import ThreadForkParams
from transport.protocol.threads import ThreadStartParams


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a new thread is to be; `None` leaves it to Codex's configuration."""

    name: str | None = None
    sandbox: SandboxName | None = None
    approval_policy: ApprovalPolicyName | None = None


CODEX_S: Final = Terms()


async def new(
    screen: Screen,
    text: str,
    *,
    host: str | None,
    cwd: str,
    follow: bool,
    wait_ms: int,
    key: str | None,
    terms: Terms = CODEX_S,
    manner: Manner = PLAIN,
    enclosed: Enclosed = NOTHING,
) -> ExitCode:
    """Start a thread with its first message, and follow the turn to its end."""
    schema = await output_schema(enclosed)
    async with open_door(host, on_link=LinkTeller(screen).tell) as client:
        params = ThreadStartParams(
            cwd=find_folder(client, cwd),
            input=await message_parts(screen, client, text, enclosed),
            name=terms.name,
            sandbox=terms.sandbox,
            approval_policy=terms.approval_policy,
            model=manner.model,
            effort=manner.effort,
            mode=manner.mode,
            output_schema=schema,
            request_key=key or request_key(),
            wait_ms=wait_ms,
        )
        await doubt(screen, client, manner.model, manner.effort)
        start = partial(begin, screen, client, THREAD_START, params, "new thread ")
        again = key is not None
        return await carry_out(screen, client, None, start, follow=follow, again=again)


async def fork(
    screen: Screen,
    text: str,
    *,
    host: str | None,
    thread: str,
    through: str | None,
    before: str | None,
    follow: bool,
    wait_ms: int,
    key: str | None,
    manner: Manner = PLAIN,
    enclosed: Enclosed = NOTHING,
) -> ExitCode:
    """Go on in a copy of a thread, and follow the turn to its end."""
    schema = await output_schema(enclosed)
    async with open_door(host, on_link=LinkTeller(screen).tell) as client:
        params = ThreadForkParams(
            thread_id=await find_thread(client, thread),
            through_turn_id=through,
            before_turn_id=before,
            input=await message_parts(screen, client, text, enclosed),
            model=manner.model,
            effort=manner.effort,
            mode=manner.mode,
            cwd=find_folder(client, manner.cwd) if manner.cwd else None,
            output_schema=schema,
            request_key=key or request_key(),
            wait_ms=wait_ms,
        )
        await doubt(screen, client, manner.model, manner.effort)
        start = partial(begin, screen, client, THREAD_FORK, params, "forked to ")
        again = key is not None
        return await carry_out(screen, client, None, start, follow=follow, again=again)
