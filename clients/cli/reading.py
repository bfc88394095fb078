"""`status`, `threads`, `read`, `models`, `approvals` …: what only looks. Trio shell."""

from pathlib import Path

from clients.cli.doors import open_door
from clients.cli.exits import ExitCode
from clients.cli.find import find_folder, find_thread, list_threads, pending_approvals
from clients.cli.lines.approvals import approval_lines, how_to_answer
from clients.cli.lines.capabilities import capability_table
from clients.cli.lines.gate import status_lines
from clients.cli.lines.markdown import markdown_lines
from clients.cli.lines.models import model_table
from clients.cli.lines.threads import thread_lines, thread_table
from clients.cli.paging import PAGE, list_rows
from clients.cli.pictures import save_all
from clients.cli.screen import Screen
from clients.cli.style import BLANK
from transport.client import Client
from transport.protocol.capabilities import CapabilitiesParams, ModelListParams
from transport.protocol.contents import ItemListParams
from transport.protocol.gateway import GatewayStatusParams
from transport.protocol.methods import (
    GATEWAY_CAPABILITIES,
    GATEWAY_STATUS,
    ITEM_LIST,
    MODEL_LIST,
    QUEUE_LIST,
    THREAD_READ,
    TURN_LIST,
)
from transport.protocol.queue import QueueListParams
from transport.protocol.threads import (
    ThreadListParams,
    ThreadReadParams,
    ThreadReadResult,
)
from transport.protocol.turns import Turn, TurnListParams


async def status(screen: Screen, *, host: str | None) -> ExitCode:
    """Say whether one can write, who does otherwise, what waits, what was not sent."""
    async with open_door(host) as client:
        found = await client.call(GATEWAY_STATUS, GatewayStatusParams())
        waiting = await pending_approvals(client)
        queue = await client.call(QUEUE_LIST, QueueListParams())
    if screen.as_json:
        more = {
            "approvals": [one.wire() for one in waiting],
            "queue": [one.wire() for one in queue.queue],
            "dropped": [one.wire() for one in queue.dropped],
            "device": client.opened.device.wire(),
        }
        screen.json({**found.wire(), **more})
    screen.lines(status_lines(found, waiting, screen.clock(), queue=queue))
    return ExitCode.OK


async def threads(
    screen: Screen,
    *,
    host: str | None,
    archived: bool,
    query: str | None,
    cwd: str | None,
    count: int,
) -> ExitCode:
    """List threads, newest change first."""
    async with open_door(host) as client:
        folder = find_folder(client, cwd) if cwd is not None else None
        params = ThreadListParams(archived=archived, query=query, cwd=folder)
        found = await list_threads(client, params, count=count)
    if screen.as_json:
        screen.json({"threads": [thread.wire() for thread in found]})
    screen.lines(thread_table(found, screen.clock(), width=screen.width))
    return ExitCode.OK


async def read(
    screen: Screen,
    *,
    host: str | None,
    thread: str,
    turns: int,
    full: bool,
    images: Path | None = None,
    markdown: bool = False,
) -> ExitCode:
    """Show a thread's newest turns, oldest of them first."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread)
        found = await _read_turns(client, thread_id, turns)
        if full:
            found = await _with_all_items(client, found)
        if images is not None:
            await save_all(screen, client, found.turns, images)
    if screen.as_json:
        screen.json(found.wire())
    more = found.next_cursor is not None
    told = markdown_lines if markdown else thread_lines
    screen.lines(told(found.thread, found.turns, screen.clock(), full=full, more=more))
    return ExitCode.OK


async def _read_turns(client: Client, thread_id: str, turns: int) -> ThreadReadResult:
    """Return a thread with so many turns: an Agent may give fewer at once."""
    params = ThreadReadParams(thread_id=thread_id, turns=min(turns, PAGE))
    found = await client.call(THREAD_READ, params)
    shown, cursor = list(found.turns), found.next_cursor
    while cursor is not None and len(shown) < turns:
        older = TurnListParams(
            thread_id=thread_id,
            items="full",
            cursor=cursor,
            limit=min(PAGE, turns - len(shown)),
        )
        page = await client.call(TURN_LIST, older)
        shown += page.turns
        cursor = page.next_cursor
    return found.model_copy(update={"turns": shown, "next_cursor": cursor})


async def _with_all_items(client: Client, found: ThreadReadResult) -> ThreadReadResult:
    """Return the same with the items of turns that were cut short."""
    turns: list[Turn] = []
    for turn in found.turns:
        items = turn.items
        if turn.more_items:
            items = await list_rows(
                client,
                ITEM_LIST,
                ItemListParams(thread_id=found.thread.id, turn_id=turn.id),
                lambda page: (page.items, page.next_cursor),
            )
        whole = {"items": items, "more_items": None}
        turns.append(turn.model_copy(update=whole))
    return found.model_copy(update={"turns": turns})


async def capabilities(screen: Screen, *, host: str | None) -> ExitCode:
    """List what the workstation's Codex can do."""
    async with open_door(host) as client:
        found = await client.call(GATEWAY_CAPABILITIES, CapabilitiesParams())
    if screen.as_json:
        screen.json(found.wire())
    screen.lines(capability_table(found.rows, width=screen.width))
    return ExitCode.OK


async def models(screen: Screen, *, host: str | None) -> ExitCode:
    """List the models that the workstation's Codex offers."""
    async with open_door(host) as client:
        found = (await client.call(MODEL_LIST, ModelListParams())).models
    if screen.as_json:
        screen.json({"models": [model.wire() for model in found]})
    screen.lines(model_table(found, width=screen.width))
    return ExitCode.OK


async def approvals(
    screen: Screen, *, host: str | None, thread: str | None
) -> ExitCode:
    """Show what waits for an answer, whole."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread) if thread is not None else None
        waiting = await pending_approvals(client, thread_id)
    if screen.as_json:
        screen.json({"approvals": [one.wire() for one in waiting]})
        return ExitCode.OK
    if not waiting:
        screen.say("Nothing waits for an answer.")
    for number, one in enumerate(waiting):
        gap = [BLANK] if number else []
        clock = screen.clock()
        screen.lines([*gap, *approval_lines(one, clock), *how_to_answer(one)])
    return ExitCode.OK
