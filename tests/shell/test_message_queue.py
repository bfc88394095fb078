"""Messages that wait: delivered when the thread is free, once, in order, or dropped."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import NoAnswerError
from adapter.runtime.reader import PendingWork
from agent.errors import StoreUnavailableError
from agent.limits import QUEUE_A_THREAD, QUEUE_MS
from agent.records.store import Store
from tests.support.door import LOCAL, House, device, open_house, send
from tests.support.fake_runtime import FakeRuntime
from transport.errors import (
    CodexUnavailable,
    Conflict,
    Forbidden,
    NotFound,
    Overloaded,
)
from transport.protocol.events import Notice, QueueChanged
from transport.protocol.queue import QueueDeleteParams, QueueListParams, WaitsFor
from transport.protocol.turns import TurnStartParams


def queued(number: int = 0, thread_id: str = "thr", **more: Any) -> TurnStartParams:
    key = f"queue-key-{number:04}-abcdef"
    text = f"message {number}"
    return send(thread_id, text, key=key, delivery="queue", **more)


def delete(queue_id: str, key: str = "delete-key-0123456789") -> QueueDeleteParams:
    return QueueDeleteParams(queue_id=queue_id, request_key=key)


async def put(house: House, *numbers: int) -> list[str]:
    ids: list[str] = []
    for number in numbers:
        params = queued(number)
        result = await house.door.admission.start_turn(LOCAL, params)
        assert result.delivery == "queued"
        assert result.turn is None
        assert result.queued is not None
        ids.append(result.queued.queue_id)
    return ids


async def listed(house: House, thread_id: str | None = None) -> list[str]:
    params = QueueListParams(thread_id=thread_id)
    answer = await house.door.acts.queue.waiting(LOCAL, params)
    return [one.queue_id for one in answer.queue]


def texts(house: House) -> list[str]:
    return [text for writer in house.runtime.writers for text, _ in writer.sent]


def notices(house: House) -> list[str]:
    found = [event.data for event in house.named("notice")]
    return [data.code for data in found if isinstance(data, Notice)]


def full(*_args: object) -> None:
    raise StoreUnavailableError("the disk is full")


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(3_600):
        while not condition():  # noqa: ASYNC110 - the mock clock is what is advanced
            await trio.sleep(0.1)


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


async def test_a_message_can_be_taken_back_also_while_the_gate_is_closed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()
        one, two = await put(house, 1, 2)
        for _ in range(2):
            await house.door.admission.delete_queued(LOCAL, delete(one))
        assert await listed(house) == [two]
        with pytest.raises(NotFound):
            await house.door.admission.delete_queued(
                LOCAL, delete(one, "other-key-0123456789")
            )
        await house.close_desktop()
        await until(lambda: texts(house) == ["message 2"])


async def test_what_is_being_sent_cannot_be_taken_back(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        go_on = trio.Event()
        house.runtime.at("start_turn", go_on.wait)
        (one,) = await put(house, 1)
        await until(lambda: "start_turn" in house.runtime.log)
        with pytest.raises(Conflict) as caught:
            await house.door.admission.delete_queued(LOCAL, delete(one))
        assert caught.value.data["what"] == "queue"
        go_on.set()
        await until(lambda: texts(house) == ["message 1"])


async def test_a_message_is_dropped_with_a_notice_after_a_day(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()
        await put(house, 1)
        await trio.sleep(QUEUE_MS / 1_000 - 10)
        assert len(await listed(house)) == 1
        await trio.sleep(20)
        assert await listed(house) == []
        assert notices(house) == ["queueExpired"]
        await house.close_desktop()
        await trio.sleep(60)
        assert texts(house) == []


async def test_what_a_revoked_device_had_queued_is_dropped_with_a_notice(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()
        caller = house.callers["d1"] = device()
        await house.door.admission.start_turn(caller, queued(1))
        await house.door.admission.start_turn(LOCAL, queued(2))
        await house.door.backlog.drop_device("d1")
        assert notices(house) == ["queueDropped"]
        await house.close_desktop()
        await until(lambda: texts(house) == ["message 2"])
    store = Store.open(tmp_path / "ledger.sqlite")
    async with open_house(tmp_path, store=store) as house:
        house.runtime.add("thr", "t1")
        await trio.sleep(60)
        assert texts(house) == []


@pytest.mark.parametrize("why", ["scope", "ceiling", "gone"])
async def test_rights_are_those_of_the_moment_of_delivery(
    why: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        house.see_desktop()
        house.callers["d1"] = device()
        await house.door.admission.start_turn(house.callers["d1"], queued(1))
        if why == "scope":
            house.callers["d1"] = device("read")
        elif why == "gone":
            del house.callers["d1"]
        else:
            wide = replace(stored.settings, sandbox="danger-full-access")
            stored.settings = wide
        await house.close_desktop()
        await until(lambda: bool(notices(house)))
        assert notices(house) == ["queueDropped" if why == "gone" else "queueRefused"]
        assert texts(house) == []
        assert await listed(house) == []


@pytest.mark.parametrize("steps", range(10))
async def test_what_was_taken_back_just_as_its_delivery_begins_is_not_sent(
    steps: int, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        threads = [f"thr{number}" for number in range(4)]
        ids: list[str] = []
        house.see_desktop()
        for number, thread in enumerate(threads):
            house.runtime.add(thread, "t1")
            params = queued(number, thread)
            result = await house.door.admission.start_turn(LOCAL, params)
            assert result.queued is not None
            ids.append(result.queued.queue_id)
        await trio.sleep(1)
        await house.close_desktop()
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        try:
            await house.door.admission.delete_queued(LOCAL, delete(ids[-1]))
        except (Conflict, NotFound):
            return  # it is being sent, or was
        await trio.sleep(60)
        assert "message 3" not in texts(house)


async def test_a_device_sees_and_deletes_only_what_waits_in_its_threads(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.add("far", "t1", cwd="/far")
        house.see_desktop()
        await put(house, 1)
        result = await house.door.admission.start_turn(LOCAL, queued(2, "far"))
        assert result.queued is not None
        answer = await house.door.acts.queue.waiting(device(), QueueListParams())
        assert [one.thread_id for one in answer.queue] == ["thr"]
        with pytest.raises(NotFound):
            await house.door.admission.delete_queued(
                device(), delete(result.queued.queue_id)
            )
        with pytest.raises(Forbidden):
            await house.door.admission.delete_queued(
                device("read"), delete(answer.queue[0].queue_id)
            )


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
