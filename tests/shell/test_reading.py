"""Threads and turns as each caller may see them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import CodexRefusedError
from adapter.runtime.reader import TurnPage
from tests.support.door import LOCAL, OLD_CLI, device, open_house, send
from tests.support.fake_threads import make_thread, make_turn
from tests.support.mutations import at_the_desk
from transport.codec import pack
from transport.errors import InvalidParams, NotFound, RuntimeFailure
from transport.protocol.gateway import LeaseState, Writer, WriterKind
from transport.protocol.items import AgentMessage, ItemStatus
from transport.protocol.thread_acts import ThreadRevertParams
from transport.protocol.threads import (
    ThreadListParams,
    ThreadMode,
    ThreadReadParams,
    ThreadStatus,
)
from transport.protocol.turns import Turn, TurnListParams, TurnStatus

HOLDER = Writer(kind=WriterKind.IDE, name="Codex in an editor", pid=7, since=1)


async def test_a_thread_outside_the_roots_does_not_exist(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("in", "t1", cwd="/work/app")
        house.runtime.add("root", "t1", cwd="/work")
        house.runtime.add("out", "t1", cwd="/workshop")
        reading = house.door.reading
        listed = await reading.thread_list(device(), ThreadListParams())
        assert [row.id for row in listed.threads] == ["in", "root"]
        everything = await reading.thread_list(LOCAL, ThreadListParams())
        assert len(everything.threads) == 3
        follows = replace(device(roots=[]), follows_threads=True)
        assert (
            len((await reading.thread_list(follows, ThreadListParams())).threads) == 3
        )
        refusals: list[dict[str, object]] = []
        for thread_id in ("out", "never-was"):
            for call in (
                reading.thread_read(device(), ThreadReadParams(thread_id=thread_id)),
                reading.turn_list(device(), TurnListParams(thread_id=thread_id)),
            ):
                with pytest.raises(NotFound) as caught:
                    await call
                refusals.append({**caught.value.wire(), "data": None})
        assert all(refusal == refusals[0] for refusal in refusals)  # no oracle


async def test_a_folder_behind_a_link_counts_as_where_it_lies(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    async with open_house(tmp_path) as house:
        house.runtime.add("linked", "t1", cwd=str(inside / "link"))
        caller = device(roots=[str(inside)])
        listed = await house.door.reading.thread_list(caller, ThreadListParams())
        assert listed.threads == []


async def test_events_are_shown_only_of_threads_that_exist_for_the_device(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("in", "t1")
        house.runtime.add("out", "t1", cwd="/etc")
        sight = house.door.sight
        assert not sight.sees(device(), "in")  # nobody has told where it is
        await house.door.reading.thread_list(LOCAL, ThreadListParams())
        assert sight.sees(device(), "in")
        assert not sight.sees(device(), "out")
        assert sight.sees(LOCAL, "out")


async def test_our_running_turn_is_told_by_its_writer_not_by_the_store(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        started = await house.door.admission.start_turn(LOCAL, send())
        writer = house.runtime.writers[0]
        message = AgentMessage(
            id="m1",
            turn_id=started.sent.id,
            status=ItemStatus.IN_PROGRESS,
            text="so far",
        )
        writer.begin_item(message)
        read = await house.door.reading.thread_read(
            LOCAL, ThreadReadParams(thread_id="thr")
        )
        assert read.thread.status is ThreadStatus.RUNNING
        assert read.thread.mode is ThreadMode.LIVE
        assert read.thread.lease is LeaseState.HELD
        assert read.thread.last_turn_id == started.sent.id
        assert [turn.id for turn in read.turns] == [started.sent.id, "t1"]
        assert read.turns[0].status is TurnStatus.IN_PROGRESS
        assert read.turns[0].items == [message]
        listed = await house.door.reading.thread_list(LOCAL, ThreadListParams())
        assert listed.threads[0].status is ThreadStatus.RUNNING


async def test_a_turn_of_ours_that_ends_while_it_is_read_is_not_called_interrupted(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        started = await house.door.admission.start_turn(LOCAL, send())
        (reader,), (writer,) = house.runtime.readers, house.runtime.writers
        read = reader.list_turns

        async def ends_behind_it(thread_id: str, **how: Any) -> TurnPage:
            page = await read(thread_id, **how)
            if writer.running_turn_id is not None:
                writer.finish_turn()
            return page

        monkeypatch.setattr(reader, "list_turns", ends_behind_it)
        params = TurnListParams(thread_id="thr")
        newest = (await house.door.reading.turn_list(LOCAL, params)).turns[0]
        assert (newest.id, newest.status) == (started.sent.id, TurnStatus.COMPLETED)


async def test_a_turn_of_ours_that_begins_and_ends_while_it_is_read_is_not_interrupted(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        (reader,), (writer,) = house.runtime.readers, house.runtime.writers
        writer.finish_turn()
        read = reader.list_turns

        async def runs_around_it(thread_id: str, **how: Any) -> TurnPage:
            monkeypatch.setattr(reader, "list_turns", read)
            writer.begin_turn(["quick"], client_key="q")
            page = await read(thread_id, **how)
            writer.finish_turn()
            return page

        monkeypatch.setattr(reader, "list_turns", runs_around_it)
        params = TurnListParams(thread_id="thr")
        newest = (await house.door.reading.turn_list(LOCAL, params)).turns[0]
        assert (newest.id, newest.status) == (writer.last_turn_id, TurnStatus.COMPLETED)


async def test_a_turn_of_ours_that_codex_writes_down_before_it_tells_it_runs(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        house.runtime.writers[0].finish_turn()
        stored.turns.append(make_turn("t9", "thr", TurnStatus.INTERRUPTED))
        read = await house.door.reading.thread_read(
            LOCAL, ThreadReadParams(thread_id="thr")
        )
        assert (read.turns[0].id, read.turns[0].status) == (
            "t9",
            TurnStatus.IN_PROGRESS,
        )
        assert read.thread.status is ThreadStatus.RUNNING
        assert read.thread.last_turn_id == "t9"


async def test_a_turn_that_was_cut_short_before_our_writer_came_stays_interrupted(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.turns.append(make_turn("t2", "thr", TurnStatus.INTERRUPTED))
        admission = house.door.admission
        begun = await admission.start_turn(LOCAL, send())
        house.runtime.writers[0].finish_turn()
        before = begun.sent.id
        params = ThreadRevertParams(
            thread_id="thr", before_turn_id=before, request_key="r" * 16
        )
        await admission.revert(LOCAL, params)
        read = await house.door.reading.thread_read(
            LOCAL, ThreadReadParams(thread_id="thr")
        )
        assert house.door.leases.lease_of("thr") is not None
        newest = read.turns[0]
        assert (newest.id, newest.status) == ("t2", TurnStatus.INTERRUPTED)
        assert read.thread.status is ThreadStatus.IDLE


async def test_a_running_turn_that_the_store_lacks_is_shown_all_the_same(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        started = await house.door.admission.start_turn(LOCAL, send())
        stored.hidden.add(started.sent.id)
        read = house.door.reading
        newest = await read.thread_read(
            LOCAL, ThreadReadParams(thread_id="thr", turns=1)
        )
        assert [turn.id for turn in newest.turns] == [started.sent.id, "t1"]
        oldest = await read.turn_list(
            LOCAL, TurnListParams(thread_id="thr", order="asc")
        )
        assert [turn.id for turn in oldest.turns] == ["t1", started.sent.id]


async def test_a_turn_that_another_process_runs_is_inferred_to_run(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.thread = stored.thread.model_copy(
            update={"status": ThreadStatus.UNKNOWN}
        )
        stored.turns.insert(0, make_turn("t0", "thr", TurnStatus.INTERRUPTED))
        stored.turns.append(make_turn("t2", "thr", TurnStatus.INTERRUPTED))
        house.watch.locks["thr"] = HOLDER
        read = await house.door.reading.thread_read(
            LOCAL, ThreadReadParams(thread_id="thr")
        )
        stood = [(turn.id, turn.status, turn.inferred) for turn in read.turns]
        assert stood == [
            ("t2", TurnStatus.IN_PROGRESS, True),
            ("t1", TurnStatus.COMPLETED, None),
            ("t0", TurnStatus.INTERRUPTED, True),
        ]
        assert read.thread.status is ThreadStatus.RUNNING
        assert read.thread.lease is LeaseState.ELSEWHERE
        assert read.thread.writer == HOLDER
        listed = await house.door.reading.turn_list(
            LOCAL, TurnListParams(thread_id="thr", order="asc")
        )
        assert [turn.status for turn in listed.turns][-1] is TurnStatus.IN_PROGRESS


async def test_where_a_writer_without_locks_lives_an_open_end_is_unknown(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr")
        stored.turns.append(make_turn("t1", "thr", TurnStatus.INTERRUPTED))
        house.watch.foreign.append(OLD_CLI)
        house.door.keeper.look()
        listed = await house.door.reading.turn_list(
            LOCAL, TurnListParams(thread_id="thr")
        )
        assert listed.turns[0].status is TurnStatus.UNKNOWN


async def test_reading_goes_on_while_the_gate_is_closed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()
        assert not house.door.keeper.is_open
        listed = await house.door.reading.thread_list(LOCAL, ThreadListParams())
        assert len(listed.threads) == 1


async def test_pages_go_on_where_the_last_one_ended(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        for number in range(7):
            house.runtime.add(f"thr{number}", "t1")
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = await house.door.reading.thread_list(
                LOCAL, ThreadListParams(limit=3, cursor=cursor)
            )
            seen.extend(row.id for row in page.threads)
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == [f"thr{number}" for number in range(7)]


async def test_a_cursor_of_another_listing_is_invalid(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1", "t2", "t3")
        house.runtime.add("other", "t1")
        reading = house.door.reading
        page = await reading.turn_list(LOCAL, TurnListParams(thread_id="thr", limit=1))
        cursor = page.next_cursor
        for params in (
            TurnListParams(thread_id="other", cursor=cursor),
            TurnListParams(thread_id="thr", order="asc", cursor=cursor),
            TurnListParams(thread_id="thr", cursor="nonsense"),
        ):
            with pytest.raises(InvalidParams):
                await reading.turn_list(LOCAL, params)
        with pytest.raises(InvalidParams):
            await reading.thread_list(LOCAL, ThreadListParams(cursor=cursor))
        read = await reading.thread_read(
            LOCAL, ThreadReadParams(thread_id="thr", turns=1)
        )
        following = await reading.turn_list(
            LOCAL, TurnListParams(thread_id="thr", cursor=read.next_cursor)
        )
        assert [turn.id for turn in following.turns] == ["t2", "t1"]


def heavy(turn_id: str) -> Turn:
    text = AgentMessage(
        id=f"m-{turn_id}",
        turn_id=turn_id,
        status=ItemStatus.COMPLETED,
        text="x" * 60 * 1024,
    )
    return make_turn(turn_id, "thr").model_copy(update={"items": [text] * 3})


async def test_heavy_pages_end_early_with_a_cursor_that_loses_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr")
        stored.turns = [heavy(f"t{number}") for number in range(9)]
        seen: list[str] = []
        cursor: str | None = None
        pages = 0
        while True:
            page = await house.door.reading.turn_list(
                LOCAL, TurnListParams(thread_id="thr", items="full", cursor=cursor)
            )
            assert len(pack(page.wire())) <= 520 * 1024
            seen.extend(turn.id for turn in page.turns)
            pages += 1
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == [f"t{number}" for number in reversed(range(9))]
        assert pages > 3


async def test_head_is_taken_before_the_store_is_asked(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        before = len(house.events)

        async def meanwhile() -> None:
            house.open_desktop()
            house.door.keeper.look()  # tells gate/changed
            await trio.lowlevel.checkpoint()

        house.runtime.at("list_threads", meanwhile)
        listed = await house.door.reading.thread_list(LOCAL, ThreadListParams())
        assert listed.head == before < len(house.events)


async def test_a_thread_without_a_turn_is_readable(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr")

        def refuse() -> None:
            message = "list_turns is not supported yet"
            raise CodexRefusedError("thread/turns/list", -32601, message)

        house.runtime.at("list_turns", refuse)
        read = await house.door.reading.thread_read(
            LOCAL, ThreadReadParams(thread_id="thr")
        )
        assert read.turns == []


async def test_what_codex_refuses_is_told_in_its_words(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:

        def refuse() -> None:
            raise CodexRefusedError("thread/list", -32603, "database is odd")

        house.runtime.at("list_threads", refuse)
        with pytest.raises(RuntimeFailure) as refused:
            await house.door.reading.thread_list(LOCAL, ThreadListParams())
        assert "database is odd" in at_the_desk(refused.value)


def test_the_fakes_threads_are_nobodys() -> None:
    assert make_thread("x").lease is LeaseState.NONE
