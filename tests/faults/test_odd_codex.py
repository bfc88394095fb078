"""A codex that lives and talks nonsense, too much, twice, out of order, late, or never."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from adapter.calls import commands
from tests.support.fake_app_server import sent, thread
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
    question,
    send,
)
from tests.support.measures import in_time
from tests.support.real_agent import status
from tests.support.served_agent import app_servers, is_alive
from transport.errors import (
    OutcomeUnknown,
    Overloaded,
    RuntimeFailure,
    Timeout,
)
from transport.protocol.approvals import ApprovalAnswerParams, ApprovalState
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    ItemCompleted,
    RuntimeChanged,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.gateway import RuntimePhase
from transport.protocol.items import AgentMessage, ItemStatus
from transport.protocol.methods import (
    APPROVAL_ANSWER,
    THREAD_LIST,
    THREAD_READ,
    TURN_INTERRUPT,
    TURN_START,
)
from transport.protocol.threads import ThreadListParams, ThreadReadParams
from transport.protocol.turns import TurnInterruptParams, TurnStatus

Step = dict[str, Any]
SILENCE: list[Step] = []
OVERLOADED: Step = {
    "error": {"code": -32001, "message": "Server overloaded; retry later."}
}
NOT_ACTIVE: Step = {"error": {"code": -32600, "message": "no active turn to interrupt"}}
HUGE: int = 20 * 1024 * 1024
MANY: int = 10_000  # deltas in the default run
MILLION: int = 1_000_000
LATENCY_S = 2.0  # a read while codex floods us, on a machine that does other things too
GROWTH = 320 * 1024 * 1024  # bytes: the ring's 64 MiB, the client's and the fake's copy


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines of half a second: a fake answers within milliseconds."""
    deadlines: dict[str, float] = vars(commands)["DEADLINES"]
    for method in ("thread/read", "thread/loaded/list", "turn/start", "turn/interrupt"):
        monkeypatch.setitem(deadlines, method, 0.5)
    monkeypatch.setattr("adapter.servers.interrupt.TURN_END_S", 0.5)
    monkeypatch.setattr("adapter.servers.answering.CONFIRM_S", 0.5)
    monkeypatch.setattr("adapter.calls.handshake.INITIALIZE_S", 0.5)


async def completes(run: Faulty) -> TurnStatus:
    """Return how the first turn that ended has ended."""
    return (await run.ear.first(TurnCompleted)).turn.status


# It hangs


@pytest.mark.usefixtures("impatient")
async def test_one_thread_that_hangs_in_the_reader_is_no_dead_process() -> None:
    with trio.fail_after(240):
        stuck_plays: dict[str, Any] = {"thread/read thr_stuck": [SILENCE]}
        async with open_faulty(**stuck_plays) as run:
            (reader,) = app_servers(os.getpid())
            with pytest.raises(Timeout) as refusal:
                stuck = ThreadReadParams(thread_id="thr_stuck")
                await run.client.call(THREAD_READ, stuck)
            assert refusal.value.retryable
            other = ThreadReadParams(thread_id=THREAD)
            assert (await run.client.call(THREAD_READ, other)).thread.id == THREAD
            assert app_servers(os.getpid()) == [reader]
            assert not run.ear.data(RuntimeChanged)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "play", [SILENCE, [{"deaf": True}]], ids=["its thread", "all of it"]
)
async def test_a_writer_that_never_answers_is_ended_and_its_message_is_unknown(
    play: list[Step],
) -> None:
    """Also where neither the end of its input nor SIGTERM ends it."""
    with trio.fail_after(240):
        async with open_faulty(turn__start=[play]) as run:
            (reader,) = app_servers(os.getpid())
            for _ in range(2):
                with pytest.raises(OutcomeUnknown):
                    await run.client.call(TURN_START, send(), timeout_s=20)
            assert run.sent("turn/start") == 1
            await run.ear.wait_free()
            assert app_servers(os.getpid()) == [reader]
            run.play(turn__start=[[*STARTED, *ENDS]])
            await run.client.call(TURN_START, send("next"), timeout_s=20)
            assert await completes(run) is TurnStatus.COMPLETED


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "play",
    [SILENCE, [{"result": {}}], [NOT_ACTIVE]],
    ids=["no answer", "no end", "a turn that codex does not know"],
)
async def test_a_turn_that_does_not_react_to_its_interrupt_is_ended_with_its_writer(
    play: list[Step],
) -> None:
    stage = [*STARTED, begun(message()), delta("words")]
    with trio.fail_after(240):
        async with open_faulty(turn__start=[stage], turn__interrupt=[play]) as run:
            (reader,) = app_servers(os.getpid())
            await run.client.call(TURN_START, send(), timeout_s=20)
            stop = TurnInterruptParams(
                thread_id=THREAD, turn_id=TURN, request_key="i" * 32
            )
            stopped = await run.client.call(TURN_INTERRUPT, stop, timeout_s=20)
            assert stopped.turn.status is TurnStatus.INTERRUPTED
            assert await completes(run) is TurnStatus.INTERRUPTED
            await run.ear.wait_free()
            assert app_servers(os.getpid()) == [reader]
            run.ear.check_ends()


