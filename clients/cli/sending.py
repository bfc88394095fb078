"""`send`, `steer`, `new`, `interrupt`: turns. Trio shell. PROTOCOL.md section 4."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from clients.cli.doors import LinkTeller, open_door
from clients.cli.exits import ExitCode, FailedError
from clients.cli.find import find_folder, find_thread
from clients.cli.following import Start, follow_turn
from clients.cli.lines.threads import turn_end
from clients.cli.pictures import message
from clients.cli.screen import Screen
from clients.cli.style import Span, dim
from transport.client import Client
from transport.protocol.methods import (
    THREAD_READ,
    THREAD_START,
    TURN_INTERRUPT,
    TURN_START,
    TURN_STEER,
)
from transport.protocol.threads import ThreadReadParams, ThreadStartParams
from transport.protocol.turns import (
    ModeName,
    TextInput,
    Turn,
    TurnInterruptParams,
    TurnStartParams,
    TurnStatus,
    TurnSteerParams,
)


def request_key() -> str:
    """Return a fresh key: the Agent does one thing for it, however often it is sent."""
    return f"cli-{secrets.token_hex(16)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a message is to be taken. `delivery`: start, steer or queue; the rest holds
    for later turns too, `None` changes nothing."""

    delivery: Literal["start", "steer", "queue"] = "start"
    model: str | None = None
    effort: str | None = None
    mode: ModeName | None = None
    cwd: str | None = None


PLAIN: Final = Manner()


async def send(
    screen: Screen,
    text: str,
    *,
    host: str | None,
    thread: str,
    follow: bool,
    wait_ms: int,
    after: str | None,
    allow_pending: bool,
    key: str | None,
    images: Sequence[Path] = (),
    mentions: Sequence[str] = (),
    manner: Manner = PLAIN,
) -> ExitCode:
    """Continue a thread, and follow the turn to its end; what is queued is not followed."""
    async with open_door(host, on_link=LinkTeller(screen).tell) as client:
        thread_id = await find_thread(client, thread)
        last = after if after is not None else await _last_turn(client, thread_id)
        parts = await message(screen, client, text, images=images, mentions=mentions)
        params = TurnStartParams(
            thread_id=thread_id,
            input=parts,
            expected_last_turn_id=last,
            delivery=manner.delivery,
            allow_pending=allow_pending,
            model=manner.model,
            effort=manner.effort,
            mode=manner.mode,
            cwd=find_folder(client, manner.cwd) if manner.cwd else None,
            request_key=key or request_key(),
            wait_ms=wait_ms,
        )
        if manner.delivery == "queue":
            return await _queue(screen, client, params)
        start = partial(_send, screen, client, params)
        return await _carry_out(screen, client, thread_id, start, follow=follow)


async def new(
    screen: Screen,
    text: str,
    *,
    host: str | None,
    cwd: str,
    follow: bool,
    wait_ms: int,
    key: str | None,
    images: Sequence[Path] = (),
    mentions: Sequence[str] = (),
) -> ExitCode:
    """Start a thread with its first message, and follow the turn to its end."""
    async with open_door(host, on_link=LinkTeller(screen).tell) as client:
        parts = await message(screen, client, text, images=images, mentions=mentions)
        params = ThreadStartParams(
            cwd=find_folder(client, cwd),
            input=parts,
            request_key=key or request_key(),
            wait_ms=wait_ms,
        )
        start = partial(_new, screen, client, params)
        return await _carry_out(screen, client, None, start, follow=follow)


async def steer(
    screen: Screen,
    text: str,
    *,
    host: str | None,
    thread: str,
    turn: str | None,
    follow: bool,
    key: str | None,
) -> ExitCode:
    """Put more words into the turn that runs; it is named, so that no other gets them."""
    async with open_door(host, on_link=LinkTeller(screen).tell) as client:
        thread_id = await find_thread(client, thread)
        params = TurnSteerParams(
            thread_id=thread_id,
            turn_id=turn or await _running_turn(client, thread_id),
            input=[TextInput(type="text", text=text)],
            request_key=key or request_key(),
        )
        start = partial(_steer, screen, client, params)
        return await _carry_out(screen, client, thread_id, start, follow=follow)


