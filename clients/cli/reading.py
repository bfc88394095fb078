"""`status`, `threads`, `read`, `models`, `approvals`: what only looks. Trio shell."""

from pathlib import Path

from clients.cli.doors import open_door
from clients.cli.exits import ExitCode
from clients.cli.find import find_folder, find_thread, list_threads, pending_approvals
from clients.cli.lines.approvals import approval_lines, how_to_answer
from clients.cli.lines.gate import status_lines
from clients.cli.lines.models import model_table
from clients.cli.lines.threads import thread_lines, thread_table
from clients.cli.pictures import save_all
from clients.cli.screen import Screen
from clients.cli.style import BLANK
from transport.protocol.capabilities import ModelListParams
from transport.protocol.gateway import GatewayStatusParams
from transport.protocol.methods import GATEWAY_STATUS, MODEL_LIST, THREAD_READ
from transport.protocol.threads import ThreadListParams, ThreadReadParams


async def status(screen: Screen, *, host: str | None) -> ExitCode:
    """Say whether one can write, who does otherwise, and what waits."""
    async with open_door(host) as client:
        found = await client.call(GATEWAY_STATUS, GatewayStatusParams())
        waiting = await pending_approvals(client)
    if screen.as_json:
        device = client.opened.device.wire()
        approvals = [one.wire() for one in waiting]
        screen.json({**found.wire(), "approvals": approvals, "device": device})
    screen.lines(status_lines(found, waiting, screen.clock()))
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
) -> ExitCode:
    """Show a thread's newest turns, oldest of them first."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread)
        params = ThreadReadParams(thread_id=thread_id, turns=turns)
        found = await client.call(THREAD_READ, params)
        if images is not None:
            await save_all(screen, client, found.turns, images)
    if screen.as_json:
        screen.json(found.wire())
    more = found.next_cursor is not None
    screen.lines(
        thread_lines(found.thread, found.turns, screen.clock(), full=full, more=more)
    )
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
