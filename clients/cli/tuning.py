"""`settings`: what a thread's turns run with. Trio shell. PROTOCOL.md section 4."""

from dataclasses import astuple, dataclass

from clients.cli.doors import open_door
from clients.cli.doubting import doubt
from clients.cli.exits import ExitCode
from clients.cli.find import find_folder, find_thread
from clients.cli.lines.settings import settings_lines
from clients.cli.message import request_key
from clients.cli.screen import Screen
from transport.client import Client
from transport.protocol.gateway import ApprovalPolicyName, SandboxName
from transport.protocol.methods import THREAD_READ, THREAD_SETTINGS
from transport.protocol.threads import (
    Thread,
    ThreadReadParams,
    ThreadSettingsParams,
)
from transport.protocol.turns import ModeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be set; `None` stays as it is."""

    model: str | None = None
    effort: str | None = None
    mode: ModeName | None = None
    sandbox: SandboxName | None = None
    approval_policy: ApprovalPolicyName | None = None
    cwd: str | None = None


async def settings(
    screen: Screen,
    *,
    host: str | None,
    thread: str,
    wanted: Wanted,
    wait_ms: int,
    allow_pending: bool,
) -> ExitCode:
    """Show a thread's settings; first set what is wanted, where anything is."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread)
        if any(astuple(wanted)):
            await doubt(screen, client, wanted.model, wanted.effort)
            params = _params(client, thread_id, wanted).model_copy(
                update={"wait_ms": wait_ms, "allow_pending": allow_pending}
            )
            found = (await client.call(THREAD_SETTINGS, params)).thread
        else:
            found = await _thread(client, thread_id)
    if screen.as_json:
        screen.json({"thread": found.wire()})
    screen.lines(settings_lines(found))
    return ExitCode.OK


def _params(client: Client, thread_id: str, wanted: Wanted) -> ThreadSettingsParams:
    return ThreadSettingsParams(
        thread_id=thread_id,
        model=wanted.model,
        effort=wanted.effort,
        mode=wanted.mode,
        sandbox=wanted.sandbox,
        approval_policy=wanted.approval_policy,
        cwd=find_folder(client, wanted.cwd) if wanted.cwd else None,
        request_key=request_key(),
    )


async def _thread(client: Client, thread_id: str) -> Thread:
    params = ThreadReadParams(thread_id=thread_id, turns=0)
    return (await client.call(THREAD_READ, params)).thread
