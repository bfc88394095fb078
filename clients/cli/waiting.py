"""`queue`, `background`, `goal`: what goes on without a turn. Trio shell."""

from clients.cli.choose import pick
from clients.cli.doors import open_door
from clients.cli.exits import ExitCode
from clients.cli.find import find_thread
from clients.cli.lines.waiting import (
    background_table,
    command_choice,
    goal_lines,
    queue_choice,
    queue_lines,
)
from clients.cli.message import request_key
from clients.cli.screen import Screen
from clients.cli.style import dim
from transport.client import Client
from transport.protocol.background import (
    BackgroundCommand,
    BackgroundListParams,
    BackgroundStopParams,
)
from transport.protocol.goals import (
    Goal,
    GoalClearParams,
    GoalGetParams,
    GoalPauseParams,
    GoalSetParams,
)
from transport.protocol.methods import (
    BACKGROUND_LIST,
    BACKGROUND_STOP,
    GOAL_CLEAR,
    GOAL_GET,
    GOAL_PAUSE,
    GOAL_SET,
    QUEUE_DELETE,
    QUEUE_LIST,
)
from transport.protocol.queue import QueueDeleteParams, QueueListParams


async def queue_list(
    screen: Screen, *, host: str | None, thread: str | None
) -> ExitCode:
    """Show which messages wait, and for what."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread) if thread else None
        found = await client.call(QUEUE_LIST, QueueListParams(thread_id=thread_id))
    if screen.as_json:
        screen.json(found.wire())
    screen.lines(queue_lines(found, screen.clock()))
    return ExitCode.OK


async def queue_delete(screen: Screen, *, host: str | None, message: str) -> ExitCode:
    """Take a message back before it is sent."""
    async with open_door(host) as client:
        rows = (await client.call(QUEUE_LIST, QueueListParams())).queue
        one = pick(
            message,
            rows,
            key=lambda row: row.queue_id,
            show=queue_choice,
            kind="queued message",
            how="`threadgate queue list`",
        )
        params = QueueDeleteParams(queue_id=one.queue_id, request_key=request_key())
        result = await client.call(QUEUE_DELETE, params)
    if screen.as_json:
        screen.json(result.wire())
    screen.say(dim(f"taken back, not sent: {one.queue_id}"))
    return ExitCode.OK


async def background(
    screen: Screen, *, host: str | None, thread: str, stop: str | None
) -> ExitCode:
    """Show the commands that outlived their turn; `stop` ends one of them."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread)
        params = BackgroundListParams(thread_id=thread_id)
        found = await client.call(BACKGROUND_LIST, params)
        if stop is not None:
            await _stop(client, thread_id, found.commands, stop)
            found = await client.call(BACKGROUND_LIST, params)
    if screen.as_json:
        screen.json(found.wire())
    screen.lines(background_table(found.commands, screen.clock(), width=screen.width))
    return ExitCode.OK


async def _stop(
    client: Client, thread_id: str, commands: list[BackgroundCommand], word: str
) -> None:
    one = pick(
        word,
        commands,
        key=lambda row: row.item_id,
        show=command_choice,
        kind="background command",
        how="`threadgate background`",
    )
    params = BackgroundStopParams(
        thread_id=thread_id, item_id=one.item_id, request_key=request_key()
    )
    await client.call(BACKGROUND_STOP, params)


async def goal(
    screen: Screen,
    *,
    host: str | None,
    thread: str,
    objective: str | None,
    pause: bool,
    clear: bool,
    wait_ms: int = 0,
    allow_pending: bool = False,
) -> ExitCode:
    """Show a thread's goal; or set, pause or clear it first."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread)
        if objective is not None:
            wish = GoalSetParams(
                thread_id=thread_id,
                objective=objective,
                allow_pending=allow_pending,
                request_key=request_key(),
                wait_ms=wait_ms,
            )
            now = (await client.call(GOAL_SET, wish)).goal
        else:
            now = await _goal(client, thread_id, wait_ms, pause=pause, clear=clear)
    if screen.as_json:
        screen.json({"goal": now.wire() if now else None})
    screen.lines(goal_lines(now))
    return ExitCode.OK


async def _goal(
    client: Client, thread_id: str, wait_ms: int, *, pause: bool, clear: bool
) -> Goal | None:
    key = request_key()
    if pause:
        rest = GoalPauseParams(thread_id=thread_id, request_key=key, wait_ms=wait_ms)
        return (await client.call(GOAL_PAUSE, rest)).goal
    if clear:
        away = GoalClearParams(thread_id=thread_id, request_key=key, wait_ms=wait_ms)
        return (await client.call(GOAL_CLEAR, away)).goal
    return (await client.call(GOAL_GET, GoalGetParams(thread_id=thread_id))).goal
