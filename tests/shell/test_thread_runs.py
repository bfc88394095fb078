"""Compacting, reviewing and taking back: through the door of all mutations, or not at all."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from adapter.errors import CodexOverloadedError, CodexRefusedError
from agent.access.scopes import Caller
from agent.records.key_row import RowState
from tests.support.door import LOCAL, House, device, open_house, send
from tests.support.mutations import row_state
from transport.errors import (
    CodexUnavailable,
    Conflict,
    Forbidden,
    InvalidParams,
    NotFound,
    OutcomeUnknown,
    TooLarge,
)
from transport.protocol.events import ThreadReverted
from transport.protocol.goals import (
    Goal,
    GoalPauseParams,
    GoalSetParams,
    GoalStatus,
)
from transport.protocol.reviews import CustomTarget, ReviewStartParams
from transport.protocol.thread_acts import ThreadCompactParams, ThreadRevertParams
from transport.protocol.turns import Turn, TurnInterruptParams, TurnStatus

KEY = "runs-0123456789abcdef"
Act = Callable[..., Awaitable[Any]]


async def compact(house: House, caller: Caller = LOCAL, **more: Any) -> Turn:
    params = ThreadCompactParams(thread_id="thr", request_key=KEY, **more)
    return (await house.door.admission.compact(caller, params)).turn


async def review(house: House, caller: Caller = LOCAL, **more: Any) -> Turn:
    target = CustomTarget(type="custom", text=more.pop("text", "look"))
    params = ReviewStartParams(thread_id="thr", target=target, request_key=KEY, **more)
    return (await house.door.admission.review(caller, params)).turn


async def revert(
    house: House, before: str = "t2", caller: Caller = LOCAL, **more: Any
) -> str | None:
    params = ThreadRevertParams(
        thread_id="thr", before_turn_id=before, request_key=KEY, **more
    )
    result = await house.door.admission.revert(caller, params)
    return result.thread.last_turn_id


ACTS: dict[str, Act] = {"compact": compact, "review": review, "revert": revert}
STARTS: dict[str, Act] = {"compact": compact, "review": review}


def told(house: House) -> list[str]:
    return [
        event.data.last_turn_id
        for event in house.named("thread/reverted")
        if isinstance(event.data, ThreadReverted)
    ]


@pytest.mark.parametrize("name", STARTS)
async def test_a_run_starts_once_for_its_key_and_can_be_stopped(
    name: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1", "t2")
        turn = await STARTS[name](house)
        assert (await STARTS[name](house)).id == turn.id
        assert house.runtime.log.count(name) == 1
        assert row_state(tmp_path, KEY) is RowState.DONE
        stop = TurnInterruptParams(
            thread_id="thr", turn_id=turn.id, request_key="s" * 16
        )
        ended = await house.door.admission.interrupt(LOCAL, stop)
        assert ended.turn.status is TurnStatus.INTERRUPTED


async def test_turns_are_taken_back_once_and_everybody_is_told_what_is_left(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1", "t2", "t3")
        assert await revert(house, expected_last_turn_id="t3") == "t1"
        assert await revert(house, expected_last_turn_id="t3") == "t1"  # the same key
        assert [turn.id for turn in stored.turns] == ["t1"]
        assert told(house) == ["t1"]
        assert house.runtime.log.count("revert") == 1
        await house.door.admission.start_turn(LOCAL, send(expected="t1"))
        assert len(house.runtime.writers) == 1  # the writer knows where the thread is


@pytest.mark.parametrize("name", STARTS)
async def test_a_turn_that_begins_by_itself_before_the_first_byte_is_not_ended(
    name: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")

        def begins() -> None:
            house.runtime.writers[0].begin_turn(["of another"], client_key="")

        house.runtime.at(name, begins)
        with pytest.raises(Conflict) as caught:
            await STARTS[name](house)
        assert caught.value.data["what"] == "running"
        assert row_state(tmp_path, KEY) is None


async def test_a_goal_that_was_paused_but_is_not_told_then_was_not_refused(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        goal = GoalSetParams(thread_id="thr", objective="win", request_key="g" * 16)
        await house.door.admission.set_goal(LOCAL, goal)

        def busy() -> None:
            raise CodexOverloadedError("thread/goal/get", -32001, "overloaded")

        house.runtime.at("goal", busy)
        pause = GoalPauseParams(thread_id="thr", request_key=KEY)
        result = await house.door.admission.pause_goal(LOCAL, pause)
        assert result.goal is not None
        assert result.goal.status is GoalStatus.PAUSED
        assert row_state(tmp_path, KEY) is RowState.DONE


@pytest.mark.parametrize(
    ("before", "more", "error"),
    [
        ("t9", {}, NotFound),
        ("t1", {}, InvalidParams),
        ("t2", {"expected_last_turn_id": "t2"}, Conflict),
    ],
)
async def test_a_revert_that_does_not_fit_starts_nothing(
    before: str,
    more: dict[str, Any],
    error: type[Exception],
    tmp_path: Path,
    autojump_clock: MockClock,
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1", "t2", "t3")
        with pytest.raises(error):
            await revert(house, before, **more)
        assert len(stored.turns) == 3
        assert house.runtime.writers == []
        assert row_state(tmp_path, KEY) is None
        assert told(house) == []


@pytest.mark.parametrize("name", ACTS)
async def test_nothing_of_the_kind_begins_while_a_turn_runs(
    name: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1", "t2")
        await house.door.admission.start_turn(LOCAL, send())
        with pytest.raises(Conflict) as refused:
            await ACTS[name](house)
        assert refused.value.data["what"] == "running"
        assert name not in house.runtime.log
        assert house.runtime.writers[0].running_turn_id is not None


async def test_nothing_is_taken_back_beside_a_background_command(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1", "t2")
        turn = (await house.door.admission.start_turn(LOCAL, send())).sent
        writer = house.runtime.writers[0]
        writer.put_in_background("call_1")
        writer.finish_turn()
        with pytest.raises(Conflict) as refused:
            await revert(house)
        assert refused.value.data["what"] == "running"
        assert [one.id for one in stored.turns] == ["t1", "t2", turn.id]
        assert writer.background


async def test_what_starts_to_run_at_the_last_moment_is_not_cut_off(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1", "t2")

        def begins() -> None:
            house.runtime.writers[0].put_in_background("call_1")

        house.runtime.at("revert", begins)
        with pytest.raises(Conflict):
            await revert(house)
        assert len(stored.turns) == 2
        assert row_state(tmp_path, KEY) is None


@pytest.mark.parametrize("name", ACTS)
async def test_an_active_goal_stands_against_it(
    name: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1", "t2")
        goal = GoalSetParams(thread_id="thr", objective="all", request_key="g" * 16)
        await house.door.admission.set_goal(LOCAL, goal)
        with pytest.raises(Conflict) as refused:
            await ACTS[name](house)
        assert refused.value.data["what"] == "goal"
        assert name not in house.runtime.log
        assert stored.goal == Goal(objective="all", status=GoalStatus.ACTIVE)


@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize("step", ["writer.open", "resume", ""])
async def test_a_desktop_that_opens_on_the_way_stops_it(
    name: str, step: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1", "t2")
        house.runtime.at(step or name, house.open_desktop)
        with pytest.raises(CodexUnavailable):
            await ACTS[name](house)
        assert [turn.id for turn in stored.turns] == ["t1", "t2"]
        assert row_state(tmp_path, KEY) is None


@pytest.mark.parametrize("name", ACTS)
async def test_a_device_that_may_only_read_begins_nothing(
    name: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1", "t2")
        with pytest.raises(Forbidden):
            await ACTS[name](house, caller=device("read"))
        assert house.runtime.writers == []


@pytest.mark.parametrize(
    ("sandbox", "policies", "allowed"),
    [
        ("workspace-write", ("untrusted", "on-request"), True),
        ("workspace-write", ("untrusted",), False),
        ("danger-full-access", ("untrusted", "on-request"), False),
        ("danger-full-access", ("untrusted", "never"), True),
    ],
)
async def test_a_review_asks_nobody_so_the_ceiling_counts_for_that(
    sandbox: str,
    policies: tuple[str, ...],
    allowed: bool,
    tmp_path: Path,
    autojump_clock: MockClock,
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.settings = replace(
            stored.settings, sandbox=sandbox, approval_policy="untrusted"
        )
        caller = device(sandbox=sandbox, policies=policies)
        if allowed:
            await review(house, caller)
            return
        with pytest.raises(Forbidden) as refused:
            await review(house, caller)
        assert refused.value.data["field"] == "approvalPolicy"
        assert "review" not in house.runtime.log


@pytest.mark.parametrize("name", ACTS)
async def test_what_nobody_answered_is_unknown_and_never_sent_again(
    name: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1", "t2")

        def hangs() -> None:
            house.runtime.writers[0].hangs = True

        house.runtime.at(name, hangs)
        for _ in range(2):
            with pytest.raises(OutcomeUnknown):
                await ACTS[name](house)
        assert house.runtime.log.count(name) == 1
        assert row_state(tmp_path, KEY) is RowState.UNKNOWN


async def test_a_lost_answer_is_made_up_for_where_the_turns_are_seen_to_be_gone(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1", "t2", "t3")

        def done_but_lost() -> None:
            del stored.turns[1:]
            house.runtime.writers[0].hangs = True

        house.runtime.at("revert", done_but_lost)
        assert await revert(house) == "t1"
        assert told(house) == ["t1"]
        assert row_state(tmp_path, KEY) is RowState.DONE
        assert house.runtime.log.count("revert") == 1


async def test_a_text_over_the_limit_is_refused_before_anything(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        with pytest.raises(TooLarge):
            await review(house, text="x" * 200_001)
        assert house.runtime.log.count("read_thread") == 0


async def test_a_review_takes_no_words_and_says_so(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        turn = await review(house)

        def refuses() -> None:
            raise CodexRefusedError("turn/steer", -32600, "cannot steer a review turn")

        house.runtime.at("steer", refuses)
        with pytest.raises(Conflict) as refused:
            await house.door.admission.start_turn(LOCAL, send(delivery="steer"))
        assert refused.value.data["what"] == "running"
        assert refused.value.data["turn"]["id"] == turn.id
        assert house.runtime.writers[0].running_turn_id == turn.id
