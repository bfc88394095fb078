"""An app-server that dies, at each stage of a turn and in every way.

Whatever had begun has one end that everybody is told, the thread is free, nothing that was
handed to Codex is handed to it again, and the next message works.
"""

import signal
from typing import Any

import pytest
import trio

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
    output,
    question,
    send,
)
from transport.errors import CodexUnavailable, OutcomeUnknown
from transport.protocol.approvals import ApprovalAnswerParams, ApprovalState
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    EventData,
    ItemCompleted,
    RuntimeChanged,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.gateway import RuntimePhase
from transport.protocol.items import AgentMessage, Command, ItemStatus
from transport.protocol.methods import APPROVAL_ANSWER, THREAD_READ, TURN_START
from transport.protocol.threads import ThreadReadParams
from transport.protocol.turns import TurnStatus

Step = dict[str, Any]
KILLED: Step = {"kill": True}
ACCEPTED = STARTED[:1]
SPOKEN = [begun(message()), delta("some words")]
ASKED = [begun(COMMAND), question()]
WORKING = [begun(COMMAND), output("line\n")]
SAID = [begun(message()), ended(message("all of it"))]
ENDINGS: dict[str, Step] = {
    **{
        one.name: {"signal": int(one)}
        for one in signal.valid_signals()
        & {
            signal.SIGTERM,
            signal.SIGHUP,
            signal.SIGINT,
            signal.SIGSEGV,
            signal.SIGABRT,
            signal.SIGPIPE,
            signal.SIGBUS,
        }
    },
    "exit 0": {"exit": 0},
    "exit 1": {"exit": 1},
}


async def more(run: Faulty, kind: type[EventData], known: int) -> None:
    """Return when more events of that kind came than were known."""
    await run.ear.until(lambda: len(run.ear.data(kind)) > known)


async def goes_on(run: Faulty, key: str = "next") -> None:
    """The next message is carried out by a new writer."""
    await run.ear.wait_free()
    run.play(turn__start=[[*STARTED, *ENDS]])
    before = len(run.ear.data(TurnCompleted))
    await run.client.call(TURN_START, send(key), timeout_s=20)
    await run.ear.until(lambda: len(run.ear.data(TurnCompleted)) > before)
    assert run.ear.data(TurnCompleted)[-1].turn.status is TurnStatus.COMPLETED
    run.ear.check_ends()


async def test_before_the_response_nobody_knows_and_it_is_not_sent_again() -> None:
    with trio.fail_after(240):
        async with open_faulty(turn__start=[[KILLED]]) as run:
            for _ in range(2):
                with pytest.raises(OutcomeUnknown):
                    await run.client.call(TURN_START, send(), timeout_s=20)
            assert run.sent("turn/start") == 1
            assert not run.ear.data(TurnStarted)
            await goes_on(run)


async def test_after_the_response_and_before_the_start_nobody_knows() -> None:
    """An id in an answer is no proof that a turn runs."""
    with trio.fail_after(240):
        async with open_faulty(turn__start=[[*ACCEPTED, KILLED]]) as run:
            for _ in range(2):
                with pytest.raises(OutcomeUnknown):
                    await run.client.call(TURN_START, send(), timeout_s=20)
            assert run.sent("turn/start") == 1
            await goes_on(run)


async def test_once_a_turn_has_started_it_is_interrupted_and_its_key_is_settled() -> (
    None
):
    with trio.fail_after(240):
        async with open_faulty(turn__start=[[*STARTED, KILLED]]) as run:
            first = await run.client.call(TURN_START, send(), timeout_s=20)
            assert first.turn is not None
            assert first.turn.id == TURN
            over = (await run.ear.first(TurnCompleted)).turn
            assert over.status is TurnStatus.INTERRUPTED
            await run.ear.until(lambda: "runtimeDied" in run.ear.notices())
            await run.ear.wait_free()
            again = await run.client.call(TURN_START, send(), timeout_s=20)
            assert again.turn is not None
            assert again.turn.id == TURN
            assert run.sent("turn/start") == 1
            await goes_on(run)


@pytest.mark.parametrize(
    ("stage", "status", "text"),
    [
        (SPOKEN, ItemStatus.INTERRUPTED, "some words"),
        (WORKING, ItemStatus.INTERRUPTED, "line\n"),
        (SAID, ItemStatus.COMPLETED, "all of it"),
    ],
    ids=["mid-delta", "command running", "before turn/completed"],
)
async def test_what_was_open_ends_as_interrupted_with_what_it_had(
    stage: list[Step], status: ItemStatus, text: str
) -> None:
    with trio.fail_after(240):
        async with open_faulty(turn__start=[[*STARTED, *stage, KILLED]]) as run:
            await run.client.call(TURN_START, send(), timeout_s=20)
            over = (await run.ear.first(TurnCompleted)).turn
            assert over.status is TurnStatus.INTERRUPTED
            (item,) = [one.item for one in run.ear.data(ItemCompleted)]
            assert item.status is status
            assert isinstance(item, AgentMessage | Command)
            assert (
                item.text if isinstance(item, AgentMessage) else item.output
            ) == text
            await goes_on(run)


