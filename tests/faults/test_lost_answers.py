"""An answer of Codex that was lost: what shows of the act settles it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import NoAnswerError, NotDeliveredError
from agent.records.key_row import RowState, digest
from agent.records.store import Store
from tests.support.door import LOCAL, House, open_house, send
from tests.support.fake_runtime import FakeRuntime
from tests.support.keyed_acts import SHOWN, clear_goal, pause_goal, say, steer
from tests.support.mutations import KEY, OTHER_KEY, raiser
from tests.support.runs_in_turn import next_run, sent
from transport.errors import CodexUnavailable, OutcomeUnknown
from transport.protocol import queue
from transport.protocol.base import WireModel
from transport.protocol.goals import Goal, GoalResult, GoalStatus
from transport.protocol.turns import TurnStatus


@pytest.mark.parametrize("method", SHOWN)
async def test_what_shows_settles_an_act_whose_answer_was_lost(
    method: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """As after a crash: the row says handed, and Codex did what it was asked."""
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    act = SHOWN[method]
    async with open_house(tmp_path, runtime=runtime) as house:
        if method in ("turn/interrupt", "background/stop"):
            await house.door.admission.start_turn(LOCAL, send(key=OTHER_KEY))
            runtime.live[0].put_in_background("cmd")
        done = await act(house)
    store = Store.open(tmp_path / "ledger.sqlite")
    row = store.find("local", KEY)
    assert row is not None
    store.put(replace(row, state=RowState.HANDED, outcome=None, turn=None))
    store.close()
    after = next_run(tmp_path, runtime)
    steps = [step for step in runtime.log if step in ("start_turn", "rename")]
    async with open_house(tmp_path, runtime=runtime, store=after) as house:
        for _ in range(2):
            again = await act(house)
            assert _core(again) == _core(done)
    assert [s for s in runtime.log if s in ("start_turn", "rename")] == steps


def _core(result: WireModel) -> dict[str, object]:
    """What an answer is about, without how it stands by now."""
    wire = result.wire()
    found: dict[str, object] = {"delivery": wire.get("delivery")}
    for name in ("turn", "thread"):
        if name in wire:
            found[name] = wire[name]["id"]
    return found


@pytest.mark.parametrize(
    "away", [NotDeliveredError("thread/goal/get"), CodexUnavailable("It has ended.")]
)
@pytest.mark.parametrize("act", [pause_goal, clear_goal])
async def test_a_goal_that_was_ended_is_not_said_to_be_left_alone_since_none_could_look(
    act: Callable[[House], Awaitable[WireModel]],
    away: Exception,
    tmp_path: Path,
    autojump_clock: MockClock,
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.goal = Goal(objective="all", status=GoalStatus.ACTIVE)
        house.runtime.at("reader.goal", raiser(away))
        result = await act(house)
        assert isinstance(result, GoalResult)
        left = house.runtime.threads["thr"].goal
        assert result.goal == left
        assert left is None or left.status is GoalStatus.PAUSED
        assert await act(house) == result


async def test_more_words_that_arrived_are_seen_to_have_arrived(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send(key=OTHER_KEY))
        house.runtime.at("steer:done", raiser(NoAnswerError("turn/start")))
        with pytest.raises(OutcomeUnknown):
            await steer(house)
        stored = house.runtime.threads["thr"]
        said = (stored.turns[-1].items or [])[0]
        words = said.model_copy(update={"id": "u-more", "client_key": KEY})
        stored.turns[-1] = stored.turns[-1].model_copy(update={"items": [said, words]})
        again = await steer(house)  # the model has taken it meanwhile
        assert again.wire()["turn"]["id"] == stored.turns[-1].id
        assert house.runtime.log.count("steer") == 1


async def test_a_late_start_completes_the_row(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("start_turn:done", raiser(NoAnswerError("turn/start")))
        result = await say(house)  # Codex said nothing, but the turn runs
        assert result.sent.status is TurnStatus.IN_PROGRESS
        assert result.sent.id == house.runtime.live[0].running_turn_id
        assert await say(house) == result


async def test_a_message_that_was_sent_is_not_said_to_be_taken_back(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    async with open_house(tmp_path, runtime=runtime) as house:
        waits = send(key=OTHER_KEY, delivery="queue")
        queued = (await house.door.admission.start_turn(LOCAL, waits)).queued
        assert queued is not None
        await trio.sleep(60)
        assert [text for text, _ in sent(runtime)] == ["go on"]
        params = queue.QueueDeleteParams(queue_id=queued.queue_id, request_key=KEY)
    store = Store.open(tmp_path / "ledger.sqlite")
    row = store.find("local", OTHER_KEY)
    assert row is not None
    store.put(
        replace(
            row,
            key=KEY,
            method="queue/delete",
            digest=digest("queue/delete", params),
            state=RowState.UNKNOWN,
            outcome=None,
        )
    )
    async with open_house(tmp_path, runtime=runtime, store=store) as house:
        with pytest.raises(OutcomeUnknown):
            await house.door.admission.delete_queued(LOCAL, params)
