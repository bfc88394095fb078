"""A disk that takes its time: what is said to wait does, what is taken back does not."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import CodexRefusedError
from agent.limits import ACT_S
from agent.queue.queue_table import QueueTable
from agent.records.audit import Audit, Value
from agent.records.store import Store
from tests.support.asked import asked, audited
from tests.support.door import LOCAL, device, open_house, send, wall_ms
from tests.support.keyed_acts import interrupt
from tests.support.queued import delete, listed, put, queued, shut_out, texts, until
from transport.errors import Internal, RuntimeFailure
from transport.protocol.approvals import ApprovalState

T = TypeVar("T")


class SlowDisk:
    """Begins no work while `stalls` says so, for as long as `is_slow`."""

    def __init__(self) -> None:
        self.is_slow = False
        self.stalls: Callable[[], bool] = lambda: True
        self.stalled = 0
        self.is_at_work = False

    async def __call__(self, work: Callable[[], T], /) -> T:
        await trio.lowlevel.checkpoint()
        if self.is_slow and self.stalls():
            self.stalled += 1
            while self.is_slow:  # noqa: ASYNC110 - the mock clock is what is advanced
                await trio.sleep(1)
        self.is_at_work = True
        try:
            return work()
        finally:
            self.is_at_work = False


class WatchedAudit(Audit):
    """Notes what is written while no disk is waited for: then the event loop waits."""

    def __init__(self, path: Path, disk: SlowDisk) -> None:
        super().__init__(path, now_ms=wall_ms)
        self.disk = disk
        self.written: list[str] = []
        self.in_the_way: list[str] = []

    def note(self, event: str, **fields: Value) -> None:
        self._look(event)
        super().note(event, **fields)

    def record(self, event: str, **fields: Value) -> None:
        self._look(event)
        super().record(event, **fields)

    def catch_up(self) -> None:
        self._look("what is left")
        super().catch_up()

    def _look(self, event: str) -> None:
        (self.written if self.disk.is_at_work else self.in_the_way).append(event)


def on_disk(folder: Path) -> QueueTable:
    """Return the queue as the next Agent would find it."""
    return QueueTable(Store.open(folder / "ledger.sqlite"))


async def test_a_message_that_the_disk_does_not_take_in_time_does_not_wait(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    disk = SlowDisk()
    async with open_house(tmp_path, run=disk) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()
        disk.stalls = lambda: bool(house.door.backlog.book.threads())
        disk.is_slow = True
        with pytest.raises(Internal) as refused:
            await put(house, 1)
        assert (refused.value.data["what"], refused.value.retryable) == (
            "storage",
            True,
        )
        assert (await listed(house), on_disk(tmp_path).load()) == ([], [])
        disk.is_slow = False
        await put(house, 1)  # under the same key
        await house.close_desktop()
        await until(lambda: texts(house) == ["message 1"])


async def test_a_message_that_is_taken_back_meanwhile_is_forgotten_in_the_end(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    disk = SlowDisk()
    async with open_house(tmp_path, run=disk) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()
        (one,) = await put(house, 1)
        disk.stalls = lambda: not house.door.backlog.book.threads()
        disk.is_slow = True
        await house.door.admission.delete_queued(LOCAL, delete(one))
        assert len(on_disk(tmp_path).load()) == 1
        disk.is_slow = False
        await trio.sleep(ACT_S)
        await house.door.backlog.catch_up()
        assert on_disk(tmp_path).load() == []


async def test_no_word_of_a_device_stays_that_was_shut_out_while_one_was_written(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    disk = SlowDisk()
    async with open_house(tmp_path, run=disk) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()
        caller = house.callers["d1"] = device()
        await house.door.admission.start_turn(caller, queued(1))
        backlog = house.door.backlog
        (row,) = backlog.book.of_device("d1")
        disk.stalls = lambda: not disk.stalled  # the first write alone
        disk.is_slow = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(backlog.drop, row, "queueRefused", "It was refused.")
            await until(lambda: disk.stalled == 1)
            nursery.start_soon(shut_out, house, "d1")
            await trio.sleep(1)
            disk.is_slow = False
    (told,) = on_disk(tmp_path).load_dropped()
    assert (told.device_id, told.preview) == ("d1", "")


async def test_codex_s_output_waits_for_no_entry_of_the_audit_log(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    disk = SlowDisk()
    audit = WatchedAudit(tmp_path / "audit.jsonl", disk)
    async with open_house(tmp_path, run=disk, audit=audit) as house:
        house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send(key="k" * 32))
        (one,) = await put(house, 1)
        await house.door.admission.delete_queued(LOCAL, delete(one))
        await interrupt(house)
    acts = ["turn/start", "turn/queue", "queue/delete", "turn/interrupt"]
    assert (audit.written, audit.in_the_way) == (acts, [])


async def test_nor_for_that_of_a_question_that_nobody_decided(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    disk = SlowDisk()
    audit = WatchedAudit(tmp_path / "audit.jsonl", disk)
    async with open_house(tmp_path, run=disk, audit=audit) as house:
        first, second = await asked(house), house.runtime.writers[-1].ask()
        audit.written.clear()
        disk.is_slow = True
        house.runtime.writers[0].resolve(first.id, ApprovalState.EXPIRED)
        await trio.sleep(60)
        assert audited(tmp_path) == []
        house.runtime.writers[0].resolve(second.id, ApprovalState.WITHDRAWN)
        audit.leave("approval/seen")  # as who comes while it waits
        disk.is_slow = False
        await trio.sleep(2)
        assert [one["event"] for one in audited(tmp_path)] == [
            "approval/expired",
            "approval/withdrawn",
            "approval/seen",
        ]
    assert (audit.written, audit.in_the_way) == (["what is left"], [])


async def test_a_writer_whose_message_was_refused_ends_though_that_is_not_written_yet(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    disk = SlowDisk()
    async with open_house(tmp_path, run=disk) as house:
        house.runtime.add("thr", "t1")

        def refuse() -> None:
            disk.is_slow = True
            raise CodexRefusedError("turn/start", -32600, "no")

        house.runtime.at("start_turn", refuse)
        with pytest.raises(RuntimeFailure):
            await house.door.admission.start_turn(LOCAL, send())
        assert house.runtime.live == []
        disk.is_slow = False
        await house.door.admission.start_turn(LOCAL, send())  # under the same key
        assert texts(house) == ["go on"]


async def test_a_message_whose_device_is_put_out_while_it_is_stored_is_not_on_the_disk(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    disk = SlowDisk()
    async with open_house(tmp_path, run=disk) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()
        caller = house.callers["d1"] = device()
        disk.stalls = lambda: bool(house.door.backlog.book.threads())
        disk.is_slow = True
        async with trio.open_nursery() as act:
            act.start_soon(house.door.admission.start_turn, caller, queued(1))
            await until(lambda: disk.stalled == 1)
            house.door.backlog.withdraw("d1")
            disk.is_slow = False
            await house.door.backlog.catch_up()  # before the message is there
            act.cancel_scope.cancel(reason="the device was put out")
        assert on_disk(tmp_path).load() == []