@pytest.mark.usefixtures("impatient")
async def test_a_reader_that_hangs_at_its_start_is_ended_and_started_again() -> None:
    with trio.fail_after(240):
        async with open_faulty(initialize=[SILENCE]) as run:
            hung = app_servers(os.getpid())
            state = (await status(run.client)).runtime
            assert state.state is not RuntimePhase.READY
            assert state.next_try_at
            assert "initialize" in (state.error or "")
            run.play()
            while (await status(run.client)).runtime.state is not RuntimePhase.READY:
                hung += app_servers(os.getpid())
            (reader,) = app_servers(os.getpid())
            assert not any(is_alive(pid) for pid in set(hung) - {reader})


@pytest.mark.usefixtures("impatient")
async def test_an_answer_that_codex_never_confirms_is_said_to_be_on_its_way() -> None:
    plays = [[*STARTED, begun(COMMAND), question()]]
    with trio.fail_after(240):
        async with open_faulty(turn__start=plays) as run:
            await run.client.call(TURN_START, send(), timeout_s=20)
            asked = (await run.ear.first(ApprovalRequested)).approval
            yes = ApprovalAnswerParams(
                approval_id=asked.id, digest=asked.digest, choice="allow"
            )
            got = await run.client.call(APPROVAL_ANSWER, yes, timeout_s=20)
            assert got.approval.state is ApprovalState.ANSWERING
            stop = TurnInterruptParams(
                thread_id=THREAD, turn_id=TURN, request_key="i" * 32
            )
            run.play()
            await run.client.call(TURN_INTERRUPT, stop, timeout_s=20)
            end = (await run.ear.first(ApprovalResolved)).approval
            assert (end.state, end.sent) == (ApprovalState.WITHDRAWN, True)
            run.ear.check_ends()


# It refuses, or answers in another shape


async def test_an_overloaded_codex_is_a_refusal_that_may_be_tried_again() -> None:
    with trio.fail_after(240):
        async with open_faulty(
            thread__list=[[OVERLOADED]], turn__start=[[OVERLOADED]]
        ) as run:
            with pytest.raises(Overloaded) as read:
                await run.client.call(THREAD_LIST, ThreadListParams())
            with pytest.raises(Overloaded) as act:
                await run.client.call(TURN_START, send(), timeout_s=20)
            assert read.value.retryable
            assert act.value.retryable
            await run.ear.wait_free()
            run.play(turn__start=[[*STARTED, *ENDS]])
            await run.client.call(TURN_START, send(), timeout_s=20)  # the same key
            assert await completes(run) is TurnStatus.COMPLETED


async def test_an_answer_of_another_shape_is_one_refusal_and_nothing_more() -> None:
    shapes: dict[str, object] = {"a": {"thread": 5}, "b": {}, "c": [], "d": None}
    odd: dict[str, Any] = {
        f"thread/read {name}": [[{"odd": result}]] for name, result in shapes.items()
    }
    with trio.fail_after(240):
        async with open_faulty(**odd) as run:
            for name in "abcd":
                with pytest.raises(RuntimeFailure):
                    await run.client.call(THREAD_READ, ThreadReadParams(thread_id=name))
            other = ThreadReadParams(thread_id=THREAD)
            assert (await run.client.call(THREAD_READ, other)).thread.id == THREAD
            assert not run.ear.data(RuntimeChanged)


async def test_noise_between_the_messages_of_a_turn_is_left_out_and_said_once() -> None:
    noise: list[Step] = [
        {"raw": "warning: no json"},
        {"raw": '{"id":'},
        {"raw": "[]"},
        {"raw": '{"method": "item/started", "params": {"item": 5}}'},
        {"raw": '{"method": "item/started", "params": {"item": 6}}'},
        {"raw": '{"method": "turn/completed", "params": {"turn": {"id": 7}}}'},
        {"raw": '{"method": "nobody/knows/this", "params": {}}'},
        {"raw": '{"id": 4711, "result": {}}'},
    ]
    play = [*STARTED, *noise, begun(message()), *noise, ended(message("all")), *ENDS]
    with trio.fail_after(240):
        async with open_faulty(turn__start=[play]) as run:
            await run.client.call(TURN_START, send(), timeout_s=20)
            assert await completes(run) is TurnStatus.COMPLETED
            (item,) = [one.item for one in run.ear.data(ItemCompleted)]
            assert isinstance(item, AgentMessage)
            assert item.text == "all"
            assert run.ear.notices().count("unknownMessage") == 3
            run.ear.check_ends()