async def test_a_pending_approval_is_withdrawn() -> None:
    with trio.fail_after(240):
        async with open_faulty(turn__start=[[*STARTED, *ASKED, KILLED]]) as run:
            await run.client.call(TURN_START, send(), timeout_s=20)
            end = (await run.ear.first(ApprovalResolved)).approval
            assert end.state is ApprovalState.WITHDRAWN
            assert not end.sent
            await goes_on(run)


async def test_an_approval_that_was_just_answered_is_withdrawn_and_says_that_it_was_sent() -> (
    None
):
    answers = {"0": [KILLED]}
    with trio.fail_after(240):
        async with open_faulty(
            turn__start=[[*STARTED, *ASKED]], answers=answers
        ) as run:
            await run.client.call(TURN_START, send(), timeout_s=20)
            asked = (await run.ear.first(ApprovalRequested)).approval
            yes = ApprovalAnswerParams(
                approval_id=asked.id, digest=asked.digest, choice="allow"
            )
            got = await run.client.call(APPROVAL_ANSWER, yes, timeout_s=20)
            assert (got.approval.state, got.approval.sent) == ("withdrawn", True)
            again = await run.client.call(APPROVAL_ANSWER, yes, timeout_s=20)
            assert again.approval == got.approval
            await goes_on(run)


async def test_it_does_not_matter_how_a_writer_ends() -> None:
    """Every signal that ends a process, and codex leaving by itself, in one Agent."""
    with trio.fail_after(240):
        async with open_faulty() as run:
            for number, (name, ending) in enumerate(ENDINGS.items()):
                run.play(turn__start=[[*STARTED, *SPOKEN, ending]])
                told = len(run.ear.data(TurnCompleted))
                await run.client.call(TURN_START, send(f"key-{number}"), timeout_s=20)
                await more(run, TurnCompleted, told)
                over = run.ear.data(TurnCompleted)[-1].turn
                assert over.status is TurnStatus.INTERRUPTED, name
                await run.ear.wait_free()
                assert run.sent("turn/start") == number + 1
            await goes_on(run)


async def test_a_writer_that_dies_at_each_start_is_tried_a_few_times_and_refused() -> (
    None
):
    with trio.fail_after(240):
        async with open_faulty() as run:
            run.play(start=[{"stderr": "Error: no such folder\n"}, {"exit": 1}])
            with pytest.raises(CodexUnavailable, match="no such folder") as refusal:
                await run.client.call(TURN_START, send(), timeout_s=20)
            assert refusal.value.retryable
            assert refusal.value.retry_after_ms
            assert run.sent("turn/start") == 0
            run.play(turn__start=[[*STARTED, *ENDS]])
            await run.client.call(TURN_START, send(), timeout_s=20)  # the same key
            assert (await run.ear.first(TurnCompleted)).turn.status == "completed"


async def test_a_writer_that_dies_while_it_loads_leaves_the_thread_free() -> None:
    with trio.fail_after(240):
        async with open_faulty(thread__resume=[[KILLED]]) as run:
            with pytest.raises(CodexUnavailable) as refusal:
                await run.client.call(TURN_START, send(), timeout_s=20)
            assert refusal.value.data["gate"]["reason"] == "runtimeDown"
            run.play(turn__start=[[*STARTED, *ENDS]])
            await run.client.call(TURN_START, send(), timeout_s=20)  # the same key
            assert (await run.ear.first(TurnCompleted)).turn.status == "completed"


async def test_a_reader_that_dies_at_every_question_is_not_started_in_a_loop() -> None:
    """Clients are told the state and the next try; then starts are spaced out."""
    with trio.fail_after(240):
        async with open_faulty(thread__read=[[KILLED]]) as run:
            read = ThreadReadParams(thread_id=THREAD)

            def last() -> RuntimeChanged | None:
                return next(iter(run.ear.data(RuntimeChanged)[::-1]), None)

            def phase() -> RuntimePhase | None:
                told = last()
                return None if told is None else told.runtime.state

            while phase() is not RuntimePhase.FAILED:
                with pytest.raises(CodexUnavailable):
                    await run.client.call(THREAD_READ, read)
                known = len(run.ear.data(RuntimeChanged))
                if phase() is RuntimePhase.RESTARTING:
                    await more(run, RuntimeChanged, known)
            told = [one.runtime for one in run.ear.data(RuntimeChanged)]
            down = [one for one in told if one.state != RuntimePhase.READY]
            pauses = [(one.next_try_at or 0) - one.since for one in down]
            assert all(250 <= pause <= 750 for pause in pauses[:-1])
            assert len(set(pauses[:-1])) > 1, "no jitter"
            assert 7_500 <= pauses[-1] <= 22_500
            assert 5 <= len(down) <= 8
            with pytest.raises(CodexUnavailable) as refusal:
                await run.client.call(TURN_START, send(), timeout_s=20)
            assert refusal.value.data["gate"]["reason"] == "runtimeDown"
