"""A message that waited and was not sent: its person is told, whoever listened just then."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import CodexRefusedError, ThreadArchivedError
from agent.access.scopes import Caller
from agent.errors import StoreUnavailableError
from agent.limits import (
    DROPPED_MS,
    DROPPED_WORDS,
    OWNER_QUEUE,
    QUEUE_A_DEVICE,
    QUEUE_A_THREAD,
    QUEUE_A_THREAD_A_DEVICE,
    QUEUE_ALL,
    QUEUE_MS,
)
from agent.queue.queue_table import QueueTable
from agent.records.store import Store
from tests.faults.test_clock_jumps import Machine
from tests.support.door import LOCAL, House, device, open_house
from tests.support.fake_runtime import FakeRuntime
from tests.support.queued import listed, notices, put, queued, shut_out, texts, until
from transport.errors import NotFound, Overloaded
from transport.protocol.queue import DroppedMessage, QueueListParams

RESUME = "thread/resume"


async def dropped(
    house: House, caller: Caller = LOCAL, thread_id: str | None = None
) -> list[DroppedMessage]:
    params = QueueListParams(thread_id=thread_id)
    return (await house.door.acts.queue.waiting(caller, params)).dropped


def noted(folder: Path) -> list[tuple[str, str]]:
    """Return device and code of each drop that the audit log names."""
    lines = (folder / "audit.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [(e["device"], e["code"]) for e in found if e["event"] == "message/dropped"]


async def queue_as(house: House, caller: Caller, number: int, thread: str) -> str:
    result = await house.door.admission.start_turn(caller, queued(number, thread))
    assert result.queued is not None
    return result.queued.queue_id


async def test_what_got_too_old_while_no_agent_ran_is_told_for_a_day_of_running(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    machine, runtime = Machine(), FakeRuntime()
    runtime.add("thr", "t1")
    async with open_house(tmp_path, runtime=runtime, clocks=machine.clocks) as house:
        await house.door.ledger.prune()
        house.see_desktop()
        (one,) = await put(house, 1)
    machine.restart(off_ms=2 * QUEUE_MS)
    for _ in range(2):  # told by the run that dropped it, and by the next
        store = Store.open(tmp_path / "ledger.sqlite")
        async with open_house(
            tmp_path, runtime=runtime, store=store, clocks=machine.clocks
        ) as house:
            await trio.sleep(1)
            await house.door.ledger.prune()
            (row,) = await dropped(house)
            assert (row.queue_id, row.thread_id, row.device_id) == (one, "thr", "local")
            assert (row.code, row.preview, row.error) == (
                "queueExpired",
                "message 1",
                None,
            )
            assert await dropped(house, thread_id="thr") == [row]
        machine.restart(off_ms=3 * DROPPED_MS)  # a weekend is no day of running
    store = Store.open(tmp_path / "ledger.sqlite")
    async with open_house(
        tmp_path, runtime=runtime, store=store, clocks=machine.clocks
    ) as house:
        await trio.sleep(DROPPED_MS / 1_000 - 60)
        assert await dropped(house)
        await trio.sleep(3_700)
        assert await dropped(house) == []
        assert QueueTable(store).load_dropped() == []
    assert noted(tmp_path) == [("local", "queueExpired")]
    assert texts(house) == []


async def test_one_that_was_being_sent_when_the_agent_died_is_told_by_the_next(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    runtime.keeps_keys = False
    copy = tmp_path / "copy"

    def dies() -> None:  # as it is on the disk while Codex is asked
        copy.mkdir()
        for path in tmp_path.glob("ledger.sqlite*"):
            (copy / path.name).write_bytes(path.read_bytes())

    async with open_house(tmp_path, runtime=runtime) as house:
        runtime.at("start_turn:done", dies)
        await put(house, 1)
        await until(copy.exists)
    store = Store.open(copy / "ledger.sqlite")
    store.recover()
    async with open_house(copy, runtime=runtime, store=store) as house:
        await until(lambda: bool(notices(house)))
        await trio.sleep(1)
        (row,) = await dropped(house)
        assert (row.code, row.preview) == ("queueUnknown", "message 1")
        assert noted(copy) == [("local", "queueUnknown")]
        assert await listed(house) == []


async def test_what_codex_refused_is_told_with_the_code_of_the_refusal(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")

        def no() -> None:
            raise CodexRefusedError("turn/start", -32600, "no such model " + "m" * 900)

        house.runtime.at("start_turn", no)
        await put(house, 1, 2)
        await until(lambda: texts(house) == ["message 2"])
        (row,) = await dropped(house)
        assert (row.code, row.error) == ("queueRefused", "runtimeError")
        assert "no such model" in row.message
        assert len(row.message) == DROPPED_WORDS
        (row,) = await dropped(house, device())
        assert "model" not in row.message  # nor is a device told Codex's words later
        assert notices(house) == ["queueRefused"]


async def test_of_a_device_that_is_out_it_is_told_that_they_were_dropped_and_no_word(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        phone = house.callers["d1"] = device()

        def no() -> None:
            raise CodexRefusedError("turn/start", -32600, "no")

        house.runtime.at("start_turn", no)
        first = await queue_as(house, phone, 1, "thr")
        await until(lambda: bool(notices(house)))
        house.see_desktop()
        second = await queue_as(house, phone, 2, "thr")
        (row,) = await dropped(house)
        assert row.preview == "message 1"
        await shut_out(house, "d1")
    store = Store.open(tmp_path / "ledger.sqlite")
    async with open_house(tmp_path, store=store) as house:
        rows = {row.queue_id: row for row in await dropped(house)}
        assert {one: row.code for one, row in rows.items()} == {
            first: "queueRefused",
            second: "queueDropped",
        }
        assert {row.preview for row in rows.values()} == {""}
        assert noted(tmp_path) == [("d1", "queueRefused"), ("d1", "queueDropped")]


async def test_a_device_is_told_of_threads_that_are_there_for_it_also_after_a_restart(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    runtime.add("far", "t1", cwd="/far")
    async with open_house(tmp_path, runtime=runtime) as house:
        house.see_desktop()
        for number, thread in enumerate(("thr", "far")):
            await queue_as(house, device(device_id="d2", roots=["/"]), number, thread)
        await shut_out(house, "d2")
        assert [row.thread_id for row in await dropped(house)] == ["thr", "far"]
        assert [row.thread_id for row in await dropped(house, device())] == ["thr"]
    store = Store.open(tmp_path / "ledger.sqlite")
    async with open_house(tmp_path, runtime=runtime, store=store) as house:
        assert [row.thread_id for row in await dropped(house, device())] == ["thr"]
        with pytest.raises(NotFound):
            await dropped(house, device(), "far")


async def test_one_whose_device_is_shut_out_while_it_is_sent_is_not_said_to_be_unsent(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        phone = house.callers["d1"] = device()
        go_on = trio.Event()
        house.runtime.at("start_turn:done", go_on.wait)
        await queue_as(house, phone, 1, "thr")
        await until(lambda: texts(house) == ["message 1"])
        await shut_out(house, "d1")
        assert notices(house) == ["queueUnknown"]
        told = [(row.code, row.preview) for row in await dropped(house)]
        assert told == [("queueUnknown", "")]
        go_on.set()
        await trio.sleep(1)
        assert await dropped(house) == []  # it was delivered, as it shows by now


async def test_a_disk_that_takes_no_trace_still_forgets_the_message(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    async with open_house(tmp_path, runtime=runtime) as house:
        house.see_desktop()
        phone = house.callers["d1"] = device()
        await queue_as(house, phone, 1, "thr")
        remove = QueueTable.remove
        with monkeypatch.context() as disk:

            def only_less(
                table: QueueTable, ids: list[str], told: object = None
            ) -> None:
                if told:
                    raise StoreUnavailableError("the disk is full")
                remove(table, ids)

            disk.setattr(QueueTable, "remove", only_less)
            await shut_out(house, "d1")
        table = QueueTable(house.door.backlog._table._store)  # pyright: ignore[reportPrivateUsage]
        assert table.load() == []
        assert table.load_dropped() == []
        assert [row.code for row in await dropped(house)] == ["queueDropped"]
        await house.door.backlog.catch_up()
        assert [row.code for row in table.load_dropped()] == ["queueDropped"]


async def test_rights_that_grow_while_a_message_is_sent_send_it_with_the_new_ones(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        alive = [True, True]

        def grant() -> None:
            alive[0] = False
            house.callers["d1"] = replace(device("read", "write"), alive=lambda: True)

        house.callers["d1"] = replace(device("read", "write"), alive=lambda: alive[0])
        house.runtime.at("resume", grant)
        await queue_as(house, house.callers["d1"], 1, "thr")
        await until(lambda: texts(house) == ["message 1"])
        assert notices(house) == []
        assert await dropped(house) == []


@pytest.mark.parametrize("now", ["read", "gone"])
async def test_rights_that_end_while_a_message_is_sent_drop_it(
    now: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        alive = [True]

        def shrink() -> None:
            alive[0] = False
            del house.callers["d1"]
            if now == "read":
                house.callers["d1"] = device("read")

        house.callers["d1"] = replace(device("read", "write"), alive=lambda: alive[0])
        house.runtime.at("resume", shrink)
        await queue_as(house, house.callers["d1"], 1, "thr")
        await until(lambda: bool(notices(house)))
        code = "queueDropped" if now == "gone" else "queueRefused"
        assert notices(house) == [code]
        (row,) = await dropped(house)
        assert (row.code, row.preview) == (code, "" if now == "gone" else "message 1")
        await trio.sleep(60)
        assert texts(house) == []


async def test_a_codex_that_refuses_for_now_is_waited_for_with_longer_and_longer_pauses(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        broken = [True]

        def no() -> None:
            house.runtime.at("resume", no)
            if broken[0]:
                raise CodexRefusedError(
                    RESUME, -32600, "config.toml:16: unclosed array"
                )

        house.runtime.at("resume", no)
        await put(house, 1)
        await trio.sleep(3_600)
        params = QueueListParams(thread_id="thr")
        (row,) = (await house.door.acts.queue.waiting(LOCAL, params)).queue
        assert row.waits_for == "codex"
        assert row.waits_message is not None
        assert "config.toml:16: unclosed array" in row.waits_message
        (row,) = (await house.door.acts.queue.waiting(device(), params)).queue
        assert row.waits_message is not None
        assert "config" not in row.waits_message  # Codex's words may name paths
        changes = [(one.data, one.public) for one in house.named("queue/changed")]
        assert "config.toml" in str(changes[-1][0])
        assert "config.toml" not in str(changes[-1][1])
        assert 10 < len(house.runtime.writers) < 25  # not 1,800, as each two seconds
        broken[0] = False
        await until(lambda: texts(house) == ["message 1"])
        assert notices(house) == []


async def test_an_archived_thread_is_not_waited_for(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")

        def archived() -> None:
            message = "session x is archived. Run codex unarchive"
            raise ThreadArchivedError(RESUME, -32600, message)

        house.runtime.at("resume", archived)
        await put(house, 1)
        await until(lambda: bool(notices(house)))
        (row,) = await dropped(house)
        assert (row.code, row.error) == ("queueRefused", "notResumable")


async def test_one_device_leaves_places_for_another_and_the_owner_has_some_of_its_own(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    threads = [f"thr{number}" for number in range(QUEUE_ALL)]
    async with open_house(tmp_path) as house:
        for thread in threads:
            house.runtime.add(thread, "t1")
        house.see_desktop()
        first, second, third = (device(device_id=one) for one in ("d1", "d2", "d3"))

        async def fill(caller: Caller, most: int) -> None:
            for number in range(most):
                await queue_as(house, caller, number, threads[number % 64])
            await full(caller, most)

        async def full(caller: Caller, limit: int) -> None:
            with pytest.raises(Overloaded) as refused:
                await queue_as(house, caller, 999, threads[-1])
            assert refused.value.data == {"limit": limit}

        await fill(first, QUEUE_A_DEVICE)
        await fill(second, QUEUE_A_DEVICE)
        await full(third, QUEUE_ALL)
        await fill(LOCAL, OWNER_QUEUE)


async def test_nor_does_one_take_all_places_of_a_thread(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()
        ours = {QUEUE_A_THREAD_A_DEVICE: device(), QUEUE_A_THREAD: LOCAL}
        for most, caller in ours.items():
            for number in range(most):
                await queue_as(house, caller, number, "thr")
            with pytest.raises(Overloaded) as refused:
                await queue_as(house, caller, 99, "thr")
            assert refused.value.data == {"limit": most}
        other = device(device_id="d2")
        for number in range(QUEUE_A_THREAD - QUEUE_A_THREAD_A_DEVICE):
            await queue_as(house, other, number, "thr")
        with pytest.raises(Overloaded):
            await queue_as(house, other, 99, "thr")
