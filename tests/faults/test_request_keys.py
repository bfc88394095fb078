"""One request key, one effect, one outcome: whatever fails, and whoever asks again."""

import sqlite3
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from adapter.errors import CodexRefusedError, NoAnswerError
from agent.access.scopes import Caller
from agent.errors import StoreUnavailableError
from agent.mutations.thread_wishes import Rename
from agent.records.key_row import RowState, digest
from agent.records.store import Store
from tests.support.agents import client_info, open_agent, pair_device
from tests.support.door import LOCAL, House, device, open_house, send
from tests.support.fake_runtime import FakeRuntime
from transport.client import Client, open_client
from transport.errors import (
    Conflict,
    Internal,
    NotFound,
    OutcomeUnknown,
    Refusal,
    RuntimeFailure,
)
from transport.protocol import background, goals, queue, thread_acts, threads, turns
from transport.protocol.base import WireModel
from transport.protocol.gateway import GatewayStatusParams
from transport.protocol.methods import GATEWAY_STATUS, TURN_START
from transport.protocol.turns import TextInput, TurnStartResult, TurnStatus

KEY = "key-0123456789abcdef"
STEER = "key-of-more-words-01"


def sent(runtime: FakeRuntime) -> list[tuple[str, str]]:
    """What reached the model, with its keys."""
    return [one for writer in runtime.writers for one in writer.sent]


async def start(house: House, caller: Caller = LOCAL) -> TurnStartResult:
    return await house.door.admission.start_turn(caller, send())


class MortalStore(Store):
    """A store whose process can be killed: then nothing reaches the disk any more."""

    killed = False

    @contextmanager
    def _using(self) -> Generator[sqlite3.Connection]:
        if self.killed:
            raise StoreUnavailableError("killed")
        with super()._using() as db:
            yield db


def next_run(path: Path, runtime: FakeRuntime) -> Store:
    """What the next Agent finds: the processes of the last one are gone."""
    for stored in runtime.threads.values():
        stored.locked_by = None
    store = Store.open(path / "ledger.sqlite")
    store.recover()
    return store


# (the moment of the kill, whether Codex has the message, whether a repeat sends it)
STAGES = {
    "before it is handed": ("writer.open", False, True),
    "handed, and not sent": ("start_turn", False, False),
    "sent, and not answered": ("start_turn:done", True, False),
}


