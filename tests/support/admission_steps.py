"""A runtime and a ledger whose steps are counted, and every mutation, for the door.

At one of the steps of an act something can be made to happen: before its guard looks,
or when its effect has happened and the answer is on its way.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent.mutations.thread_wishes import Archive, Delete, Rename, Unarchive
from agent.records.key_row import KeyRow
from agent.records.store import Store
from tests.support.door import LOCAL, House, send
from tests.support.fake_runtime import FakeRuntime
from transport.protocol import reviews, thread_acts, threads
from transport.protocol.goals import GoalClearParams, GoalSetParams
from transport.protocol.turns import InputPart, TextInput, TurnSteerParams

KEY: Final = "the-one-key-of-it-0123456789abcd"
WARM: Final = "another-key-before-0123456789abc"


class SteppedRuntime(FakeRuntime):
    """Counts its steps from `arm` on; at one of them `happens` is called."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []
        self._at = -1
        self._happens: Callable[[], None] | None = None

    def arm(self, at: int, happens: Callable[[], None]) -> None:
        """Count anew; `at`: the number of the step, from 0."""
        self.steps, self._at, self._happens = [], at, happens

    async def reach(self, step: str) -> None:
        """Come to the step, then do what the test put there with `at`."""
        self.come_to(step)
        await super().reach(step)

    def come_to(self, step: str) -> None:
        """Count a step."""
        self.steps.append(step)
        if len(self.steps) - 1 == self._at and self._happens is not None:
            happens, self._happens = self._happens, None
            happens()

    @property
    def has_happened(self) -> bool:
        """Whether the armed step was reached."""
        return self._happens is None


class SteppedStore(Store):
    """A ledger whose writes are steps of the runtime, too. Set `runtime` after `open`."""

    runtime: SteppedRuntime | None = None

    def hand(self, row: KeyRow) -> None:
        """Write that the act may begin."""
        self._come_to("hand")
        super().hand(row)
        self._come_to("hand:done")

    def put(self, row: KeyRow) -> None:
        """Write what came of it."""
        self._come_to("put")
        super().put(row)
        self._come_to("put:done")

    def _come_to(self, step: str) -> None:
        if self.runtime is not None:
            self.runtime.come_to(step)


Call = Callable[[House], Awaitable[Any]]


@dataclass(frozen=True, kw_only=True)
class Act:
    """One mutation of the thread `thr`, which has turns t1 and t2. `before`: what is so."""

    call: Call
    before: Call | None = None


async def _has_a_writer(house: House) -> None:
    """A held, idle writer; its turn is over."""
    await house.door.admission.start_turn(LOCAL, send(key=WARM))
    house.runtime.writers[-1].finish_turn()


async def _has_a_turn(house: House) -> None:
    await house.door.admission.start_turn(LOCAL, send(key=WARM))


async def _is_archived(house: House) -> None:
    stored = house.runtime.threads["thr"]
    stored.thread = stored.thread.model_copy(update={"archived": True})


async def _has_a_goal(house: House) -> None:
    params = GoalSetParams(thread_id="thr", objective="first", request_key=WARM)
    await house.door.admission.set_goal(LOCAL, params)


async def _message(house: House) -> Any:
    return await house.door.admission.start_turn(LOCAL, send(key=KEY))


async def _more_words(house: House) -> Any:
    turn_id = house.runtime.live[0].running_turn_id
    params = TurnSteerParams(
        thread_id="thr",
        turn_id=turn_id or "none",
        input=[TextInput(type="text", text="and this")],
        request_key=KEY,
    )
    return await house.door.admission.steer(LOCAL, params)


async def _new_thread(house: House) -> Any:
    given: list[InputPart] = [TextInput(type="text", text="begin")]
    params = threads.ThreadStartParams(
        cwd=str(Path.home()), input=given, request_key=KEY
    )
    return await house.door.admission.start_thread(LOCAL, params)


async def _fork(house: House) -> Any:
    given: list[InputPart] = [TextInput(type="text", text="another way")]
    params = thread_acts.ThreadForkParams(thread_id="thr", input=given, request_key=KEY)
    return await house.door.admission.fork(LOCAL, params)


async def _settings(house: House) -> Any:
    params = threads.ThreadSettingsParams(
        thread_id="thr", effort="high", request_key=KEY
    )
    return await house.door.admission.change_settings(LOCAL, params)


async def _compact(house: House) -> Any:
    params = thread_acts.ThreadCompactParams(thread_id="thr", request_key=KEY)
    return await house.door.admission.compact(LOCAL, params)


async def _review(house: House) -> Any:
    params = reviews.ReviewStartParams(
        thread_id="thr",
        target=reviews.CustomTarget(type="custom", text="look"),
        request_key=KEY,
    )
    return await house.door.admission.review(LOCAL, params)


async def _revert(house: House) -> Any:
    params = thread_acts.ThreadRevertParams(
        thread_id="thr", before_turn_id="t2", request_key=KEY
    )
    return await house.door.admission.revert(LOCAL, params)


async def _set_goal(house: House) -> Any:
    params = GoalSetParams(thread_id="thr", objective="all of it", request_key=KEY)
    return await house.door.admission.set_goal(LOCAL, params)


async def _clear_goal(house: House) -> Any:
    params = GoalClearParams(thread_id="thr", request_key=KEY)
    return await house.door.admission.clear_goal(LOCAL, params)


async def _rename(house: House) -> Any:
    params = thread_acts.ThreadRenameParams(
        thread_id="thr", name="New", request_key=KEY
    )
    return await house.door.admission.fulfil(LOCAL, Rename(), params)


async def _archive(house: House) -> Any:
    params = thread_acts.ThreadArchiveParams(thread_id="thr", request_key=KEY)
    return await house.door.admission.fulfil(LOCAL, Archive(), params)


async def _unarchive(house: House) -> Any:
    params = thread_acts.ThreadUnarchiveParams(thread_id="thr", request_key=KEY)
    return await house.door.admission.fulfil(LOCAL, Unarchive(), params)


async def _delete(house: House) -> Any:
    params = thread_acts.ThreadDeleteParams(thread_id="thr", request_key=KEY)
    return await house.door.admission.fulfil(LOCAL, Delete(), params)


ACTS: Final[dict[str, Act]] = {
    "turn/start": Act(call=_message),
    "turn/start with a held writer": Act(call=_message, before=_has_a_writer),
    "turn/steer": Act(call=_more_words, before=_has_a_turn),
    "thread/start": Act(call=_new_thread),
    "thread/fork": Act(call=_fork),
    "thread/settings": Act(call=_settings),
    "thread/compact": Act(call=_compact),
    "review/start": Act(call=_review),
    "thread/revert": Act(call=_revert),
    "goal/set": Act(call=_set_goal),
    "goal/clear": Act(call=_clear_goal, before=_has_a_goal),
    "thread/rename": Act(call=_rename),
    "thread/archive": Act(call=_archive),
    "thread/archive with a held writer": Act(call=_archive, before=_has_a_writer),
    "thread/unarchive": Act(call=_unarchive, before=_is_archived),
    "thread/delete": Act(call=_delete),
}
