"""A codex that says too much: lines that are too long, and more of them than one can read."""

import time
from statistics import median
from typing import Any

import pytest
import trio

from tests.support.fake_app_server import sent
from tests.support.faulty_codex import (
    COMMAND,
    ENDS,
    STARTED,
    THREAD,
    TURN,
    Faulty,
    begun,
    delta,
    ended,
    message,
    open_faulty,
    send,
)
from tests.support.measures import in_time, resident
from tests.support.odd_steps import SMALL, WORDS, completes, flood, overlong
from tests.support.real_agent import status
from transport.errors import OutcomeUnknown
from transport.protocol.events import ApprovalRequested, ItemCompleted, TurnCompleted
from transport.protocol.items import AgentMessage, ItemStatus
from transport.protocol.methods import TURN_START, TURN_STEER
from transport.protocol.turns import TextInput, TurnStatus, TurnSteerParams

HUGE: int = 20 * 1024 * 1024
MANY: int = 10_000  # deltas in the default run
MILLION: int = 1_000_000
LATENCY_S = 2.0  # a read while codex floods us, on a machine that does other things too
GROWTH = 320 * 1024 * 1024  # bytes: the ring's 64 MiB, the client's and the fake's copy


async def test_a_line_of_20_mb_is_read_and_told_cut() -> None:
    play = [*STARTED, begun(message()), ended(message("x" * HUGE)), *ENDS]
    with trio.fail_after(240):
        async with open_faulty(turn__start=[play]) as run:
            await run.client.call(TURN_START, send(), timeout_s=30)
            assert await completes(run) is TurnStatus.COMPLETED
            (item,) = [one.item for one in run.ear.data(ItemCompleted)]
            assert isinstance(item, AgentMessage)
            assert len(item.text) <= 64 * 1024
            assert item.truncated == ["text"]
            run.ear.check_ends()


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("item/commandExecution/requestApproval", {"result": {"decision": "decline"}}),
        ("something/new", {"error": {"code": -32601}}),
    ],
)
async def test_a_question_that_is_too_long_is_refused_and_its_turn_goes_on(
    method: str, told: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.calls.jsonrpc.LINE_BYTES", SMALL)
    ask = overlong(method, f'"threadId":"{THREAD}","turnId":"{TURN}",', ask=0)
    plays = [[*STARTED, begun(COMMAND), ask]]
    on_answer = [ended({**COMMAND, "status": "failed"}), *ENDS]
    with trio.fail_after(240):
        async with open_faulty(turn__start=plays, answers={"0": on_answer}) as run:
            await run.client.call(TURN_START, send(), timeout_s=20)
            assert await completes(run) is TurnStatus.COMPLETED
            (answer,) = [one for one in sent(run.folder) if one.get("id") == 0]
            if "error" in answer:
                del answer["error"]["message"]
            assert answer == {"id": 0, **told}
            assert run.ear.notices() == ["requestRefused"]
            assert run.ear.data(ApprovalRequested) == []
            await run.ear.wait_free()
            run.ear.check_ends()


async def test_what_is_too_long_to_be_read_is_said_and_its_turn_has_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An item's end is told with its turn's; a turn's own end is seen, and inferred."""
    monkeypatch.setattr("adapter.calls.jsonrpc.LINE_BYTES", SMALL)
    lost = overlong("item/completed", '"item":{"type":"agentMessage",')
    end = overlong("turn/completed", f'"threadId":"{THREAD}","turn":{{"id":"{TURN}",')
    end["raw"] += "}"
    plays = [*STARTED, begun(message()), delta("so far"), lost, lost, end]
    with trio.fail_after(240):
        async with open_faulty(turn__start=[plays]) as run:
            await run.client.call(TURN_START, send(), timeout_s=20)
            turn = (await run.ear.first(TurnCompleted)).turn
            assert (turn.id, turn.status) == (TURN, TurnStatus.INTERRUPTED)
            assert turn.inferred
            (item,) = [one.item for one in run.ear.data(ItemCompleted)]
            assert isinstance(item, AgentMessage)
            assert (item.text, item.status) == ("so far", ItemStatus.INTERRUPTED)
            await run.ear.wait_free()
            assert run.ear.notices() == ["unknownMessage"] * 2  # once a method
            run.ear.check_ends()
            run.play(turn__start=[[*STARTED, *ENDS]])
            await run.client.call(TURN_START, send("next"), timeout_s=20)


async def test_a_message_that_waited_for_the_model_is_told_lost_by_an_end_too_long_to_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adapter.calls.jsonrpc.LINE_BYTES", SMALL)
    end = overlong("turn/completed", f'"threadId":"{THREAD}","turn":{{"id":"{TURN}",')
    end["raw"] += "}"
    steered = [{"result": {"turnId": TURN}}, end]
    steer = TurnSteerParams(
        thread_id=THREAD,
        turn_id=TURN,
        input=[TextInput(type="text", text="and this")],
        request_key="s" * 32,
    )
    with trio.fail_after(240):
        async with open_faulty(turn__start=[STARTED], turn__steer=[steered]) as run:
            await run.client.call(TURN_START, send(), timeout_s=20)
            with pytest.raises(OutcomeUnknown):
                await run.client.call(TURN_STEER, steer, timeout_s=20)


async def flooded(run: Faulty, deltas: int) -> None:
    """Let codex say so many deltas; others are served meanwhile, memory is bounded."""
    before = resident()
    await run.client.call(TURN_START, send(), timeout_s=30)
    took: list[float] = []
    while not run.ear.data(TurnCompleted):
        since = time.perf_counter()
        await status(run.client)
        took.append(time.perf_counter() - since)
    assert median(took) < in_time(LATENCY_S), "one may have met something else"
    assert await completes(run) is TurnStatus.COMPLETED
    assert resident() - before < GROWTH
    (item,) = [one.item for one in run.ear.data(ItemCompleted)]
    assert isinstance(item, AgentMessage)
    assert item.text == "the end"
    assert 0 < len(run.ear.text) <= deltas * len(WORDS)


async def test_a_flood_of_deltas_keeps_nobody_waiting() -> None:
    with trio.fail_after(240):
        async with open_faulty(turn__start=[flood(MANY)]) as run:
            await flooded(run, MANY)


@pytest.mark.long
async def test_a_million_deltas_keep_nobody_waiting_and_memory_flat() -> None:
    with trio.fail_after(300):
        async with open_faulty(turn__start=[flood(MILLION)]) as run:
            await flooded(run, MILLION)
