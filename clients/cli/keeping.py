"""`fork`, `rename`, `archive`, `unarchive`, `delete`: acts on whole threads. Trio shell."""

from functools import partial
from typing import Any

from clients.cli.asking import at_terminal, confirm
from clients.cli.doors import LinkTeller, open_door
from clients.cli.exits import ExitCode, UsageProblemError
from clients.cli.find import find_thread
from clients.cli.following import follow_turn
from clients.cli.lines.threads import thread_name
from clients.cli.screen import Screen
from clients.cli.sending import request_key
from clients.cli.style import Span, dim
from transport.client import Client
from transport.protocol.methods import (
    THREAD_ARCHIVE,
    THREAD_DELETE,
    THREAD_FORK,
    THREAD_READ,
    THREAD_RENAME,
    THREAD_UNARCHIVE,
    Method,
)
from transport.protocol.thread_acts import (
    ThreadAct,
    ThreadArchiveParams,
    ThreadDeleteParams,
    ThreadForkParams,
    ThreadRenameParams,
    ThreadUnarchiveParams,
)
from transport.protocol.threads import ThreadReadParams, ThreadResult
from transport.protocol.turns import TextInput, Turn, TurnStatus


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
) -> ExitCode:
    """Go on in a copy of a thread, and follow the turn to its end."""
    async with open_door(host, on_link=LinkTeller(screen).tell) as client:
        params = ThreadForkParams(
            thread_id=await find_thread(client, thread),
            through_turn_id=through,
            before_turn_id=before,
            input=[TextInput(type="text", text=text)],
            request_key=key or request_key(),
            wait_ms=wait_ms,
        )
        start = partial(_fork, screen, client, params)
        if not follow:
            await start()
            return ExitCode.OK
        turn = await follow_turn(screen, client, None, start)
    return ExitCode.OK if turn.status is TurnStatus.COMPLETED else ExitCode.FAILED


async def _fork(
    screen: Screen, client: Client, params: ThreadForkParams
) -> tuple[str, Turn]:
    result = await client.call(THREAD_FORK, params)
    if screen.as_json:
        screen.json({"event": "answer", "result": result.wire()})
    screen.say(
        dim("forked to "),
        Span(result.thread.id, "name"),
        dim(f" as turn {result.turn.id}"),
    )
    return result.thread.id, result.turn


async def rename(
    screen: Screen, *, host: str | None, thread: str, name: str, wait_ms: int
) -> ExitCode:
    """Give a thread another title."""
    async with open_door(host) as client:
        params = ThreadRenameParams(
            thread_id=await find_thread(client, thread),
            name=name,
            request_key=request_key(),
            wait_ms=wait_ms,
        )
        return await _tell(screen, client, THREAD_RENAME, params, "is called")


async def archive(
    screen: Screen, *, host: str | None, thread: str, wait_ms: int
) -> ExitCode:
    """Move a thread out of the list."""
    async with open_door(host) as client:
        params = ThreadArchiveParams(
            thread_id=await find_thread(client, thread),
            request_key=request_key(),
            wait_ms=wait_ms,
        )
        return await _tell(screen, client, THREAD_ARCHIVE, params, "is archived:")


async def unarchive(
    screen: Screen, *, host: str | None, thread: str, wait_ms: int
) -> ExitCode:
    """Bring a thread back into the list."""
    async with open_door(host) as client:
        params = ThreadUnarchiveParams(
            thread_id=await find_thread(client, thread),
            request_key=request_key(),
            wait_ms=wait_ms,
        )
        return await _tell(screen, client, THREAD_UNARCHIVE, params, "is back:")


async def delete(
    screen: Screen, *, host: str | None, thread: str, yes: bool, wait_ms: int
) -> ExitCode:
    """Delete a thread for good, once a person has said yes to this one."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread)
        read = ThreadReadParams(thread_id=thread_id, turns=0)
        name = thread_name((await client.call(THREAD_READ, read)).thread)
        if not yes and not await _confirmed(f"{thread_id} “{name}”"):
            screen.note("Nothing was deleted.")
            return ExitCode.FAILED
        params = ThreadDeleteParams(
            thread_id=thread_id, request_key=request_key(), wait_ms=wait_ms
        )
        result = await client.call(THREAD_DELETE, params)
    if screen.as_json:
        screen.json(result.wire())
    screen.say(Span(thread_id, "name"), f" is deleted: {name}")
    return ExitCode.OK


async def _confirmed(what: str) -> bool:
    if not at_terminal():
        raise UsageProblemError(
            "there is no terminal to confirm on: add --yes where you are sure"
        )
    return await confirm(f"Delete {what} for good?")


async def _tell(
    screen: Screen,
    client: Client,
    method: Method[Any, ThreadResult],
    params: ThreadAct,
    verb: str,
) -> ExitCode:
    result = await client.call(method, params)
    if screen.as_json:
        screen.json(result.wire())
    screen.say(Span(result.thread.id, "name"), f" {verb} {thread_name(result.thread)}")
    return ExitCode.OK
