"""`send`, `steer`, `interrupt`: turns of threads that are there. Trio shell.

PROTOCOL.md section 4.
"""

from functools import partial

from clients.cli.doors import LinkTeller, open_door
from clients.cli.doubting import doubt
from clients.cli.exits import ExitCode, FailedError
from clients.cli.find import find_folder, find_thread
from clients.cli.following import carry_out, in_doubt
from clients.cli.lines.threads import turn_end
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
from clients.cli.style import Span, dim
from transport.client import Client
from transport.protocol.methods import (
    THREAD_READ,
    TURN_INTERRUPT,
    TURN_START,
    TURN_STEER,
)
from transport.protocol.threads import ThreadReadParams
from transport.protocol.turns import (
    Turn,
    TurnInterruptParams,
    TurnStartParams,
    TurnStatus,
    TurnSteerParams,
)


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
    manner: Manner = PLAIN,
    enclosed: Enclosed = NOTHING,
) -> ExitCode:
    """Continue a thread, and follow the turn to its end; what is queued is not followed."""
    schema = await output_schema(enclosed)
    async with open_door(host, on_link=LinkTeller(screen).tell) as client:
        thread_id = await find_thread(client, thread)
        last = after if after is not None else await _last_turn(client, thread_id)
        params = TurnStartParams(
            thread_id=thread_id,
            input=await message_parts(screen, client, text, enclosed),
            expected_last_turn_id=last,
            delivery=manner.delivery,
            allow_pending=allow_pending,
            model=manner.model,
            effort=manner.effort,
            mode=manner.mode,
            cwd=find_folder(client, manner.cwd) if manner.cwd else None,
            output_schema=schema,
            request_key=key or request_key(),
            wait_ms=wait_ms,
        )
        await doubt(screen, client, manner.model, manner.effort)
        if manner.delivery == "queue":
            return await _queue(screen, client, params)
        start = partial(_send, screen, client, params)
        again = key is not None
        return await carry_out(
            screen, client, thread_id, start, follow=follow, again=again
        )


async def steer(
    screen: Screen,
    text: str,
    *,
    host: str | None,
    thread: str,
    turn: str | None,
    follow: bool,
    key: str | None,
    wait_ms: int = 0,
    enclosed: Enclosed = NOTHING,
) -> ExitCode:
    """Put more words into the turn that runs; it is named, so that no other gets them."""
    async with open_door(host, on_link=LinkTeller(screen).tell) as client:
        thread_id = await find_thread(client, thread)
        params = TurnSteerParams(
            thread_id=thread_id,
            turn_id=turn or await _running_turn(client, thread_id, "`threadgate send`"),
            input=await message_parts(screen, client, text, enclosed),
            request_key=key or request_key(),
            wait_ms=wait_ms,
        )
        start = partial(_steer, screen, client, params)
        again = key is not None
        return await carry_out(
            screen, client, thread_id, start, follow=follow, again=again
        )


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
            turn_id=turn or await _running_turn(client, thread_id, None),
            background=background,
            request_key=request_key(),
        )
        result = await client.call(TURN_INTERRUPT, params)
    if screen.as_json:
        screen.json(result.wire())
    screen.say(dim(f"── turn {result.turn.id} "), turn_end(result.turn))
    return ExitCode.OK


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
        dim(f" as turn {result.sent.id}"),
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
    with in_doubt(screen):
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


async def _newest_turn(client: Client, thread_id: str) -> Turn | None:
    params = ThreadReadParams(thread_id=thread_id, turns=1)
    turns = (await client.call(THREAD_READ, params)).turns
    return turns[0] if turns else None


async def _last_turn(client: Client, thread_id: str) -> str | None:
    newest = await _newest_turn(client, thread_id)
    return newest.id if newest is not None else None


async def _running_turn(client: Client, thread_id: str, instead: str | None) -> str:
    newest = await _newest_turn(client, thread_id)
    if newest is None or newest.status is not TurnStatus.IN_PROGRESS:
        what = "there is nothing to stop" if instead is None else f"use {instead}"
        raise FailedError(f"no turn runs in this thread: {what}")
    return newest.id
