"""Acts on the thread `thr`, method by method, each under the same key."""

from collections.abc import Awaitable, Callable
from typing import Final

from agent.mutations.thread_wishes import Rename
from tests.support.door import LOCAL, House, send
from tests.support.mutations import KEY
from transport.protocol import background, goals, thread_acts, threads, turns
from transport.protocol.base import WireModel
from transport.protocol.turns import TextInput, TurnStartResult

Act = Callable[[House], Awaitable[WireModel]]


async def say(house: House) -> TurnStartResult:
    """Start a turn."""
    return await house.door.admission.start_turn(LOCAL, send())


async def steer(house: House) -> WireModel:
    """Give the running turn more words."""
    turn_id = house.runtime.threads["thr"].turns[-1].id
    params = turns.TurnSteerParams(
        thread_id="thr",
        turn_id=turn_id,
        input=[TextInput(type="text", text="more")],
        request_key=KEY,
    )
    return await house.door.admission.steer(LOCAL, params)


async def new(house: House) -> WireModel:
    """Start a thread."""
    params = threads.ThreadStartParams(
        cwd="/", input=[TextInput(type="text", text="begin")], request_key=KEY
    )
    return await house.door.admission.start_thread(LOCAL, params)


async def fork(house: House) -> WireModel:
    """Fork it, with a first message."""
    params = thread_acts.ThreadForkParams(
        thread_id="thr",
        input=[TextInput(type="text", text="go another way")],
        request_key=KEY,
    )
    return await house.door.admission.fork(LOCAL, params)


async def rename(house: House) -> WireModel:
    """Give it a name."""
    params = thread_acts.ThreadRenameParams(
        thread_id="thr", name="New", request_key=KEY
    )
    return await house.door.admission.fulfil(LOCAL, Rename(), params)


async def set_goal(house: House) -> WireModel:
    """Give it a goal."""
    params = goals.GoalSetParams(thread_id="thr", objective="all", request_key=KEY)
    return await house.door.admission.set_goal(LOCAL, params)


async def pause_goal(house: House) -> WireModel:
    """Pause its goal."""
    params = goals.GoalPauseParams(thread_id="thr", request_key=KEY)
    return await house.door.admission.pause_goal(LOCAL, params)


async def clear_goal(house: House) -> WireModel:
    """Take its goal away."""
    params = goals.GoalClearParams(thread_id="thr", request_key=KEY)
    return await house.door.admission.clear_goal(LOCAL, params)


async def interrupt(house: House) -> WireModel:
    """Interrupt its newest turn."""
    turn_id = house.runtime.threads["thr"].turns[-1].id
    params = turns.TurnInterruptParams(
        thread_id="thr", turn_id=turn_id, request_key=KEY
    )
    return await house.door.admission.interrupt(LOCAL, params)


async def stop(house: House) -> WireModel:
    """Stop the background command `cmd`."""
    params = background.BackgroundStopParams(
        thread_id="thr", item_id="cmd", request_key=KEY
    )
    return await house.door.admission.stop_background(LOCAL, params)


SHOWN: Final[dict[str, Act]] = {
    "turn/start": say,
    "thread/start": new,
    "thread/fork": fork,
    "thread/rename": rename,
    "thread/goal/set": set_goal,
    "thread/goal/pause": pause_goal,
    "thread/goal/clear": clear_goal,
    "turn/interrupt": interrupt,
    "background/stop": stop,
}
"""The acts of which the runtime shows that they were done."""
