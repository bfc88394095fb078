"""A state folder that was put back from a backup, which knows nothing of what came since."""

import shutil
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import CodexRefusedError, NoAnswerError
from agent.limits import QUEUE_TURNS, QUEUE_TURNS_A_PAGE
from agent.records.store import Store
from tests.faults.test_queue_dropped import dropped, noted
from tests.support.agents import open_agent, open_owner
from tests.support.door import LOCAL, open_house, send
from tests.support.fake_runtime import FakeRuntime
from tests.support.fake_threads import make_turn
from tests.support.queued import listed, notices, put, texts, until
from transport.errors import Internal
from transport.protocol.gateway import GatewayStatusParams
from transport.protocol.methods import GATEWAY_STATUS, TURN_START
from transport.protocol.queue import QueueListParams


async def backup_of_waiting(
    tmp_path: Path, runtime: FakeRuntime, *numbers: int
) -> Path:
    """Queue messages, copy the folder, and have them sent; return the copy."""
    runtime.add("thr", "t1")
    copy = tmp_path / "copy"
    copy.mkdir()
    async with open_house(tmp_path, runtime=runtime) as house:
        house.see_desktop()
        await put(house, *numbers)
        for path in tmp_path.glob("ledger.sqlite*"):
            (copy / path.name).write_bytes(path.read_bytes())
        await house.close_desktop()
        for _ in numbers:
            await until(lambda: any(one.running_turn_id for one in runtime.live))
            runtime.live[0].finish_turn()
    return copy


async def test_a_message_that_was_sent_since_the_backup_is_not_sent_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    copy = await backup_of_waiting(tmp_path, runtime, 1, 2)
    store = Store.open(copy / "ledger.sqlite")
    async with open_house(copy, runtime=runtime, store=store) as house:
        assert len(await listed(house)) == 2
        await until(lambda: len(notices(house)) == 2)
        await trio.sleep(60)
        assert notices(house) == ["queueSent", "queueSent"]
        assert [row.code for row in await dropped(house)] == ["queueSent", "queueSent"]
        assert noted(copy) == [("local", "queueSent")] * 2
        assert await listed(house) == []
        await put(house, 3)  # what is queued in this run needs no look
        await until(lambda: texts(house)[-1] == "message 3")
    assert texts(house).count("message 1") == texts(house).count("message 2") == 1


async def test_while_history_cannot_be_read_such_a_message_waits(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    copy = await backup_of_waiting(tmp_path, runtime, 1)
    broken = [True]

    def no() -> None:
        runtime.at("list_turns", no)
        if broken[0]:
            raise CodexRefusedError("thread/turns/list", -32600, "damaged")

    runtime.at("list_turns", no)
    store = Store.open(copy / "ledger.sqlite")
    async with open_house(copy, runtime=runtime, store=store) as house:
        await trio.sleep(3_600)
        (row,) = (await house.door.acts.queue.waiting(LOCAL, QueueListParams())).queue
        assert row.waits_for == "codex"
        assert notices(house) == []
        broken[0] = False
        await until(lambda: notices(house) == ["queueSent"])
    assert texts(house) == ["message 1"]


@pytest.mark.parametrize("behind", [QUEUE_TURNS_A_PAGE, QUEUE_TURNS - 1])
async def test_it_is_looked_for_far_back(
    behind: int, tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    copy = await backup_of_waiting(tmp_path, runtime, 1)
    stored = runtime.threads["thr"]
    stored.turns += [make_turn(f"later{number}", "thr") for number in range(behind)]
    store = Store.open(copy / "ledger.sqlite")
    async with open_house(copy, runtime=runtime, store=store) as house:
        await until(lambda: bool(notices(house)))
        assert notices(house) == ["queueSent"]
    assert texts(house) == ["message 1"]


async def test_a_message_that_was_not_sent_yet_is_sent(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    copy = await backup_of_waiting(tmp_path, runtime, 1)
    runtime.threads["thr"].turns = runtime.threads["thr"].turns[:1]  # nor is it there
    store = Store.open(copy / "ledger.sqlite")
    async with open_house(copy, runtime=runtime, store=store) as house:
        found: list[bool] = []

        def once() -> None:
            found.extend(row.found for row in house.door.backlog.book.heads())
            raise NoAnswerError("thread/resume")

        runtime.at("resume", once)
        await until(lambda: texts(house) == ["message 1", "message 1"])
        assert found == [False]  # it was looked for, and need not be again
        assert notices(house) == []


@pytest.mark.parametrize("what", ["removed", "replaced"])
async def test_nothing_is_begun_by_an_agent_whose_folder_is_another_one(
    what: str, tmp_path: Path
) -> None:
    """What it would put on record there, no next Agent would find."""
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr", "t1")
            state, aside = house.config.state_dir, tmp_path / "aside"
            state.rename(aside)
            if what == "replaced":
                shutil.copytree(aside, state)
            with pytest.raises(Internal) as refused:
                await owner.call(TURN_START, send())
            assert refused.value.data["what"] == "storage"
            assert house.runtime.live == []
            assert "start_turn" not in house.runtime.log
            await owner.call(GATEWAY_STATUS, GatewayStatusParams())
            shutil.rmtree(state, ignore_errors=True)
            aside.rename(state)
            await owner.call(TURN_START, send())
