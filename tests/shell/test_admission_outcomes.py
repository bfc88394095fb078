"""What is known of a mutation afterwards: it certainly had no effect, it may have had one, or the disk is full."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import (
    ChildExitedError,
    CodexRefusedError,
    NoAnswerError,
    NotDeliveredError,
)
from agent.records.audit import Audit
from agent.records.key_row import RowState
from agent.records.store import Store
from tests.support.door import (
    LOCAL,
    open_house,
    send,
    wall_ms,
)
from tests.support.mutations import (
    KEY,
    OTHER_KEY,
    nothing_is_left,
    raiser,
    row_state,
    run_one,
    stop,
)
from transport.errors import (
    CodexUnavailable,
    Internal,
    OutcomeUnknown,
    RuntimeFailure,
)
from transport.protocol.turns import (
    TurnStatus,
)

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
