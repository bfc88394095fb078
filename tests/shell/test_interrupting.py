"""turn/interrupt: it passes a closed gate and a held lock, and ends what does not answer."""

from pathlib import Path

import pytest
from trio.testing import MockClock

from adapter.errors import CodexOverloadedError
from agent.records.key_row import RowState
from tests.support.door import (
    HOLDER,
    LOCAL,
    device,
    open_house,
    send,
)
from tests.support.mutations import KEY, OTHER_KEY, row_state, run_one, stop
from transport.errors import (
    Conflict,
    NotFound,
    ThreadOwnedElsewhere,
)
from transport.protocol.background import BackgroundStopParams
from transport.protocol.gateway import Writer, WriterKind
from transport.protocol.turns import (
    TurnStatus,
)


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


async def test_a_background_command_of_nobody_and_of_somebody_else(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        params = BackgroundStopParams(thread_id="thr", item_id="cmd", request_key=KEY)
        with pytest.raises(NotFound) as caught:
            await house.door.admission.stop_background(LOCAL, params)
        assert caught.value.data == {"kind": "command", "id": "cmd"}
        house.hold("thr")
        with pytest.raises(ThreadOwnedElsewhere) as held:
            await house.door.admission.stop_background(LOCAL, params)
        assert held.value.data["writer"]["pid"] == HOLDER.pid
        assert row_state(tmp_path, KEY) is None


async def test_an_interrupt_that_is_not_answered_ends_the_writer_and_so_the_turn(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer, turn_id = await run_one(house)
        writer.hangs = True
        await house.door.admission.interrupt(LOCAL, stop(turn_id))
        assert writer.reaped
        assert house.door.leases.rows() == []
        assert row_state(tmp_path, OTHER_KEY) is RowState.DONE


async def test_revoke_can_stop_what_the_device_started_and_nothing_else(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.add("mine", "t1")
        theirs = await house.door.admission.start_turn(device(), send())
        await house.door.admission.start_turn(LOCAL, send("mine", key=OTHER_KEY))
        stops = house.door.admission.stops_of("d1")
        assert list(stops) == [theirs.sent.id]
        for stop_it in stops.values():
            await stop_it()
        assert house.runtime.writers[0].running_turn_id is None
        assert house.runtime.writers[1].running_turn_id is not None


async def test_an_overloaded_codex_does_not_keep_a_turn_of_who_was_put_out(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        theirs = await house.door.admission.start_turn(device(), send())

        def refuse() -> None:
            raise CodexOverloadedError("turn/interrupt", -32001, "busy")

        house.runtime.at("interrupt", refuse)
        await house.door.admission.stops_of("d1")[theirs.sent.id]()
        assert house.runtime.live == [], (
            "nobody would say it again: its writer is ended"
        )
