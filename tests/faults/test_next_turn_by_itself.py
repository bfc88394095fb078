"""A turn of somebody else begins by itself, some ms after one of ours has ended.

What Codex's own queue does in a writer of ours, at each moment in which that writer would
be ended, on the fake: with real codex it is in `test_foreign_queue_and_goal`.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from adapter.runtime.reader import PendingWork
from agent.limits import NEXT_TURN_S, QUEUE_TAKE_S, WRITERS
from agent.mutations.thread_wishes import Archive
from tests.support.door import LOCAL, House, open_house, send
from tests.support.fake_writer import FakeWriter
from transport.errors import Conflict
from transport.protocol.gateway import LeaseState
from transport.protocol.thread_acts import ThreadArchiveParams

KEYS = [f"key-number-{number}-0123456789" for number in range(6)]
SOON_S = 0.01  # as Codex does it


async def one_turn(house: House, thread: str = "thr", key: int = 0) -> FakeWriter:
    house.runtime.add(thread, "t1")
    await house.door.admission.start_turn(LOCAL, send(thread, key=KEYS[key]))
    return house.runtime.writers[-1]


async def ends_and_theirs_follows(house: House, writer: FakeWriter) -> None:
    """Ours ends; what another queued begins a moment later."""
    stored = house.runtime.threads["thr"]
    stored.pending = PendingWork(queue=("theirs",))
    writer.finish_turn()
    await trio.sleep(SOON_S)
    stored.pending = PendingWork()
    assert not writer.reaped, "it was ended with their message in its hand"
    writer.begin_turn(["theirs"], client_key="theirs")


async def test_a_closed_gate_waits_for_what_follows(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        house.see_desktop()
        await ends_and_theirs_follows(house, writer)
        await trio.sleep(300)
        assert writer.running_turn_id is not None
        writer.finish_turn()
        await trio.sleep(NEXT_TURN_S + 0.1)
        assert writer.reaped


async def test_what_waits_and_does_not_begin_keeps_nobody_waiting(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """After an interrupt Codex's queue stays where it is."""
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        stored = house.runtime.threads["thr"]
        stored.pending = PendingWork(queue=("theirs",))
        house.see_desktop()
        writer.finish_turn()
        await trio.sleep(QUEUE_TAKE_S + 0.2)
        assert writer.reaped
        assert stored.pending.queue == ("theirs",)


async def test_a_store_that_cannot_be_asked_keeps_nobody_waiting(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        house.runtime.readers[0].die()
        await wait_all_tasks_blocked()
        house.see_desktop()
        writer.finish_turn()
        await trio.sleep(QUEUE_TAKE_S + 0.2)
        assert writer.reaped


async def test_a_store_that_hangs_keeps_nobody_waiting(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        for _ in range(9):
            house.runtime.at("pending_work", trio.sleep_forever)
        house.see_desktop()
        writer.finish_turn()
        await trio.sleep(2 * QUEUE_TAKE_S + 0.2)
        assert writer.reaped


async def test_a_writer_that_must_end_is_not_kept_by_a_store_that_hangs(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        writer.finish_turn()
        house.runtime.at("pending_work", partial(trio.sleep, 1.0))
        house.see_desktop()
        await trio.sleep(0.01)
        writer.begin_turn(["theirs"], client_key="theirs")
        lease = house.door.leases.lease_of("thr")
        assert lease is not None
        with trio.fail_after(QUEUE_TAKE_S):
            await house.door.pool.end(lease)
        assert writer.reaped


async def test_a_message_in_that_moment_goes_into_no_other_turn(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ends_and_theirs_follows, house, writer)
            await wait_all_tasks_blocked()
            with pytest.raises(Conflict) as caught:
                await house.door.admission.start_turn(LOCAL, send(key=KEYS[1]))
        assert caught.value.data["what"] == "running"
        assert [text for text, _ in writer.sent] == ["go on", "theirs"]
        assert not writer.reaped


async def test_archiving_in_that_moment_is_a_conflict(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        params = ThreadArchiveParams(thread_id="thr", request_key=KEYS[1])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ends_and_theirs_follows, house, writer)
            await wait_all_tasks_blocked()
            with pytest.raises(Conflict):
                await house.door.admission.fulfil(LOCAL, Archive(), params)
        assert not writer.reaped


async def test_one_writer_too_many_takes_the_place_of_one_in_which_nothing_follows(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        first = await one_turn(house)
        others = [await one_turn(house, f"thr{n}", n) for n in range(1, WRITERS + 1)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ends_and_theirs_follows, house, first)
            await wait_all_tasks_blocked()
            others[1].finish_turn()
            await one_turn(house, "last", WRITERS + 1)
        assert not first.reaped
        assert [writer.reaped for writer in others] == [False, True, False, False]


async def test_what_a_refused_message_has_loaded_is_shown_and_given_back(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """The message was refused after loading had begun another's turn: nobody of ours
    wants the writer, so it ends with that turn."""
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.pending = PendingWork(queue=("theirs",))

        def theirs() -> None:
            stored.pending = replace(stored.pending, queue=())
            house.runtime.writers[0].begin_turn(["theirs"], client_key="theirs")
            house.open_desktop()

        house.runtime.at("resume:done", theirs)
        params = send(expected="not-this", allow_pending=True)
        with pytest.raises(Conflict):
            await house.door.admission.start_turn(LOCAL, params)
        params = send(expected="t1", allow_pending=True)
        with pytest.raises(Conflict):
            await house.door.admission.start_turn(LOCAL, params)
        writer = house.runtime.writers[0]
        assert house.door.leases.state("thr") is LeaseState.HELD
        house.watch.foreign.clear()
        await trio.sleep(60)
        assert not writer.reaped
        writer.finish_turn()
        await trio.sleep(NEXT_TURN_S + 0.1)  # not after the idle time
        assert writer.reaped
