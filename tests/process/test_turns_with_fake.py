"""A writer on an app-server that misbehaves on purpose: loading, turns, questions, interrupts."""

from pathlib import Path
from typing import Any

import pytest
import trio

from adapter.errors import (
    ChildExitedError,
    CodexRefusedError,
    DiedUnansweredError,
    NoAnswerError,
    NotDeliveredError,
    ThreadLockedError,
)
from adapter.runtime.events import ItemDelta
from adapter.runtime.threads import NewThread
from tests.support.fake_app_server import (
    completed,
    place_fake,
    sent,
    started,
    thread,
    turn,
)
from tests.support.runtimes import open_gate
from tests.support.scripted_codex import (
    LOCKED,
    NO_TURNS,
    RESUMED,
    STARTED,
    THREAD,
    open_fake,
    open_loaded,
    sent_methods,
)
from transport.protocol.approvals import ApprovalState
from transport.protocol.turns import TurnStatus

KEY = "key-0123456789abcdef"


async def test_our_own_lock_is_waited_for_once_and_a_foreign_one_is_not(
    folder: Path,
) -> None:
    plays = [RESUMED]
    async with open_fake(
        folder, thread__resume=plays, thread__turns__list=NO_TURNS
    ) as run:
        async with run.writer(THREAD):
            pass
        # The next process says "locked" once, as codex does while the old one dies.
        place_fake(
            folder / "bin",
            {
                "on": {
                    "thread/resume": [[{"error": LOCKED}], RESUMED],
                    "thread/turns/list": NO_TURNS,
                }
            },
        )
        looks: list[str] = []
        async with run.runtime.open_writer(run.seen, guard=open_gate) as writer:
            await writer.resume(THREAD, guard=lambda: looks.append("looked"))
            assert looks == ["looked", "looked"]
        async with run.runtime.open_writer(run.seen, guard=open_gate) as writer:
            with pytest.raises(ThreadLockedError):
                await writer.resume("thr_other", guard=open_gate)


DONE: list[Any] = [{"result": {}}]


async def test_a_turn_without_proof_is_unknown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.servers.running.PROOF_S", 0.3)
    phantom: Any = [{"result": {"turn": turn("phantom")}}, started("another")]
    async with open_loaded(folder, turn__start=[phantom]) as (_, writer):
        with pytest.raises(NoAnswerError):
            await writer.start_turn(["x"], client_key=KEY, guard=open_gate)


async def test_a_phantom_id_gives_way_to_the_turn_with_our_key(folder: Path) -> None:
    item: Any = {
        "type": "userMessage",
        "id": "i1",
        "clientId": "$clientUserMessageId",
        "content": [{"type": "text", "text": "x"}],
    }
    params: Any = {"threadId": THREAD, "turnId": "real", "item": item, "startedAtMs": 1}
    play: Any = [
        started("real"),
        {"result": {"turn": turn("phantom")}},
        {"notify": "item/started", "params": params},
    ]
    async with open_loaded(folder, turn__start=[play]) as (_, writer):
        ours = await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
        assert ours.id == "real"
        assert writer.running_turn_id == "real"


async def test_dying_after_the_bytes_is_unknown_and_before_them_certain(
    folder: Path,
) -> None:
    outcomes: list[Exception] = []
    with pytest.raises(ChildExitedError):
        async with open_loaded(folder, turn__start=[[{"kill": True}]]) as (_, writer):
            try:
                await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
            except NoAnswerError as exc:
                outcomes.append(exc)
            with trio.CancelScope(shield=True):  # as from a task outside the block
                try:
                    await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
                except NotDeliveredError as exc:
                    outcomes.append(exc)
    assert [type(one) for one in outcomes] == [DiedUnansweredError, NotDeliveredError]


async def test_a_refused_turn_leaves_a_new_threads_name_unsaid(folder: Path) -> None:
    refused: Any = [
        {"error": {"code": -32600, "message": "failed to load configuration"}}
    ]
    async with (
        open_fake(folder, thread__start=[RESUMED], turn__start=[refused]) as run,
        run.writer() as writer,
    ):
        await writer.start_thread(NewThread(cwd="/w", name="N"), guard=open_gate)
        with pytest.raises(CodexRefusedError, match="configuration"):
            await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
    assert "thread/name/set" not in sent_methods(folder)


async def test_only_what_was_asked_for_reaches_a_new_thread(folder: Path) -> None:
    async with (
        open_fake(folder, thread__start=[RESUMED], turn__start=[STARTED]) as run,
        run.writer() as writer,
    ):
        await writer.start_thread(NewThread(cwd="/w"), guard=open_gate)
        every = NewThread(
            cwd="/w",
            name="N",
            model="m",
            effort="low",
            sandbox="read-only",
            approval_policy="untrusted",
        )
        await writer.start_thread(every, guard=open_gate)
        await writer.start_turn(["a", "b"], client_key=KEY, guard=open_gate)
    asked = {m["method"]: m["params"] for m in sent(folder / "bin") if "params" in m}
    first, second = [
        m["params"] for m in sent(folder / "bin") if m["method"] == "thread/start"
    ]
    assert first == {"cwd": "/w"}
    assert second == {
        "cwd": "/w",
        "model": "m",
        "config": {"model_reasoning_effort": "low"},
        "sandbox": "read-only",
        "approvalPolicy": "untrusted",
    }
    assert asked["thread/name/set"] == {"threadId": THREAD, "name": "N"}
    assert asked["turn/start"] == {
        "threadId": THREAD,
        "input": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "clientUserMessageId": KEY,
    }
    assert run.seen.notices() == ["notNamed"]  # the fake knows no thread/name/set


