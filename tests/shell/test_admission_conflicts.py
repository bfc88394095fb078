"""A message into a thread that is not as its sender saw it: another newest turn, a running one, work that waits."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import (
    NoAnswerError,
)
from adapter.runtime.reader import PendingWork
from tests.support.door import (
    LOCAL,
    House,
    open_house,
    send,
)
from tests.support.fake_threads import make_turn
from tests.support.mutations import KEY, OTHER_KEY, nothing_is_left, row_state
from transport.errors import (
    Conflict,
    OutcomeUnknown,
)
from transport.protocol.turns import (
    TurnStatus,
)


async def test_two_turns_at_once_on_one_thread_are_one_turn_and_one_conflict(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        ends: list[str] = []

        async def call(key: str) -> None:
            try:
                await house.door.admission.start_turn(LOCAL, send(key=key))
                ends.append("started")
            except Conflict as refusal:
                ends.append(f"{refusal.data['what']} {refusal.data['turn']['status']}")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, KEY)
            nursery.start_soon(call, OTHER_KEY)
        assert sorted(ends) == ["running inProgress", "started"]
        assert len(house.runtime.writers) == 1


async def test_another_newest_turn_than_expected_is_a_conflict_that_shows_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1", "t2")
        with pytest.raises(Conflict) as caught:
            await house.door.admission.start_turn(LOCAL, send(expected="t1"))
        assert caught.value.data["what"] == "lastTurn"
        assert caught.value.data["turn"]["id"] == "t2"
        assert house.runtime.writers == []  # a cheap refusal: nothing was started


@pytest.mark.parametrize("expected", ["t1", None])
async def test_a_turn_that_appears_between_reading_and_loading_is_seen(
    expected: str | None, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        house.runtime.at("resume", lambda: stored.turns.append(make_turn("t2", "thr")))
        if expected is None:  # nothing was believed, and the reader confirms it
            await house.door.admission.start_turn(LOCAL, send())
            return
        with pytest.raises(Conflict) as caught:
            await house.door.admission.start_turn(LOCAL, send(expected=expected))
        assert caught.value.data["turn"]["id"] == "t2"
        await nothing_is_left(house, tmp_path)


async def test_an_own_turn_that_a_crash_hid_is_no_conflict(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        house.runtime.at("start_turn:done", lambda: crash(house, stored.hidden))
        with pytest.raises(OutcomeUnknown):
            await house.door.admission.start_turn(LOCAL, send())
        result = await house.door.admission.start_turn(
            LOCAL, send(key=OTHER_KEY, expected="t1")
        )
        assert result.sent.status is TurnStatus.IN_PROGRESS
        codes = [event.data.wire()["code"] for event in house.named("notice")]
        assert codes == ["turnRecovered"]


async def test_who_expects_the_own_turn_that_a_crash_hid_is_right(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        started = await house.door.admission.start_turn(LOCAL, send())
        with pytest.raises(NoAnswerError):
            crash(house, stored.hidden)
        await trio.sleep(1)
        result = await house.door.admission.start_turn(
            LOCAL, send(key=OTHER_KEY, expected=started.sent.id)
        )
        assert result.sent.status is TurnStatus.IN_PROGRESS


async def test_an_own_turn_that_a_crash_lost_is_not_what_anybody_continues(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        started = await house.door.admission.start_turn(LOCAL, send())
        with pytest.raises(NoAnswerError):
            crash(house, stored.hidden)
        del stored.turns[-1]
        await trio.sleep(1)
        with pytest.raises(Conflict):
            await house.door.admission.start_turn(
                LOCAL, send(key=OTHER_KEY, expected=started.sent.id)
            )
        await nothing_is_left(house, tmp_path, OTHER_KEY)


def crash(house: House, hidden: set[str]) -> None:
    writer = house.runtime.writers[0]
    turn_id = writer.running_turn_id
    assert turn_id is not None
    hidden.add(turn_id)
    stored = house.runtime.threads["thr"]
    writer.die()
    last = stored.turns[-1]
    stored.turns[-1] = last.model_copy(update={"items": [], "completed_at": None})
    raise NoAnswerError("turn/start")


async def test_a_foreign_empty_turn_is_a_conflict_where_no_writer_of_ours_died(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        ghost = make_turn("ghost", "thr", TurnStatus.INTERRUPTED)
        stored.turns.append(ghost.model_copy(update={"items": []}))
        stored.hidden.add("ghost")
        with pytest.raises(Conflict):
            await house.door.admission.start_turn(LOCAL, send(expected="t1"))
        await nothing_is_left(house, tmp_path)


async def test_work_that_loading_would_start_is_a_conflict_unless_it_is_wanted(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.pending = PendingWork(queue=("buy milk",), goal="win")
        with pytest.raises(Conflict) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert caught.value.data["queue"] == ["buy milk"]
        assert caught.value.data["goal"] == "win"
        assert house.runtime.writers == []
        await house.door.admission.start_turn(LOCAL, send(allow_pending=True))


async def test_a_turn_that_loading_started_is_never_steered(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.pending = PendingWork(queue=("theirs",))

        def theirs() -> None:
            house.runtime.writers[0].begin_turn(["theirs"], client_key="theirs")

        house.runtime.at("resume:done", theirs)
        with pytest.raises(Conflict):
            await house.door.admission.start_turn(LOCAL, send(allow_pending=True))
        writer = house.runtime.writers[0]
        assert writer.sent == [("theirs", "theirs")]
        assert not writer.reaped  # their turn runs on


async def test_a_turn_that_begins_by_itself_before_the_first_byte_takes_no_message_in(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")

        def begins() -> None:
            house.runtime.writers[0].begin_turn(["of another"], client_key="")

        house.runtime.at("start_turn", begins)
        with pytest.raises(Conflict) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert caught.value.data["what"] == "running"
        assert house.runtime.writers[0].sent == [("of another", "")]
        assert row_state(tmp_path) is None