@pytest.mark.parametrize("stage", STAGES)
async def test_an_agent_killed_at_any_stage_sends_no_message_twice(
    stage: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    moment, arrived, again = STAGES[stage]
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    store = MortalStore.open(tmp_path / "ledger.sqlite")
    with trio.CancelScope() as scope:

        def kill() -> None:
            store.killed = True
            scope.cancel(reason="killed")
            raise NoAnswerError("turn/start")

        async with open_house(tmp_path, runtime=runtime, store=store) as house:
            runtime.at(moment, kill)
            with pytest.raises(Refusal):  # nobody is there to hear it
                await start(house)
    assert sent(runtime) == ([("go on", KEY)] if arrived else [])
    after = next_run(tmp_path, runtime)
    async with open_house(tmp_path, runtime=runtime, store=after) as house:
        if arrived or again:
            first = await start(house)
            assert (await start(house)).sent.id == first.sent.id
        else:
            for _ in range(2):
                with pytest.raises(OutcomeUnknown) as caught:
                    await start(house)
                assert caught.value.data["newTurns"] == 0
        assert sent(runtime).count(("go on", KEY)) == (1 if arrived or again else 0)


@pytest.mark.parametrize(
    ("stage", "named"),
    [("start_thread", False), ("start_thread:done", False), ("start_turn", True)],
)
async def test_a_new_thread_that_had_no_name_when_the_agent_died_is_made_by_the_repeat(
    stage: str, named: bool, tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    store = MortalStore.open(tmp_path / "ledger.sqlite")

    def kill() -> None:
        store.killed = True

    async with open_house(tmp_path, runtime=runtime, store=store) as house:
        runtime.at(stage, kill)
        if named:  # its process goes on for a moment, and hands the message over
            await _new(house)
        else:
            with pytest.raises(Internal):  # nothing is sent that is not on the disk
                await _new(house)
            assert sent(runtime) == []
    runtime.threads.clear()  # its first turn was not stored
    after = next_run(tmp_path, runtime)
    async with open_house(tmp_path, runtime=runtime, store=after) as house:
        if named:
            with pytest.raises(OutcomeUnknown):
                await _new(house)
        else:
            await _new(house)
        assert sent(runtime) == [("begin", KEY)]


async def test_an_agent_killed_once_the_outcome_is_recorded_tells_it_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    async with open_house(tmp_path, runtime=runtime) as house:
        first = await start(house)
    after = next_run(tmp_path, runtime)
    async with open_house(tmp_path, runtime=runtime, store=after) as house:
        runtime.log.clear()
        assert await start(house) == first
        assert runtime.log == ["reader.open"] or not runtime.log  # it asked nobody


async def test_what_was_done_is_told_even_where_nothing_could_be_done_now(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        first = await start(house)
        house.runtime.live[0].finish_turn()
        house.see_desktop()

        def down() -> None:
            raise NoAnswerError("reader")

        for _ in range(8):
            house.runtime.at("read_thread", down)
            house.runtime.at("list_turns", down)
        assert await start(house) == first
        house.runtime.forget_actions()
        del house.runtime.threads["thr"]
        assert await start(house) == first  # of a thread that is gone by now
        with pytest.raises(Refusal):  # a new one
            await house.door.admission.start_turn(LOCAL, send(key=STEER))


async def test_a_device_is_not_told_of_a_thread_that_it_may_not_see_any_more(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await start(house, device())
        with pytest.raises(NotFound):
            await start(house, device(roots=["/elsewhere"]))


async def test_a_refusal_leaves_the_key_free(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")

        def refuse() -> None:
            raise CodexRefusedError("turn/start", -32600, "no")

        house.runtime.at("start_turn", refuse)
        with pytest.raises(RuntimeFailure):
            await start(house)
        await start(house)
        assert sent(house.runtime) == [("go on", KEY)]


async def test_the_same_key_with_other_words_is_a_conflict_at_every_stage(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.keeps_keys = False

        async def other() -> None:
            with pytest.raises(Conflict) as caught:
                await house.door.admission.start_turn(LOCAL, send(text="other"))
            assert caught.value.data["what"] == "requestKey"

        house.runtime.at("start_turn", other)  # in flight
        house.runtime.at("start_turn:done", _unanswered)
        with pytest.raises(OutcomeUnknown):
            await start(house)
        await other()  # unknown
        house.runtime.live[0].finish_turn()
        fresh = send(key=STEER, text="one")
        await house.door.admission.start_turn(LOCAL, fresh)
        with pytest.raises(Conflict):  # done
            await house.door.admission.start_turn(LOCAL, send(key=STEER, text="two"))


def _unanswered() -> None:
    raise NoAnswerError("turn/start")


async def test_another_device_s_same_key_is_another_key(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        one = await start(house, device())
        house.runtime.live[0].finish_turn()
        two = await start(house, device(device_id="d2"))
        assert one.sent.id != two.sent.id
        assert sent(house.runtime) == [("go on", KEY)] * 2


async def test_a_message_of_another_device_with_the_same_key_settles_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await start(house, device())
        house.runtime.live[0].finish_turn()
        house.runtime.live[0].hangs = True
        with pytest.raises(OutcomeUnknown):
            await start(house, device(device_id="d2"))


async def test_two_connections_of_one_device_share_one_outcome(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            house.runtime.add("thr", "t1", cwd=str(tmp_path))
            phone = await pair_device(house, scopes=("read", "write"))
            target = house.target(phone)
            params = send()
            both: list[str] = []
            waiting, go = trio.Event(), trio.Event()

            async def hold() -> None:
                waiting.set()
                await go.wait()

            async def ask(client: Client) -> None:
                both.append((await client.call(TURN_START, params)).sent.id)

            house.runtime.at("start_turn:done", hold)
            async with (
                open_client(target, client_info(instance="a" * 32)) as one,
                open_client(target, client_info(instance="b" * 32)) as two,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(ask, one)
                await waiting.wait()
                nursery.start_soon(ask, two)
                await wait_all_tasks_blocked()  # it is on its way
                # Requests of one session are begun in their order.
                await two.call(GATEWAY_STATUS, GatewayStatusParams())
                assert not both
                go.set()
            assert both[0] == both[1]
            assert sent(house.runtime) == [("go on", KEY)]


# What shows of an act whose answer was lost, method by method.

Act = Callable[[House], Awaitable[WireModel]]


async def _say(house: House) -> WireModel:
    return await start(house)


async def _steer(house: House) -> WireModel:
    turn_id = house.runtime.threads["thr"].turns[-1].id
    params = turns.TurnSteerParams(
        thread_id="thr",
        turn_id=turn_id,
        input=[TextInput(type="text", text="more")],
        request_key=KEY,
    )
    return await house.door.admission.steer(LOCAL, params)


async def _new(house: House) -> WireModel:
    params = threads.ThreadStartParams(
        cwd="/", input=[TextInput(type="text", text="begin")], request_key=KEY
    )
    return await house.door.admission.start_thread(LOCAL, params)


async def _fork(house: House) -> WireModel:
    params = thread_acts.ThreadForkParams(
        thread_id="thr",
        input=[TextInput(type="text", text="go another way")],
        request_key=KEY,
    )
    return await house.door.admission.fork(LOCAL, params)


async def _rename(house: House) -> WireModel:
    params = thread_acts.ThreadRenameParams(
        thread_id="thr", name="New", request_key=KEY
    )
    return await house.door.admission.fulfil(LOCAL, Rename(), params)


async def _set_goal(house: House) -> WireModel:
    params = goals.GoalSetParams(thread_id="thr", objective="all", request_key=KEY)
    return await house.door.admission.set_goal(LOCAL, params)


async def _pause_goal(house: House) -> WireModel:
    params = goals.GoalPauseParams(thread_id="thr", request_key=KEY)
    return await house.door.admission.pause_goal(LOCAL, params)


async def _clear_goal(house: House) -> WireModel:
    params = goals.GoalClearParams(thread_id="thr", request_key=KEY)
    return await house.door.admission.clear_goal(LOCAL, params)


async def _interrupt(house: House) -> WireModel:
    turn_id = house.runtime.threads["thr"].turns[-1].id
    params = turns.TurnInterruptParams(
        thread_id="thr", turn_id=turn_id, request_key=KEY
    )
    return await house.door.admission.interrupt(LOCAL, params)


async def _stop(house: House) -> WireModel:
    params = background.BackgroundStopParams(
        thread_id="thr", item_id="cmd", request_key=KEY
    )
    return await house.door.admission.stop_background(LOCAL, params)


SHOWN: dict[str, Act] = {
    "turn/start": _say,
    "thread/start": _new,
    "thread/fork": _fork,
    "thread/rename": _rename,
    "thread/goal/set": _set_goal,
    "thread/goal/pause": _pause_goal,
    "thread/goal/clear": _clear_goal,
    "turn/interrupt": _interrupt,
    "background/stop": _stop,
}


@pytest.mark.parametrize("method", SHOWN)
async def test_what_shows_settles_an_act_whose_answer_was_lost(
    method: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """As after a crash: the row says handed, and Codex did what it was asked."""
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    act = SHOWN[method]
    async with open_house(tmp_path, runtime=runtime) as house:
        if method in ("turn/interrupt", "background/stop"):
            await house.door.admission.start_turn(LOCAL, send(key=STEER))
            runtime.live[0].put_in_background("cmd")
        done = await act(house)
    store = Store.open(tmp_path / "ledger.sqlite")
    row = store.find("local", KEY)
    assert row is not None
    store.put(replace(row, state=RowState.HANDED, outcome=None, turn=None))
    store.close()
    after = next_run(tmp_path, runtime)
    steps = [step for step in runtime.log if step in ("start_turn", "rename")]
    async with open_house(tmp_path, runtime=runtime, store=after) as house:
        for _ in range(2):
            again = await act(house)
            assert _core(again) == _core(done)
    assert [s for s in runtime.log if s in ("start_turn", "rename")] == steps


def _core(result: WireModel) -> dict[str, object]:
    """What an answer is about, without how it stands by now."""
    wire = result.wire()
    found: dict[str, object] = {"delivery": wire.get("delivery")}
    for name in ("turn", "thread"):
        if name in wire:
            found[name] = wire[name]["id"]
    return found


async def test_more_words_that_arrived_are_seen_to_have_arrived(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send(key=STEER))
        house.runtime.at("steer:done", _unanswered)
        with pytest.raises(OutcomeUnknown):
            await _steer(house)
        stored = house.runtime.threads["thr"]
        said = (stored.turns[-1].items or [])[0]
        words = said.model_copy(update={"id": "u-more", "client_key": KEY})
        stored.turns[-1] = stored.turns[-1].model_copy(update={"items": [said, words]})
        again = await _steer(house)  # the model has taken it meanwhile
        assert again.wire()["turn"]["id"] == stored.turns[-1].id
        assert house.runtime.log.count("steer") == 1


async def test_a_late_start_completes_the_row(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("start_turn:done", _unanswered)
        result = await start(house)  # Codex said nothing, but the turn runs
        assert result.sent.status is TurnStatus.IN_PROGRESS
        assert result.sent.id == house.runtime.live[0].running_turn_id
        assert await start(house) == result


async def test_a_message_that_was_sent_is_not_said_to_be_taken_back(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    async with open_house(tmp_path, runtime=runtime) as house:
        waits = send(key=STEER, delivery="queue")
        queued = (await house.door.admission.start_turn(LOCAL, waits)).queued
        assert queued is not None
        await trio.sleep(60)
        assert [text for text, _ in sent(runtime)] == ["go on"]
        params = queue.QueueDeleteParams(queue_id=queued.queue_id, request_key=KEY)
    store = Store.open(tmp_path / "ledger.sqlite")
    row = store.find("local", STEER)
    assert row is not None
    store.put(
        replace(
            row,
            key=KEY,
            method="queue/delete",
            digest=digest("queue/delete", params),
            state=RowState.UNKNOWN,
            outcome=None,
        )
    )
    async with open_house(tmp_path, runtime=runtime, store=store) as house:
        with pytest.raises(OutcomeUnknown):
            await house.door.admission.delete_queued(LOCAL, params)
