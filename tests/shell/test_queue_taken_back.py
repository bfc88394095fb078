"""Messages that wait and are taken back, dropped, or lose the right to be sent."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from agent.limits import QUEUE_MS
from agent.records.store import Store
from tests.support.door import LOCAL, device, open_house
from tests.support.queued import (
    delete,
    listed,
    notices,
    put,
    queued,
    shut_out,
    texts,
    until,
)
from transport.errors import (
    Conflict,
    Forbidden,
    NotFound,
)
from transport.protocol.queue import QueueListParams


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


async def test_a_message_whose_day_ends_while_it_is_being_sent_is_not_called_unsent(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        go_on = trio.Event()
        house.runtime.at("start_turn", go_on.wait)
        house.see_desktop()
        await put(house, 1)
        await trio.sleep(QUEUE_MS / 1_000 - 10)
        await house.close_desktop()
        await until(lambda: "start_turn" in house.runtime.log)
        await trio.sleep(20)
        assert notices(house) == []
        go_on.set()
        await until(lambda: texts(house) == ["message 1"])
        await trio.sleep(1)
        assert (await listed(house), notices(house)) == ([], [])


async def test_what_a_revoked_device_had_queued_is_dropped_with_a_notice(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()
        caller = house.callers["d1"] = device()
        await house.door.admission.start_turn(caller, queued(1))
        await house.door.admission.start_turn(LOCAL, queued(2))
        await shut_out(house, "d1")
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