async def test_a_question_that_nobody_here_can_answer_is_refused_at_once(
    folder: Path,
) -> None:
    odd: Any = {"ask": "odd/question", "id": 0, "params": {"threadId": THREAD}}
    known: Any = {
        "ask": "item/tool/call",
        "id": 1,
        "params": {
            "threadId": THREAD,
            "turnId": "turn_1",
            "callId": "c",
            "tool": "t",
            "arguments": {},
        },
    }
    play: Any = [*STARTED, odd, known]
    ends: Any = {"1": [completed("turn_1")]}
    async with open_loaded(folder, turn__start=[play], answers=ends) as (run, writer):
        await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
        await run.seen.turn_completed("turn_1")  # the fake says it when both came
        assert writer.approvals() == []
    answers = {m["id"]: m for m in sent(folder / "bin") if "method" not in m}
    assert "error" in answers[0]
    assert "error" in answers[1] or answers[1]["result"]["success"] is False


async def test_an_interrupt_that_is_never_confirmed_is_unknown_and_withdraws_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.servers.interrupt.TURN_END_S", 0.3)
    question: Any = {
        "ask": "item/commandExecution/requestApproval",
        "id": 0,
        "params": {
            "threadId": THREAD,
            "turnId": "turn_1",
            "itemId": "c1",
            "startedAtMs": 1,
            "command": "touch /x",
            "cwd": "/w",
            "availableDecisions": ["accept", "cancel"],
        },
    }
    async with open_loaded(
        folder, turn__start=[[*STARTED, question]], turn__interrupt=[DONE]
    ) as (run, writer):
        await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
        await run.seen.approval()
        with pytest.raises(NoAnswerError):
            await writer.interrupt("turn_1")
        assert [end.state for end in run.seen.resolved()] == [ApprovalState.WITHDRAWN]
        assert writer.running_turn_id == "turn_1"
        assert writer.busy


async def test_a_turn_that_ends_while_it_is_interrupted_is_just_ended(
    folder: Path,
) -> None:
    gone: Any = {"error": {"code": -32600, "message": "no active turn to interrupt"}}
    play: Any = [completed("turn_1"), gone]
    async with open_loaded(folder, turn__start=[STARTED], turn__interrupt=[play]) as (
        _,
        writer,
    ):
        await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
        ended = await writer.interrupt("turn_1")
        assert ended.status is TurnStatus.COMPLETED


async def test_an_interrupt_reaches_the_turns_of_sub_agents(folder: Path) -> None:
    child: Any = thread("thr_child", parentThreadId=THREAD)
    play: Any = [
        *STARTED,
        {"notify": "thread/started", "params": {"thread": child}},
        started("turn_child", "thr_child"),
    ]
    stop: Any = [{"result": {}}, completed("$turnId", "$threadId", "interrupted")]
    async with open_loaded(folder, turn__start=[play], turn__interrupt=[stop]) as (
        run,
        writer,
    ):
        await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
        await run.seen.until(lambda: "turn_child" in run.seen.turns_started())
        await writer.interrupt("turn_1")
        await writer.wait_idle()
    stopped = [
        (m["params"]["threadId"], m["params"]["turnId"])
        for m in sent(folder / "bin")
        if m.get("method") == "turn/interrupt"
    ]
    assert stopped == [(THREAD, "turn_1"), ("thr_child", "turn_child")]


async def test_a_flood_of_deltas_arrives_whole_and_in_order(folder: Path) -> None:
    item: Any = {"type": "agentMessage", "id": "m1", "text": ""}
    begin: Any = {
        "threadId": THREAD,
        "turnId": "turn_1",
        "item": item,
        "startedAtMs": 1,
    }
    delta: Any = {
        "threadId": THREAD,
        "turnId": "turn_1",
        "itemId": "m1",
        "delta": "x" * 900,
    }
    play: Any = [
        *STARTED,
        {"notify": "item/started", "params": begin},
        {"notify": "item/agentMessage/delta", "params": delta, "flood": 5_000},
        completed("turn_1", status="interrupted"),
    ]
    async with open_loaded(folder, turn__start=[play]) as (run, writer):
        await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
        await run.seen.turn_completed("turn_1")
        text = "".join(e.text for e in run.seen.events if isinstance(e, ItemDelta))
    assert len(text) == 5_000 * 900
