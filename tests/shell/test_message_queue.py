"""Messages that wait: delivered when the thread is free, once, in order."""

import errno
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import NoAnswerError
from adapter.runtime.reader import PendingWork
from agent.errors import StoreUnavailableError
from agent.limits import DELIVERIES, DELIVERIES_A_DEVICE, QUEUE_A_THREAD
from agent.records.audit import Audit, Value
from agent.records.store import Store
from tests.support.door import LOCAL, device, open_house, send, wall_ms
from tests.support.fake_runtime import FakeRuntime
from tests.support.queued import listed, notices, put, queued, texts, until
from transport.errors import (
    CodexUnavailable,
    Conflict,
    Overloaded,
)
from transport.protocol.events import QueueChanged
from transport.protocol.queue import QueueListParams, WaitsFor
from transport.protocol.turns import MentionInput


def full(*_args: object) -> None:
    raise StoreUnavailableError("the disk is full")


async def test_messages_are_delivered_in_order_each_after_the_turn_before(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        ids = await put(house, 1, 2)
        writer = house.runtime.writers[0]
        await trio.sleep(60)
        assert texts(house) == ["go on"]
        assert await listed(house) == ids
        writer.finish_turn()
        await until(lambda: len(texts(house)) == 2)
        await trio.sleep(60)
        assert writer.sent[-1] == ("message 1", ids[0])
        assert await listed(house) == ids[1:]
        writer.finish_turn()
        await until(lambda: len(texts(house)) == 3)
        assert writer.sent[-1] == ("message 2", ids[1])
        assert await listed(house) == []
        last = house.named("queue/changed")[-1].data
        assert isinstance(last, QueueChanged)
        assert last.queue == []


async def test_a_key_that_a_full_disk_did_not_free_queues_once(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        with monkeypatch.context() as disk:

            def fills() -> None:
                house.open_desktop()
                disk.setattr(Store, "drop", full)

            house.runtime.at("start_turn", fills)
            with pytest.raises(CodexUnavailable):
                await house.door.admission.start_turn(LOCAL, send())
        first = await house.door.admission.start_turn(LOCAL, send(delivery="queue"))
        await house.door.keys.catch_up()
        again = await house.door.admission.start_turn(LOCAL, send(delivery="queue"))
        assert again == first
        assert first.queued is not None
        assert await listed(house) == [first.queued.queue_id]


async def test_an_idle_thread_gets_its_message_at_once_and_a_waiting_one_holds_no_lease(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()
        await put(house, 1)
        await trio.sleep(120)
        assert house.runtime.writers == []
        row = (await house.door.acts.queue.waiting(LOCAL, QueueListParams())).queue[0]
        assert row.waits_for is WaitsFor.GATE
        assert row.preview == "message 1"
        await house.close_desktop()
        await until(lambda: texts(house) == ["message 1"])


async def test_a_desktop_that_opens_right_before_the_delivery_defers_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("start_turn", house.open_desktop)
        await put(house, 1)
        await trio.sleep(30)
        assert texts(house) == []
        await house.close_desktop()
        await until(lambda: texts(house) == ["message 1"])
        await trio.sleep(60)
        assert texts(house) == ["message 1"]


async def test_a_thread_that_somebody_holds_is_waited_for_without_a_writer(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.hold("thr")
        await put(house, 1)
        await trio.sleep(30)
        assert house.runtime.writers == []
        row = (await house.door.acts.queue.waiting(LOCAL, QueueListParams())).queue[0]
        assert row.waits_for is WaitsFor.WRITER
        house.give_back("thr")
        await until(lambda: texts(house) == ["message 1"])


async def test_others_work_in_the_thread_is_waited_for(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.pending = PendingWork(queue=("theirs",))
        await put(house, 1)
        await trio.sleep(5)
        answer = await house.door.acts.queue.waiting(
            LOCAL, QueueListParams(thread_id="thr")
        )
        assert answer.codex_queue == ["theirs"]
        assert answer.queue[0].waits_for is WaitsFor.CODEX_QUEUE
        stored.pending = PendingWork()
        await until(lambda: texts(house) == ["message 1"])


async def test_the_queueing_is_what_the_key_stands_for(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        first = await put(house, 1)
        assert await put(house, 1) == first
        assert await listed(house) == first
        with pytest.raises(Conflict) as caught:
            await house.door.admission.start_turn(LOCAL, queued(2, expected="older"))
        assert caught.value.data["what"] == "lastTurn"
        assert await listed(house) == first


async def test_a_thread_holds_so_many_and_no_more(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.add("thr2", "t1")
        house.see_desktop()
        await put(house, *range(QUEUE_A_THREAD))
        with pytest.raises(Overloaded) as caught:
            await put(house, 99)
        assert caught.value.data["limit"] == QUEUE_A_THREAD
        await house.door.admission.start_turn(LOCAL, queued(100, "thr2"))


async def test_a_message_survives_a_restart_and_is_sent_then(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    async with open_house(tmp_path, runtime=runtime) as house:
        runtime.add("thr", "t1")
        house.see_desktop()
        await house.door.admission.start_turn(LOCAL, queued(1, model="m-2"))
    store = Store.open(tmp_path / "ledger.sqlite")
    store.recover()
    async with open_house(tmp_path, runtime=runtime, store=store) as house:
        house.door.keeper.look()
        await until(lambda: texts(house) == ["message 1"])
        assert runtime.threads["thr"].settings.model == "m-2"


async def test_a_delivery_without_an_answer_is_not_tried_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.keeps_keys = False
        house.runtime.add("thr", "t1")

        def silence() -> None:
            raise NoAnswerError("turn/start")

        house.runtime.at("start_turn:done", silence)
        await put(house, 1)
        await until(lambda: bool(notices(house)))
        assert notices(house) == ["queueUnknown"]
        await trio.sleep(600)
        assert texts(house) == ["message 1"]
        assert await listed(house) == []


def divide() -> None:
    raise ZeroDivisionError


def misread() -> None:
    QueueListParams.model_validate({"unknown": 1})


@pytest.mark.parametrize("fault", [divide, misread])
async def test_a_fault_of_ours_in_a_delivery_ends_nothing_and_the_message_goes_later(
    fault: Callable[[], None], tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")

        for _ in range(3):
            house.runtime.at("start_turn", fault)
        await put(house, 1)
        await until(lambda: house.runtime.log.count("start_turn") == 1)
        began = trio.current_time()
        await until(lambda: texts(house) == ["message 1"])
        assert trio.current_time() - began > 12  # after 2, 4 and 8 s
        await trio.sleep(1)
        assert (await listed(house), notices(house)) == ([], [])


async def test_of_many_threads_whose_messages_wait_so_many_are_tried_at_once(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.see_desktop()
        callers = [LOCAL, device(), device(device_id="d2")]
        house.callers.update((one.device_id, one) for one in callers)
        go_on = trio.Event()
        for number in range(20):
            house.runtime.add(f"thr{number}", "t1")
            message = queued(number, f"thr{number}")
            await house.door.admission.start_turn(callers[number // 7], message)
        for _ in range(20):
            house.runtime.at("read_thread", go_on.wait)
        await house.close_desktop()
        backlog = house.door.backlog
        await until(lambda: len(backlog.delivering) >= 2 * DELIVERIES)
        await trio.sleep(1)
        rows = [
            one for one in backlog.book.heads() if one.queue_id in backlog.delivering
        ]
        begun = Counter(one.device_id for one in rows)
        assert begun == {"local": DELIVERIES, "d1": DELIVERIES_A_DEVICE, "d2": 1}
        go_on.set()
        while len(texts(house)) < 20:
            for writer in house.runtime.live:
                if writer.running_turn_id is not None:
                    writer.finish_turn()
            await trio.sleep(1)
        await trio.sleep(1)
        assert sorted(texts(house)) == sorted(f"message {n}" for n in range(20))


async def test_a_fault_of_ours_while_a_message_is_stored_blocks_no_other(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    class Faulty(Audit):
        def record(self, event: str, **fields: Value) -> None:
            if event == "turn/queue" and not faults:
                faults.append(event)
                raise ZeroDivisionError
            super().record(event, **fields)

    faults: list[str] = []
    audit = Faulty(tmp_path / "audit.jsonl", now_ms=wall_ms)
    async with open_house(tmp_path, audit=audit) as house:
        house.runtime.add("thr", "t1")
        with pytest.raises(ZeroDivisionError):
            await put(house, 1)
        await put(house, 2)
        await until(lambda: texts(house) == ["message 2"])


async def test_a_message_is_not_dropped_because_no_descriptor_was_left_for_its_file(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes").touch()
    tries: list[str] = []

    def starved(path: str, _flags: int) -> NoReturn:
        tries.append(path)
        raise OSError(errno.EMFILE, "too many open files")

    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1", cwd=str(tmp_path))
        house.see_desktop()
        mention = MentionInput(type="mention", path="notes")
        message = queued(1)
        message = message.model_copy(update={"input": [*message.input, mention]})
        await house.door.admission.start_turn(LOCAL, message)
        with monkeypatch.context() as patched:
            patched.setattr("agent.files.beneath.os.open", starved)
            await house.close_desktop()
            await until(lambda: len(tries) > 1)
        await until(lambda: texts(house) == ["message 1"])
        assert notices(house) == []
