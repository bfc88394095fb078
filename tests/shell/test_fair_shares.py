"""Devices that work together against the others, or that simply do much."""

from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from agent.access.scopes import LOCAL as OWNER
from agent.app_servers.reads import Reads
from agent.edge_limits import (
    READS_A_DEVICE,
    READS_AT_ONCE,
    UNSENT_A_DEVICE,
    UNSENT_ALL,
)
from agent.limits import OWNER_WRITERS, WRITERS, WRITERS_A_DEVICE
from tests.support.door import LOCAL, device, open_house, send
from transport.errors import Overloaded
from transport.protocol.turns import TurnStatus


def params(number: int) -> Any:
    return send(f"thr{number}", key=f"key-{number:020d}")


async def test_one_device_leaves_a_writer_for_others_and_all_leave_one_for_the_owner(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        for number in range(8):
            house.runtime.add(f"thr{number}", "t1", cwd="/work")
        hog, other = device(device_id="hog"), device(device_id="other")
        start = house.door.admission.start_turn
        for number in range(WRITERS_A_DEVICE):
            await start(hog, params(number))
        with pytest.raises(Overloaded) as refused:
            await start(hog, params(4))
        assert refused.value.retryable
        await start(other, params(5))
        assert len(house.runtime.live) == WRITERS
        with pytest.raises(Overloaded):
            await start(other, params(6))
        await start(LOCAL, params(6))
        assert len(house.runtime.live) == WRITERS + OWNER_WRITERS
        with pytest.raises(Overloaded):
            await start(LOCAL, params(7))
        house.runtime.writers[0].finish_turn(TurnStatus.COMPLETED)
        await start(hog, params(4))  # its idle one makes room
        assert len(house.runtime.live) == WRITERS + OWNER_WRITERS


class Hogs:
    """Reads that never end. `reading`: who is being answered now."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.reads = Reads()
        self.reading: list[str] = []
        self._nursery = nursery

    def read(self, device_id: str, times: int) -> None:
        for _ in range(times):
            self._nursery.start_soon(self._read, device_id)

    async def _read(self, device_id: str) -> None:
        async with self.reads.turn(device_id):
            self.reading.append(device_id)
            await trio.sleep(1)
            self.reading.remove(device_id)


async def test_devices_that_read_together_leave_room_for_the_owner_and_turns_for_all(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        hogs = Hogs(nursery)
        for number in range(8):
            hogs.read(f"hog{number}", 200)
        await trio.testing.wait_all_tasks_blocked()
        assert len(hogs.reading) == READS_AT_ONCE
        hogs.read("honest", 1)
        hogs.read(OWNER, READS_A_DEVICE)
        await trio.testing.wait_all_tasks_blocked()
        assert hogs.reading.count(OWNER) == READS_A_DEVICE, "the owner never waits"
        rounds = 0
        while "honest" not in hogs.reading:
            await trio.sleep(0.999)
            rounds += 1
        assert rounds <= 5, "at most a share of each is before it"
        nursery.cancel_scope.cancel()
    assert not hogs.reads._lines, "nothing is left of who has gone"  # pyright: ignore[reportPrivateUsage]


async def test_where_devices_take_nothing_who_holds_waits_and_who_takes_goes_on(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        hogs = Hogs(nursery)
        lame = UNSENT_ALL // UNSENT_A_DEVICE
        for number in range(lame):
            hogs.reads.note_unsent(f"lame{number}", UNSENT_A_DEVICE)
        hogs.reads.note_unsent(OWNER, UNSENT_A_DEVICE)  # not one of them
        hogs.read("some", 1)
        await trio.testing.wait_all_tasks_blocked()
        assert hogs.reading == ["some"], "at the bound, and not above it"
        hogs.reads.note_unsent("some", 1_000)
        await trio.sleep(2)

        hogs.read("some", 3)
        hogs.read("lame0", 3)
        hogs.read("honest", 3)
        hogs.read(OWNER, 3)
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(hogs.reading) == ["honest", *[OWNER] * 3]
        hogs.reads.note_unsent("honest", 500_000)
        await trio.sleep(2)
        assert hogs.reading == [], "it has one answer, and is to take that first"
        hogs.reads.note_unsent("honest", -500_000)
        await trio.sleep(0.5)
        assert hogs.reading == ["honest"], "one at a time"
        await trio.sleep(1)
        assert hogs.reading == ["honest"]
        hogs.reads.note_unsent("some", -1_000)
        await trio.testing.wait_all_tasks_blocked()
        assert hogs.reading.count("some") == 3, "below the bound all go on"
        assert hogs.reading.count("lame0") == 3
        await trio.sleep(2)
        hogs.reads.note_unsent(OWNER, -UNSENT_A_DEVICE)
        for number in range(lame):
            hogs.reads.note_unsent(f"lame{number}", -UNSENT_A_DEVICE)
        assert not hogs.reads._lines, "nothing is left of who has gone"  # pyright: ignore[reportPrivateUsage]
        assert not hogs.reads._reading  # pyright: ignore[reportPrivateUsage]


async def test_reads_that_began_together_pass_the_bound_of_all_by_what_reads_at_once(
    autojump_clock: MockClock,
) -> None:
    """Whoever waited for a place among all looks again whether there still is room."""
    async with trio.open_nursery() as nursery:
        hogs = Hogs(nursery)
        for number in range(8):
            hogs.read(f"hog{number}", 200)
        await trio.testing.wait_all_tasks_blocked()
        hogs.reads.note_unsent("lame", UNSENT_ALL + 1)
        before = list(hogs.reading)
        assert len(before) == READS_AT_ONCE
        for number in range(8):
            hogs.reads.note_unsent(f"hog{number}", 1)
        await trio.sleep(1.5)
        assert hogs.reading == [], "those that had begun, and no more"
        nursery.cancel_scope.cancel()
