"""The one door for mutations, at every step of the way, over the in-memory runtime."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from adapter.errors import (
    ChildExitedError,
    CodexRefusedError,
    HandshakeFailedError,
    NoAnswerError,
    NotDeliveredError,
)
from adapter.runtime.reader import PendingWork
from agent.records.audit import Audit
from agent.records.store import RowState, Store
from tests.support.door import (
    LOCAL,
    OLD_CLI,
    House,
    device,
    open_house,
    send,
    wall_ms,
)
from tests.support.fake_runtime import FakeRuntime, FakeWriter, make_turn
from transport.errors import (
    CodexUnavailable,
    Conflict,
    Forbidden,
    Internal,
    NotFound,
    NotResumable,
    OutcomeUnknown,
    Overloaded,
    Refusal,
    RuntimeFailure,
    ThreadOwnedElsewhere,
    TooLarge,
)
from transport.protocol.gateway import LeaseState, Writer, WriterKind
from transport.protocol.threads import ThreadStartParams, ThreadStartResult
from transport.protocol.turns import (
    TextInput,
    TurnInterruptParams,
    TurnStartResult,
    TurnStatus,
)

KEY = "key-0123456789abcdef"
OTHER_KEY = "key-fedcba9876543210"


def new(cwd: str, *, key: str = KEY, **more: object) -> ThreadStartParams:
    return ThreadStartParams.model_validate(
        {
            "cwd": cwd,
            "input": [TextInput(type="text", text="begin")],
            "request_key": key,
            **more,
        }
    )


def stop(
    turn_id: str, *, thread_id: str = "thr", key: str = OTHER_KEY
) -> TurnInterruptParams:
    return TurnInterruptParams(thread_id=thread_id, turn_id=turn_id, request_key=key)


def row_state(path: Path, key: str = KEY, device_id: str = "local") -> RowState | None:
    store = Store.open(path / "ledger.sqlite")
    try:
        row = store.find(device_id, key)
    finally:
        store.close()
    return row.state if row else None


async def nothing_is_left(house: House, path: Path, key: str = KEY) -> None:
    with trio.fail_after(60):
        while house.runtime.live:  # noqa: ASYNC110 - the mock clock is what is advanced
            await trio.sleep(1)
    assert house.door.pool.leases() == []
    assert row_state(path, key) is None


async def test_a_turn_is_started_through_a_fresh_writer_and_answered(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        result = await house.door.admission.start_turn(LOCAL, send(expected="t1"))
        writer = house.runtime.writers[0]
        assert writer.sent == [("go on", KEY)]
        assert result.sent.id == writer.running_turn_id
        assert result.delivery == "started"
        assert row_state(tmp_path) is RowState.DONE
        order = [step for step in house.runtime.log if step != "read_thread"]
        assert order == [
            "reader.open",
            "list_turns",
            "pending_work",
            "writer.open",
            "writer.open:done",
            "resume",
            "resume:done",
            "start_turn",
            "start_turn:done",
        ]
        assert house.door.pool.state("thr") is LeaseState.HELD


STEPS = [
    "read_thread",
    "list_turns",
    "pending_work",
    "writer.open",
    "writer.open:done",
    "resume",
    "resume:done",
    "start_turn",
]


@pytest.mark.parametrize("step", STEPS)
async def test_a_desktop_that_opens_at_any_step_leaves_nothing_half_done(
    step: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        house.runtime.at(step, house.open_desktop)
        with pytest.raises(CodexUnavailable) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert caught.value.retryable
        assert caught.value.data["gate"]["writer"]["pid"] == 4_242
        assert caught.value.data["gate"]["reason"] == "desktopActive"
        await nothing_is_left(house, tmp_path)
        assert [writer.sent for writer in house.runtime.writers] in ([], [[]])
        assert stored.locked_by is None
        assert [turn.id for turn in stored.turns] == ["t1"]
        await house.close_desktop()
        result = await house.door.admission.start_turn(LOCAL, send())
        assert result.sent.status is TurnStatus.IN_PROGRESS


async def test_a_desktop_that_opens_after_the_act_lets_the_turn_run_on(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("start_turn:done", house.open_desktop)
        result = await house.door.admission.start_turn(LOCAL, send())
        house.door.keeper.look()
        await trio.sleep(120)
        writer = house.runtime.writers[0]
        assert writer.running_turn_id == result.sent.id
        writer.finish_turn()
        await trio.sleep(1)  # at once, not after the idle time
        assert writer.reaped
        assert writer.hurried


DEFINITE = [
    CodexRefusedError("turn/start", -32600, "no"),
    NotDeliveredError("turn/start"),
]


@pytest.mark.parametrize("error", DEFINITE, ids=["refused", "not delivered"])
async def test_an_act_that_certainly_had_no_effect_leaves_no_row(
    error: Exception, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("start_turn", raiser(error))
        with pytest.raises((RuntimeFailure, CodexUnavailable)):
            await house.door.admission.start_turn(LOCAL, send())
        await nothing_is_left(house, tmp_path)
        await house.door.admission.start_turn(LOCAL, send())
        assert house.runtime.writers[-1].sent == [("go on", KEY)]


@pytest.mark.parametrize(
    "error",
    [NoAnswerError("turn/start"), ChildExitedError("codex", -9), ValueError("a bug")],
    ids=["no answer", "died", "bug"],
)
async def test_an_act_that_may_have_happened_is_never_sent_again(
    error: Exception, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.keeps_keys = False
        house.runtime.add("thr", "t1")
        house.runtime.at("start_turn:done", raiser(error))
        with pytest.raises(OutcomeUnknown) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert caught.value.data["requestKey"] == KEY
        assert row_state(tmp_path) is RowState.UNKNOWN
        for _ in range(3):
            with pytest.raises(OutcomeUnknown):
                await house.door.admission.start_turn(LOCAL, send())
        sent = [text for writer in house.runtime.writers for text in writer.sent]
        assert sent == [("go on", KEY)]


async def test_a_writer_that_hangs_after_the_act_is_ended_and_the_outcome_unknown(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at(
            "start_turn", lambda: setattr(house.runtime.writers[0], "hangs", True)
        )
        with pytest.raises(OutcomeUnknown):
            await house.door.admission.start_turn(LOCAL, send())
        assert house.runtime.live == []


async def test_an_act_without_end_is_given_up_after_its_deadline(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.keeps_keys = False
        house.runtime.add("thr", "t1")
        house.runtime.at("start_turn:done", trio.sleep_forever)
        with pytest.raises(OutcomeUnknown):
            await house.door.admission.start_turn(LOCAL, send())
        assert row_state(tmp_path) is RowState.UNKNOWN


def raiser(error: Exception) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


async def test_a_client_that_leaves_before_the_act_leaves_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    for step in ("list_turns", "pending_work", "writer.open", "resume", "resume:done"):
        path = tmp_path / step.replace(":", "-")
        path.mkdir()
        async with open_house(path) as house:
            house.runtime.add("thr", "t1")
            house.runtime.at(step, trio.sleep_forever)
            with trio.move_on_after(5) as scope:
                await house.door.admission.start_turn(LOCAL, send())
            assert scope.cancelled_caught
            await nothing_is_left(house, path)


async def test_a_client_that_leaves_during_the_act_finds_its_outcome_later(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        with trio.CancelScope() as scope:
            house.runtime.at("start_turn", lambda: scope.cancel(reason="phone is gone"))
            house.runtime.at("start_turn:done", partial(trio.sleep, 3))
            await house.door.admission.start_turn(LOCAL, send())
            await trio.lowlevel.checkpoint()
        assert scope.cancelled_caught
        assert row_state(tmp_path) is RowState.DONE
        again = await house.door.admission.start_turn(LOCAL, send())
        assert again.sent.id == house.runtime.writers[0].running_turn_id
        assert len(house.runtime.writers[0].sent) == 1


async def test_repeats_in_flight_share_the_one_outcome(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("resume", partial(trio.sleep, 2))
        turns: list[str] = []

        async def call() -> None:
            result = await house.door.admission.start_turn(LOCAL, send())
            turns.append(result.sent.id)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(call)
        assert len(turns) == 5
        assert len(set(turns)) == 1
        assert len(house.runtime.writers) == 1
        assert len(house.runtime.writers[0].sent) == 1


async def test_repeats_in_flight_share_a_refusal_too(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("resume", partial(trio.sleep, 2))
        house.runtime.at("resume:done", house.open_desktop)
        refused: list[Refusal] = []

        async def call() -> None:
            try:
                await house.door.admission.start_turn(LOCAL, send())
            except CodexUnavailable as refusal:
                refused.append(refusal)

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(call)
        assert len(refused) == 3
        assert len(house.runtime.writers) == 1


async def test_a_repeat_takes_over_when_the_first_client_has_left(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("pending_work", trio.sleep_forever)
        async with trio.open_nursery() as nursery:

            async def first() -> None:
                with trio.move_on_after(1):
                    await house.door.admission.start_turn(LOCAL, send())

            nursery.start_soon(first)
            await wait_all_tasks_blocked()
            result = await house.door.admission.start_turn(LOCAL, send())
        assert result.sent.id == house.runtime.writers[-1].running_turn_id


async def test_the_same_key_for_something_else_is_a_conflict(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        with pytest.raises(Conflict) as caught:
            await house.door.admission.start_turn(LOCAL, send(text="other words"))
        assert caught.value.data["what"] == "requestKey"
        with pytest.raises(Conflict):
            turn_id = house.runtime.writers[0].running_turn_id
            assert turn_id is not None
            await house.door.admission.interrupt(LOCAL, stop(turn_id, key=KEY))


async def test_a_stored_answer_is_given_again_after_a_restart(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    async with open_house(tmp_path, runtime=runtime) as house:
        first = await house.door.admission.start_turn(LOCAL, send())
    async with open_house(tmp_path, runtime=runtime) as house:
        again = await house.door.admission.start_turn(LOCAL, send())
    assert again == first
    assert len(runtime.writers) == 1


async def test_what_was_handed_when_the_agent_died_is_unknown_after_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    runtime.keeps_keys = False
    runtime.add("thr", "t1")
    async with open_house(tmp_path, runtime=runtime) as house:
        await house.door.admission.start_turn(LOCAL, send())
    store = Store.open(tmp_path / "ledger.sqlite")
    row = store.find("local", KEY)
    assert row is not None
    store.put(replace(row, state=RowState.HANDED, outcome=None))  # as a crash leaves it
    assert store.recover() == 1
    async with open_house(tmp_path, runtime=runtime, store=store) as house:
        with pytest.raises(OutcomeUnknown) as caught:
            await house.door.admission.start_turn(LOCAL, send())
    assert caught.value.data["threadId"] == "thr"


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


async def test_a_held_writer_that_knows_all_is_used_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        writer = house.runtime.writers[0]
        turn = writer.finish_turn()
        await house.door.admission.start_turn(
            LOCAL, send(key=OTHER_KEY, expected=turn.id)
        )
        assert house.runtime.writers == [writer]
        assert len(writer.sent) == 2


async def test_a_foreign_turn_on_the_disk_ends_a_held_writer_and_takes_a_fresh_one(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        old = house.runtime.writers[0]
        old.finish_turn()
        stored.turns.append(make_turn("foreign", "thr"))
        await house.door.admission.start_turn(
            LOCAL, send(key=OTHER_KEY, expected="foreign")
        )
        new_one = house.runtime.writers[1]
        assert old.reaped
        assert new_one.knows_turn("foreign")
        codes = [event.data.wire()["code"] for event in house.named("notice")]
        assert codes == ["foreignTurn"]


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


@pytest.mark.parametrize("step", ["resume:done", "start_thread:done"])
async def test_a_writer_that_dies_as_it_has_loaded_is_told_as_such(
    step: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")

        async def dies() -> None:
            house.runtime.writers[0].died.set()
            await trio.sleep(1)

        house.runtime.at(step, dies)

        async def act() -> TurnStartResult | ThreadStartResult:
            if step == "resume:done":
                return await house.door.admission.start_turn(LOCAL, send())
            params = new(str(tmp_path))
            return await house.door.admission.start_thread(LOCAL, params)

        with pytest.raises(CodexUnavailable):
            await act()
        await nothing_is_left(house, tmp_path)
        await act()
        assert row_state(tmp_path) is RowState.DONE


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


async def test_a_goal_is_paused_when_the_gate_closes(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.pending = PendingWork(goal="win")
        await house.door.admission.start_turn(LOCAL, send(allow_pending=True))
        house.see_desktop()
        await trio.sleep(1)
        assert stored.pending.goal is None
        assert "pause_goal" not in house.runtime.log  # its writer is told


async def test_a_goal_is_paused_in_the_store_where_its_writer_does_not_answer(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.pending = PendingWork(goal="win")
        await house.door.admission.start_turn(LOCAL, send(allow_pending=True))
        silent = NoAnswerError("thread/goal/set")
        house.runtime.at("writer.pause_goal", raiser(silent))
        house.see_desktop()
        await trio.sleep(1)
        assert "pause_goal" in house.runtime.log
        assert stored.pending.goal is None


async def test_a_thread_locked_by_another_process_names_it_and_leaves_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.locked_by = 777
        house.watch.locks["thr"] = Writer(
            kind=WriterKind.CLI, name="Codex in a terminal", pid=777, since=1
        )
        with pytest.raises(ThreadOwnedElsewhere) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert caught.value.data["writer"]["pid"] == 777
        assert "777" in caught.value.message
        assert caught.value.retryable
        await nothing_is_left(house, tmp_path)
        assert house.door.pool.state("thr") is LeaseState.ELSEWHERE


async def test_waiting_for_a_foreign_lock_ends_when_it_is_free(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.locked_by = 777
        house.watch.locks["thr"] = Writer(
            kind=WriterKind.CLI, name="Codex in a terminal", pid=777, since=1
        )

        async def closes() -> None:
            await trio.sleep(20)
            stored.locked_by = None
            house.watch.locks.clear()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(closes)
            result = await house.door.admission.start_turn(LOCAL, send(wait_ms=60_000))
        assert result.sent.status is TurnStatus.IN_PROGRESS
        assert trio.current_time() < 25
        assert len(house.runtime.writers) == 2  # none was started while it was locked


async def test_waiting_for_the_gate_ends_when_it_opens_or_patience_does(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.open_desktop()
        with pytest.raises(CodexUnavailable):
            await house.door.admission.start_turn(LOCAL, send(wait_ms=10_000))
        assert 10 <= trio.current_time() < 11
        async with trio.open_nursery() as nursery:

            async def closes() -> None:
                await trio.sleep(20)
                await house.close_desktop()

            nursery.start_soon(closes)
            await house.door.admission.start_turn(LOCAL, send(wait_ms=60_000))
        assert trio.current_time() < 33


async def test_nobody_waits_in_front_of_a_client_that_waits_for_the_gate(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.locked_by = 777
        house.watch.locks["thr"] = Writer(
            kind=WriterKind.CLI, name="x", pid=777, since=1
        )
        async with trio.open_nursery() as nursery:

            async def patient() -> None:
                with pytest.raises(ThreadOwnedElsewhere):
                    await house.door.admission.start_turn(LOCAL, send(wait_ms=60_000))

            nursery.start_soon(patient)
            await trio.sleep(5)
            before = trio.current_time()
            with pytest.raises(ThreadOwnedElsewhere):
                await house.door.admission.start_turn(LOCAL, send(key=OTHER_KEY))
            assert trio.current_time() - before < 1


async def test_an_engine_without_locks_closes_the_gate_and_is_named(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.watch.foreign.append(OLD_CLI)
        with pytest.raises(CodexUnavailable) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert caught.value.data["gate"]["reason"] == "writerWithoutLock"
        assert caught.value.data["gate"]["writer"]["pid"] == OLD_CLI.pid


async def test_with_a_codex_that_takes_no_locks_any_engine_closes_the_gate(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime(version="0.145.0", locks_threads=False)
    async with open_house(tmp_path, runtime=runtime) as house:
        runtime.add("thr", "t1")
        house.watch.foreign.append(replace(OLD_CLI, locks=True))
        with pytest.raises(CodexUnavailable) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert caught.value.data["gate"]["reason"] == "writerWithoutLock"


async def test_a_thread_left_wide_open_is_refused_to_a_narrower_device(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        for wider in (
            {"sandbox": "danger-full-access"},
            {"sandbox": "external-sandbox"},
            {"approval_policy": "never"},
            {"cwd": "/etc"},
        ):
            narrow = stored.settings
            stored.settings = replace(narrow, **wider)
            with pytest.raises(Forbidden) as caught:
                await house.door.admission.start_turn(device(), send())
            assert "ceiling" in caught.value.data
            await nothing_is_left(house, tmp_path)
            stored.settings = narrow
        await house.door.admission.start_turn(device(), send())


async def test_a_held_wide_open_thread_is_refused_to_a_narrower_device_too(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.settings = replace(stored.settings, sandbox="danger-full-access")
        await house.door.admission.start_turn(LOCAL, send())
        house.runtime.writers[0].finish_turn()
        with pytest.raises(Forbidden):
            await house.door.admission.start_turn(device(), send(key=OTHER_KEY))
        assert len(house.runtime.writers[0].sent) == 1


@pytest.mark.parametrize("step", STEPS[1:])
async def test_a_device_revoked_at_any_step_does_nothing(
    step: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        gone: list[str] = []
        caller = replace(device(), alive=lambda: not gone)
        house.runtime.at(step, lambda: gone.append("revoked"))
        with pytest.raises(Forbidden):
            await house.door.admission.start_turn(caller, send())
        await nothing_is_left(house, tmp_path)
        assert all(not writer.sent for writer in house.runtime.writers)


async def test_a_device_needs_the_scope_and_the_root(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1", cwd="/home/u/secret")
        with pytest.raises(Forbidden) as caught:
            await house.door.admission.start_turn(device("read"), send())
        assert caught.value.data["scope"] == "write"
        for thread_id in ("thr", "no-such-thread"):
            with pytest.raises(NotFound) as missing:
                await house.door.admission.start_turn(device(), send(thread_id))
            assert missing.value.data == {"kind": "thread", "id": thread_id}


async def test_a_fifth_writer_ends_the_longest_idle_one(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        for number in range(5):
            house.runtime.add(f"thr{number}", "t1")
        for number in range(4):
            key = f"{KEY}-{number}"
            guest = device(device_id=f"d{number}")
            await house.door.admission.start_turn(guest, send(f"thr{number}", key=key))
            if number in (1, 2):
                house.runtime.writers[number].finish_turn()
                await trio.sleep(2)
        await house.door.admission.start_turn(device(), send("thr4", key=f"{KEY}-4"))
        assert [writer.reaped for writer in house.runtime.writers] == [
            False, True, False, False, False,
        ]  # fmt: skip


async def test_a_fifth_writer_is_refused_while_all_four_work(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        for number in range(5):
            house.runtime.add(f"thr{number}", "t1")
        for number in range(4):
            key = f"{KEY}-{number}"
            guest = device(device_id=f"d{number}")
            await house.door.admission.start_turn(guest, send(f"thr{number}", key=key))
        with pytest.raises(Overloaded) as caught:
            await house.door.admission.start_turn(
                device(), send("thr4", key=f"{KEY}-4")
            )
        assert caught.value.data["threads"] == ["thr0", "thr1", "thr2", "thr3"]
        house.runtime.writers[2].finish_turn()
        await house.door.admission.start_turn(device(), send("thr4", key=f"{KEY}-4"))


async def test_a_start_that_dies_before_initialize_is_tried_again_three_times(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        died = ChildExitedError("codex writer", 1, "failed to initialize sqlite")
        for _ in range(3):
            house.runtime.at("writer.open", raiser(died))
        await house.door.admission.start_turn(LOCAL, send())
        house.runtime.writers[0].finish_turn()
        await trio.sleep(60)
        for _ in range(4):
            house.runtime.at("writer.open", raiser(HandshakeFailedError("odd")))
        with pytest.raises(CodexUnavailable):
            await house.door.admission.start_turn(LOCAL, send(key=OTHER_KEY))
        await nothing_is_left(house, tmp_path, OTHER_KEY)


async def test_a_thread_that_codex_does_not_continue_is_not_resumable(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        error = CodexRefusedError("thread/resume", -32600, "session thr is archived")
        house.runtime.at("resume", raiser(error))
        with pytest.raises(NotResumable, match="archived"):
            await house.door.admission.start_turn(LOCAL, send())
        await nothing_is_left(house, tmp_path)


async def test_a_message_over_the_limit_is_refused_before_anything(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        before = list(house.runtime.log)
        with pytest.raises(TooLarge):
            await house.door.admission.start_turn(LOCAL, send(text="ä" * 100_001))
        assert house.runtime.log == before


async def test_while_the_reader_is_down_mutations_say_so(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.readers[0].die()
        await wait_all_tasks_blocked()
        with pytest.raises(CodexUnavailable) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert caught.value.data["gate"]["reason"] == "runtimeDown"
        await trio.sleep(2)  # it is started again by itself
        await house.door.admission.start_turn(LOCAL, send())


# thread/start


async def test_a_new_thread_and_its_first_turn_are_one_act(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        result = await house.door.admission.start_thread(LOCAL, new(str(tmp_path)))
        assert result.thread.cwd == str(tmp_path)
        assert result.thread.lease is LeaseState.HELD
        assert result.turn.thread_id == result.thread.id
        assert row_state(tmp_path) is RowState.DONE
        again = await house.door.admission.start_thread(LOCAL, new(str(tmp_path)))
        assert again == result
        assert len(house.runtime.writers) == 1


@pytest.mark.parametrize(
    "step",
    [
        "writer.open",
        "writer.open:done",
        "start_thread",
        "start_thread:done",
        "start_turn",
    ],
)
async def test_a_desktop_that_opens_while_a_thread_is_made_leaves_no_thread(
    step: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.at(step, house.open_desktop)
        with pytest.raises(CodexUnavailable):
            await house.door.admission.start_thread(LOCAL, new(str(tmp_path)))
        await nothing_is_left(house, tmp_path)
        assert house.runtime.threads == {}


async def test_a_thread_start_that_is_tried_again_is_undone_until_its_thread_is_named(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.at("start_turn", house.open_desktop)
        undone: list[int] = []

        def dies() -> None:
            """What a restart makes of the row, were it now."""
            store = Store.open(tmp_path / "ledger.sqlite")
            try:
                undone.append(store.recover())
                assert store.find("local", KEY) is None
            finally:
                store.close()

        house.runtime.at("start_thread", lambda: None)
        house.runtime.at("start_thread", dies)
        async with trio.open_nursery() as nursery:

            async def closes() -> None:
                await trio.sleep(20)
                await house.close_desktop()

            nursery.start_soon(closes)
            params = new(str(tmp_path), wait_ms=60_000)
            result = await house.door.admission.start_thread(LOCAL, params)
        assert undone == [0]
        assert [*house.runtime.threads] == [result.thread.id]


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


async def test_a_refused_first_turn_drops_the_new_thread(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        error = CodexRefusedError("turn/start", -32600, "unknown model")
        house.runtime.at("start_turn", raiser(error))
        with pytest.raises(RuntimeFailure, match="unknown model"):
            await house.door.admission.start_thread(LOCAL, new(str(tmp_path)))
        await nothing_is_left(house, tmp_path)
        assert house.runtime.threads == {}


async def test_a_new_thread_of_unknown_outcome_is_named_in_the_answer(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.keeps_keys = False
        house.runtime.at("start_turn:done", raiser(NoAnswerError("turn/start")))
        with pytest.raises(OutcomeUnknown) as caught:
            await house.door.admission.start_thread(LOCAL, new(str(tmp_path)))
        assert caught.value.data["threadId"] == house.runtime.writers[0].thread_id
        with pytest.raises(OutcomeUnknown) as again:
            await house.door.admission.start_thread(LOCAL, new(str(tmp_path)))
        assert again.value.data == caught.value.data


async def test_an_unanswered_thread_start_certainly_made_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.at("start_thread:done", raiser(NoAnswerError("thread/start")))
        with pytest.raises(Refusal) as caught:
            await house.door.admission.start_thread(LOCAL, new(str(tmp_path)))
        assert caught.value.retryable
        await nothing_is_left(house, tmp_path)


async def test_a_device_starts_threads_only_within_its_ceiling(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    caller = device(roots=[str(inside)])
    async with open_house(tmp_path) as house:
        for params in (
            new(str(outside)),
            new(str(inside / "link")),
            new(f"{inside}/../out"),
            new(str(inside), sandbox="danger-full-access"),
            new(str(inside), approval_policy="never"),
        ):
            with pytest.raises(Forbidden) as caught:
                await house.door.admission.start_thread(caller, params)
            assert "ceiling" in caught.value.data
        assert house.runtime.writers == []
        await house.door.admission.start_thread(caller, new(str(inside)))


async def test_a_new_thread_whose_effective_settings_are_too_wide_is_dropped(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        caller = device(roots=[str(tmp_path)], sandbox="read-only")
        with pytest.raises(Forbidden):
            await house.door.admission.start_thread(caller, new(str(tmp_path)))
        await nothing_is_left(house, tmp_path)
        assert house.runtime.threads == {}


async def test_a_device_that_follows_threads_may_use_their_folders_and_no_others(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    known, other = tmp_path / "known", tmp_path / "other"
    known.mkdir()
    other.mkdir()
    caller = replace(device(roots=[]), follows_threads=True)
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1", cwd=str(known))
        with pytest.raises(Forbidden):
            await house.door.admission.start_thread(caller, new(str(other)))
        await house.door.admission.start_thread(caller, new(str(known)))


# turn/interrupt


async def run_one(house: House) -> tuple[FakeWriter, str]:
    house.runtime.add("thr", "t1")
    result = await house.door.admission.start_turn(LOCAL, send())
    return house.runtime.writers[-1], result.sent.id


async def test_an_interrupt_passes_a_closed_gate_and_a_held_lock(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer, turn_id = await run_one(house)
        house.see_desktop()
        result = await house.door.admission.interrupt(LOCAL, stop(turn_id))
        assert result.turn.status is TurnStatus.INTERRUPTED
        assert writer.running_turn_id is None
        assert row_state(tmp_path, OTHER_KEY) is RowState.DONE


async def test_an_interrupt_of_what_does_not_run_is_a_conflict(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        _, turn_id = await run_one(house)
        with pytest.raises(Conflict) as caught:
            await house.door.admission.interrupt(LOCAL, stop("t9"))
        assert caught.value.data["what"] == "running"
        house.runtime.writers[0].finish_turn()
        with pytest.raises(Conflict):
            await house.door.admission.interrupt(LOCAL, stop(turn_id))
        assert row_state(tmp_path, OTHER_KEY) is None
        assert not house.runtime.writers[0].reaped


async def test_an_interrupt_of_a_foreign_turn_names_who_runs_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.watch.locks["thr"] = Writer(
            kind=WriterKind.DESKTOP, name="Codex desktop", pid=7, since=1
        )
        with pytest.raises(ThreadOwnedElsewhere):
            await house.door.admission.interrupt(LOCAL, stop("t1"))


async def test_an_interrupt_that_is_not_answered_ends_the_writer_and_so_the_turn(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer, turn_id = await run_one(house)
        writer.hangs = True
        await house.door.admission.interrupt(LOCAL, stop(turn_id))
        assert writer.reaped
        assert house.door.pool.leases() == []
        assert row_state(tmp_path, OTHER_KEY) is RowState.DONE


async def test_revoke_can_stop_what_the_device_started_and_nothing_else(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.add("mine", "t1")
        theirs = await house.door.admission.start_turn(device(), send())
        await house.door.admission.start_turn(LOCAL, send("mine", key=OTHER_KEY))
        assert await house.door.admission.stop_turns_of("d1") == [theirs.sent.id]
        assert house.runtime.writers[0].running_turn_id is None
        assert house.runtime.writers[1].running_turn_id is not None


# storage


async def test_with_a_full_disk_nothing_is_sent_but_an_interrupt_is_carried_out(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    audit = Audit(tmp_path / "audit.jsonl", now_ms=wall_ms)
    async with open_house(tmp_path, audit=audit) as house:
        writer, turn_id = await run_one(house)
        audit.close()
        (tmp_path / "audit.jsonl").unlink()
        (tmp_path / "audit.jsonl").mkdir()  # no entry can be written any more
        house.runtime.add("other", "t1")
        with pytest.raises(Internal, match="audit"):
            await house.door.admission.start_turn(LOCAL, send("other", key=OTHER_KEY))
        assert len(house.runtime.live) == 1
        result = await house.door.admission.interrupt(LOCAL, stop(turn_id))
        assert result.turn.status is TurnStatus.INTERRUPTED
        assert writer.running_turn_id is None


async def test_without_a_ledger_nothing_is_sent(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    store = Store.open(tmp_path / "ledger.sqlite")
    async with open_house(tmp_path, store=store) as house:
        house.runtime.add("thr", "t1")
        store.close()
        with pytest.raises(Internal, match="ledger"):
            await house.door.admission.start_turn(LOCAL, send())
        assert all(not writer.sent for writer in house.runtime.writers)


async def test_an_outcome_that_the_disk_does_not_take_is_still_the_only_one(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    store = Store.open(tmp_path / "ledger.sqlite")
    async with open_house(tmp_path, store=store) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("start_turn:done", store.close)
        first = await house.door.admission.start_turn(LOCAL, send())
        again = await house.door.admission.start_turn(LOCAL, send())
        assert again == first
        assert len(house.runtime.writers[0].sent) == 1
