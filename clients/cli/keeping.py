"""`rename`, `archive`, `unarchive`, `delete`: acts on whole threads. Trio shell."""

from typing import Any

from clients.cli.asking import confirm_for_good
from clients.cli.doors import open_door
from clients.cli.exits import ExitCode
from clients.cli.find import find_thread
from clients.cli.lines.threads import thread_name
from clients.cli.message import request_key
from clients.cli.screen import Screen
from clients.cli.style import Span
from transport.client import Client
from transport.protocol.base import ThreadMutationParams
from transport.protocol.methods import (
    THREAD_ARCHIVE,
    THREAD_DELETE,
    THREAD_READ,
    THREAD_RENAME,
    THREAD_UNARCHIVE,
    Method,
)
from transport.protocol.thread_acts import (
    ThreadArchiveParams,
    ThreadDeleteParams,
    ThreadRenameParams,
    ThreadUnarchiveParams,
)
from transport.protocol.threads import ThreadReadParams, ThreadResult


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
    act = (THREAD_ARCHIVE, ThreadArchiveParams, "is archived:")
    return await _move(screen, act, host=host, thread=thread, wait_ms=wait_ms)


async def unarchive(
    screen: Screen, *, host: str | None, thread: str, wait_ms: int
) -> ExitCode:
    """Bring a thread back into the list."""
    act = (THREAD_UNARCHIVE, ThreadUnarchiveParams, "is back:")
    return await _move(screen, act, host=host, thread=thread, wait_ms=wait_ms)


async def _move(
    screen: Screen,
    act: tuple[Method[Any, ThreadResult], type[ThreadMutationParams], str],
    *,
    host: str | None,
    thread: str,
    wait_ms: int,
) -> ExitCode:
    method, kind, verb = act
    async with open_door(host) as client:
        params = kind(
            thread_id=await find_thread(client, thread),
            request_key=request_key(),
            wait_ms=wait_ms,
        )
        return await _tell(screen, client, method, params, verb)


async def delete(
    screen: Screen, *, host: str | None, thread: str, yes: bool, wait_ms: int
) -> ExitCode:
    """Delete a thread for good, once a person has said yes to this one."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread)
        read = ThreadReadParams(thread_id=thread_id, turns=0)
        name = thread_name((await client.call(THREAD_READ, read)).thread)
        question = f"Delete {thread_id} “{name}” for good?"
        if not yes and not await confirm_for_good(question):
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


async def _tell(
    screen: Screen,
    client: Client,
    method: Method[Any, ThreadResult],
    params: ThreadMutationParams,
    verb: str,
) -> ExitCode:
    result = await client.call(method, params)
    if screen.as_json:
        screen.json(result.wire())
    screen.say(Span(result.thread.id, "name"), f" {verb} {thread_name(result.thread)}")
    return ExitCode.OK