async def interrupt(
    screen: Screen,
    *,
    host: str | None,
    thread: str,
    turn: str | None,
    background: bool = False,
) -> ExitCode:
    """Stop the turn that runs; it is named, so that no other one is stopped."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread)
        params = TurnInterruptParams(
            thread_id=thread_id,
            turn_id=turn or await _running_turn(client, thread_id),
            background=background,
            request_key=request_key(),
        )
        result = await client.call(TURN_INTERRUPT, params)
    if screen.as_json:
        screen.json(result.wire())
    screen.say(dim(f"── turn {result.turn.id} "), turn_end(result.turn))
    return ExitCode.OK


async def _carry_out(
    screen: Screen,
    client: Client,
    thread_id: str | None,
    start: Start,
    *,
    follow: bool,
) -> ExitCode:
    if not follow:
        await start()
        return ExitCode.OK
    turn = await follow_turn(screen, client, thread_id, start)
    return ExitCode.OK if turn.status is TurnStatus.COMPLETED else ExitCode.FAILED


async def _send(
    screen: Screen, client: Client, params: TurnStartParams
) -> tuple[str, Turn]:
    result = await client.call(TURN_START, params)
    if screen.as_json:
        screen.json({"event": "answer", "result": result.wire()})
    steered = result.delivery == "steered"
    screen.say(
        dim("put into turn of " if steered else "sent to "),
        Span(params.thread_id, "name"),
        dim(_as_turn(result.sent)),
    )
    _say_pending(screen, pending=result.pending)
    return params.thread_id, result.sent


async def _steer(
    screen: Screen, client: Client, params: TurnSteerParams
) -> tuple[str, Turn]:
    result = await client.call(TURN_STEER, params)
    if screen.as_json:
        screen.json({"event": "answer", "result": result.wire()})
    screen.say(dim(f"put into turn {result.turn.id}"))
    _say_pending(screen, pending=result.pending)
    return params.thread_id, result.turn


def _say_pending(screen: Screen, *, pending: bool | None) -> None:
    if pending:
        screen.say(dim("the model takes it with its next call"))


async def _queue(screen: Screen, client: Client, params: TurnStartParams) -> ExitCode:
    result = await client.call(TURN_START, params)
    if screen.as_json:
        screen.json({"event": "answer", "result": result.wire()})
    queued = result.queued
    assert queued is not None
    screen.say(
        dim("queued as "),
        Span(queued.queue_id, "name"),
        dim(f", number {queued.position}: it is sent when the thread is free"),
    )
    screen.note(
        "`threadgate queue list` shows what waits, `queue delete` takes it back."
    )
    return ExitCode.OK


async def _new(
    screen: Screen, client: Client, params: ThreadStartParams
) -> tuple[str, Turn]:
    result = await client.call(THREAD_START, params)
    if screen.as_json:
        screen.json({"event": "answer", "result": result.wire()})
    screen.say(
        dim("new thread "), Span(result.thread.id, "name"), dim(_as_turn(result.turn))
    )
    return result.thread.id, result.turn


def _as_turn(turn: Turn) -> str:
    return f" as turn {turn.id}"


async def _newest_turn(client: Client, thread_id: str) -> Turn | None:
    params = ThreadReadParams(thread_id=thread_id, turns=1)
    turns = (await client.call(THREAD_READ, params)).turns
    return turns[0] if turns else None


async def _last_turn(client: Client, thread_id: str) -> str | None:
    newest = await _newest_turn(client, thread_id)
    return newest.id if newest is not None else None


async def _running_turn(client: Client, thread_id: str) -> str:
    newest = await _newest_turn(client, thread_id)
    if newest is None or newest.status is not TurnStatus.IN_PROGRESS:
        raise FailedError("no turn runs in this thread: there is nothing to stop")
    return newest.id
