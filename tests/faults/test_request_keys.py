"""One request key, one effect, one outcome: whatever fails, and whoever asks again."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from adapter.errors import CodexRefusedError, NoAnswerError
from agent.access.scopes import Caller
from agent.records.store import Store
from tests.support.agents import client_info, open_agent, pair_device
from tests.support.door import LOCAL, House, device, open_house, send
from tests.support.mutations import KEY, OTHER_KEY, raiser
from tests.support.runs_in_turn import sent
from transport.client import Client, open_client
from transport.errors import Conflict, NotFound, OutcomeUnknown, Refusal, RuntimeFailure
from transport.protocol.gateway import GatewayStatusParams
from transport.protocol.methods import GATEWAY_STATUS, TURN_START
from transport.protocol.turns import TurnStartResult


async def start(house: House, caller: Caller = LOCAL) -> TurnStartResult:
    return await house.door.admission.start_turn(caller, send())


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
            await house.door.admission.start_turn(LOCAL, send(key=OTHER_KEY))


async def test_a_repeat_that_names_a_later_turn_gets_the_answer_of_the_first(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        start = house.door.admission.start_turn
        first = await start(LOCAL, send(expected="t1"))
        assert first.turn is not None
        assert await start(LOCAL, send(expected=first.turn.id)) == first
        with pytest.raises(Conflict):  # a new one: it is looked at
            await start(LOCAL, send(key=OTHER_KEY, expected="t1"))
        assert sent(house.runtime) == [("go on", KEY)]


async def test_an_answer_that_another_version_wrote_down_is_looked_for_in_the_thread(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    store = Store.open(tmp_path / "ledger.sqlite")
    async with open_house(tmp_path, store=store) as house:
        house.runtime.add("thr", "t1")
        first = await start(house)
        row = store.find(LOCAL.device_id, KEY)
        assert row is not None
        store.put(replace(row, outcome='{"turn": "of another version"}'))
        again = await start(house)
        assert first.turn is not None
        assert again.turn is not None
        assert again.turn.id == first.turn.id
        assert sent(house.runtime) == [("go on", KEY)]


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
        house.runtime.at("start_turn:done", raiser(NoAnswerError("turn/start")))
        with pytest.raises(OutcomeUnknown):
            await start(house)
        await other()  # unknown
        house.runtime.live[0].finish_turn()
        fresh = send(key=OTHER_KEY, text="one")
        await house.door.admission.start_turn(LOCAL, fresh)
        with pytest.raises(Conflict):  # done
            await house.door.admission.start_turn(
                LOCAL, send(key=OTHER_KEY, text="two")
            )


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
