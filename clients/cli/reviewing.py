"""`review`, `compact`: turns of Codex's own making. Trio shell. PROTOCOL.md section 4."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError

from clients.cli.doors import LinkTeller, open_door
from clients.cli.exits import ExitCode, UsageProblemError
from clients.cli.find import find_thread
from clients.cli.following import begin, carry_out
from clients.cli.message import request_key
from clients.cli.screen import Screen
from transport.protocol.methods import REVIEW_START, THREAD_COMPACT
from transport.protocol.reviews import ReviewStartParams, ReviewTarget
from transport.protocol.thread_acts import ThreadCompactParams


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to review, as it was typed: one of these, or what is not committed."""

    text: str | None = None
    branch: str | None = None
    commit: str | None = None
    uncommitted: bool = False


async def review(
    screen: Screen,
    *,
    host: str | None,
    thread: str,
    wanted: Wanted,
    follow: bool,
    wait_ms: int,
    allow_pending: bool,
    key: str | None,
) -> ExitCode:
    """Have changes reviewed, and follow the review to its end."""
    target = _target(wanted)
    async with open_door(host, on_link=LinkTeller(screen).tell) as client:
        params = ReviewStartParams(
            thread_id=await find_thread(client, thread),
            target=target,
            allow_pending=allow_pending,
            request_key=key or request_key(),
            wait_ms=wait_ms,
        )
        start = partial(begin, screen, client, REVIEW_START, params, "review of ")
        again = key is not None
        return await carry_out(
            screen, client, params.thread_id, start, follow=follow, again=again
        )


async def compact(
    screen: Screen,
    *,
    host: str | None,
    thread: str,
    follow: bool,
    wait_ms: int,
    allow_pending: bool,
    key: str | None,
) -> ExitCode:
    """Have a summary take the place of what the model has read, and follow that."""
    async with open_door(host, on_link=LinkTeller(screen).tell) as client:
        params = ThreadCompactParams(
            thread_id=await find_thread(client, thread),
            allow_pending=allow_pending,
            request_key=key or request_key(),
            wait_ms=wait_ms,
        )
        start = partial(begin, screen, client, THREAD_COMPACT, params, "compacting ")
        again = key is not None
        return await carry_out(
            screen, client, params.thread_id, start, follow=follow, again=again
        )


def _target(wanted: Wanted) -> ReviewTarget:
    """Return what was typed as a target. Raises: UsageProblemError."""
    named: list[dict[str, Any]] = []
    if wanted.text is not None:
        named.append({"type": "custom", "text": wanted.text})
    if wanted.branch is not None:
        named.append({"type": "branch", "base": wanted.branch})
    if wanted.commit is not None:
        named.append({"type": "commit", "sha": wanted.commit})
    if wanted.uncommitted or not named:
        named.append({"type": "uncommitted"})
    if len(named) > 1:
        raise UsageProblemError(
            "review one thing: TEXT, --uncommitted, --branch or --commit"
        )
    try:
        return TypeAdapter[ReviewTarget](ReviewTarget).validate_python(named[0])
    except ValidationError:
        what = {"branch": "branch", "commit": "commit (4 or more hex digits)"}
        kind = what.get(named[0]["type"], "text to go by")
        raise UsageProblemError(f"that is no {kind}") from None