# Twice, and out of order


async def test_what_codex_says_twice_happens_once() -> None:
    play = [
        *STARTED,
        *STARTED,
        begun(COMMAND),
        begun(COMMAND),
        question(),
        question(),
    ]
    closing: list[Step] = [
        {
            "notify": "serverRequest/resolved",
            "params": {"threadId": THREAD, "requestId": 0},
        },
        ended({**COMMAND, "status": "completed"}),
        ended({**COMMAND, "status": "completed"}),
        *ENDS,
        *ENDS,
    ]
    with trio.fail_after(240):
        async with open_faulty(
            turn__start=[play], answers={"0": [*closing, *closing]}
        ) as run:
            await run.client.call(TURN_START, send(), timeout_s=20)
            asked = (await run.ear.first(ApprovalRequested)).approval
            yes = ApprovalAnswerParams(
                approval_id=asked.id, digest=asked.digest, choice="allow"
            )
            for _ in range(2):
                got = await run.client.call(APPROVAL_ANSWER, yes, timeout_s=20)
                assert got.approval.state is ApprovalState.ANSWERED
            assert await completes(run) is TurnStatus.COMPLETED
            await run.ear.wait_free()
            run.ear.check_ends()
            assert len(run.ear.data(TurnStarted)) == 1
            assert len(run.ear.data(ApprovalRequested)) == 1


def told(thread_id: str) -> Step:
    return {"result": {"thread": thread(thread_id)}}


def released(thread_id: str) -> Step:
    return {"release": True, **told(thread_id)}


async def test_answers_out_of_order_reach_who_asked() -> None:
    """The first two reads are held until the third one comes."""
    plays: dict[str, Any] = {
        "thread/read thr_a": [[{"hold": True}]],
        "thread/read thr_b": [[{"hold": True}]],
        "thread/read thr_c": [
            [told("thr_c"), released("thr_b"), released("thr_a")],
        ],
    }
    got: list[str] = []
    with trio.fail_after(240):
        async with open_faulty(**plays) as run:

            async def read(name: str) -> None:
                params = ThreadReadParams(thread_id=name)
                answer = await run.client.call(THREAD_READ, params)
                assert answer.thread.id == name
                got.append(name)

            async with trio.open_nursery() as nursery:
                for number, name in enumerate(("thr_a", "thr_b", "thr_c"), start=1):
                    nursery.start_soon(read, name)
                    while run.sent("thread/read") < number:
                        await trio.lowlevel.checkpoint()
            assert sorted(got) == ["thr_a", "thr_b", "thr_c"]


# Too much


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


SMALL: int = 100_000  # bytes: the bound of a line, in place of 64 MiB


def overlong(method: str, params: str, *, ask: int | None = None) -> Step:
    """Return a line as codex writes it, twice as long as the bound."""
    asks = "" if ask is None else f',"id":{ask}'
    return {
        "raw": f'{{"method":"{method}"{asks},"params":{{{params}'
        f'"reason":"{"x" * 2 * SMALL}"}}}}'
    }


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


async def flooded(run: Faulty, deltas: int) -> None:
    """Let codex say so many deltas; others are served meanwhile, memory is bounded."""
    before = resident()
    await run.client.call(TURN_START, send(), timeout_s=30)
    slowest = 0.0
    while not run.ear.data(TurnCompleted):
        since = time.perf_counter()
        await status(run.client)
        slowest = max(slowest, time.perf_counter() - since)
    assert slowest < in_time(LATENCY_S)
    assert await completes(run) is TurnStatus.COMPLETED
    assert resident() - before < GROWTH
    (item,) = [one.item for one in run.ear.data(ItemCompleted)]
    assert isinstance(item, AgentMessage)
    assert item.text == "the end"
    assert 0 < len(run.ear.text) <= deltas * len(WORDS)


def resident() -> int:
    """Return this process's resident bytes: Agent and client."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


WORDS = "some words that a model says "


def flood(deltas: int) -> list[Step]:
    said = [delta(WORDS, flood=deltas), ended(message("the end")), *ENDS]
    return [*STARTED, begun(message()), *said]


async def test_a_flood_of_deltas_keeps_nobody_waiting() -> None:
    with trio.fail_after(240):
        async with open_faulty(turn__start=[flood(MANY)]) as run:
            await flooded(run, MANY)


@pytest.mark.long
async def test_a_million_deltas_keep_nobody_waiting_and_memory_flat() -> None:
    with trio.fail_after(300):
        async with open_faulty(turn__start=[flood(MILLION)]) as run:
            await flooded(run, MILLION)
