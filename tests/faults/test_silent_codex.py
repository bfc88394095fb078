"""A codex that lives and never answers: in one thread, one turn, one question, or at all."""

import os
from typing import Any

import pytest
import trio

from adapter.calls import commands
from tests.support.faulty_codex import (
    COMMAND,
    ENDS,
    STARTED,
    THREAD,
    TURN,
    begun,
    delta,
    message,
    open_faulty,
    question,
    send,
)
from tests.support.odd_steps import Step, completes
from tests.support.real_agent import status
from tests.support.served_agent import app_servers, is_alive
from transport.errors import OutcomeUnknown, Timeout
from transport.protocol.approvals import ApprovalAnswerParams, ApprovalState
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    RuntimeChanged,
)
from transport.protocol.gateway import RuntimePhase
from transport.protocol.methods import (
    APPROVAL_ANSWER,
    THREAD_READ,
    TURN_INTERRUPT,
    TURN_START,
)
from transport.protocol.threads import ThreadReadParams
from transport.protocol.turns import TurnInterruptParams, TurnStatus

SILENCE: list[Step] = []
NOT_ACTIVE: Step = {"error": {"code": -32600, "message": "no active turn to interrupt"}}


def impatient(monkeypatch: pytest.MonkeyPatch, *methods: str) -> None:
    """Half a second for what is never answered; all else has the time that it has."""
    for method in methods:
        monkeypatch.setitem(vars(commands)["DEADLINES"], method, 0.5)


async def test_one_thread_that_hangs_in_the_reader_is_no_dead_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    impatient(monkeypatch, "thread/read")
    with trio.fail_after(240):
        stuck_plays: dict[str, Any] = {"thread/read thr_stuck": [SILENCE]}
        async with open_faulty(**stuck_plays) as run:
            (reader,) = app_servers(os.getpid())
            with pytest.raises(Timeout) as refusal:
                stuck = ThreadReadParams(thread_id="thr_stuck")
                await run.client.call(THREAD_READ, stuck)
            assert refusal.value.retryable
            monkeypatch.undo()
            other = ThreadReadParams(thread_id=THREAD)
            assert (await run.client.call(THREAD_READ, other)).thread.id == THREAD
            assert app_servers(os.getpid()) == [reader]
            assert not run.ear.data(RuntimeChanged)


@pytest.mark.parametrize(
    "play", [SILENCE, [{"deaf": True}]], ids=["its thread", "all of it"]
)
async def test_a_writer_that_never_answers_is_ended_and_its_message_is_unknown(
    play: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where neither the end of its input nor SIGTERM ends it."""
    impatient(monkeypatch, "turn/start", "thread/loaded/list")
    with trio.fail_after(240):
        async with open_faulty(turn__start=[play]) as run:
            (reader,) = app_servers(os.getpid())
            for _ in range(2):
                with pytest.raises(OutcomeUnknown):
                    await run.client.call(TURN_START, send(), timeout_s=20)
            assert run.sent("turn/start") == 1
            await run.ear.wait_free()
            assert app_servers(os.getpid()) == [reader]
            monkeypatch.undo()
            run.play(turn__start=[[*STARTED, *ENDS]])
            await run.client.call(TURN_START, send("next"), timeout_s=20)
            assert await completes(run) is TurnStatus.COMPLETED


@pytest.mark.parametrize(
    "play",
    [SILENCE, [{"result": {}}], [NOT_ACTIVE]],
    ids=["no answer", "no end", "a turn that codex does not know"],
)
async def test_a_turn_that_does_not_react_to_its_interrupt_is_ended_with_its_writer(
    play: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient(monkeypatch, "turn/interrupt", "thread/loaded/list")
    monkeypatch.setattr("adapter.servers.interrupt.TURN_END_S", 0.5)
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


async def test_a_reader_that_hangs_at_its_start_is_ended_and_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adapter.calls.handshake.INITIALIZE_S", 0.5)
    with trio.fail_after(240):
        async with open_faulty(initialize=[SILENCE]) as run:
            hung = app_servers(os.getpid())
            state = (await status(run.client)).runtime
            assert state.state is not RuntimePhase.READY
            assert state.next_try_at
            assert "initialize" in (state.error or "")
            monkeypatch.undo()
            run.play()
            while (await status(run.client)).runtime.state is not RuntimePhase.READY:
                hung += app_servers(os.getpid())
            (reader,) = app_servers(os.getpid())
            assert not any(is_alive(pid) for pid in set(hung) - {reader})


async def test_an_answer_that_codex_never_confirms_is_said_to_be_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adapter.servers.answering.CONFIRM_S", 0.5)
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
