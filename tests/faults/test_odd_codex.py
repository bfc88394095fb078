"""A codex that lives and talks nonsense, twice, or out of order."""

from typing import Any

import pytest
import trio

from tests.support.fake_app_server import thread
from tests.support.faulty_codex import (
    COMMAND,
    ENDS,
    STARTED,
    THREAD,
    begun,
    ended,
    message,
    open_faulty,
    question,
    send,
)
from tests.support.odd_steps import Step, completes
from transport.errors import Overloaded, RuntimeFailure
from transport.protocol.approvals import ApprovalAnswerParams, ApprovalState
from transport.protocol.events import (
    ApprovalRequested,
    ItemCompleted,
    RuntimeChanged,
    TurnStarted,
)
from transport.protocol.items import AgentMessage, Command
from transport.protocol.methods import (
    APPROVAL_ANSWER,
    THREAD_LIST,
    THREAD_READ,
    TURN_START,
)
from transport.protocol.threads import ThreadListParams, ThreadReadParams
from transport.protocol.turns import TurnStatus

OVERLOADED: Step = {
    "error": {"code": -32001, "message": "Server overloaded; retry later."}
}


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


async def test_a_number_that_no_client_could_read_is_left_out_and_harms_nobody() -> (
    None
):
    huge = 2**70
    play = [
        *STARTED,
        begun(COMMAND),
        ended({**COMMAND, "status": "completed", "exitCode": huge}),
        *ENDS,
    ]
    refusal: Step = {"error": {"code": huge, "message": "no"}}
    with trio.fail_after(240):
        async with open_faulty(turn__start=[[refusal]]) as run:
            with pytest.raises(RuntimeFailure) as refused:
                await run.client.call(TURN_START, send(), timeout_s=20)
            assert refused.value.data["code"] == 0
            await run.ear.wait_free()
            run.play(turn__start=[play])
            await run.client.call(TURN_START, send(), timeout_s=20)
            assert await completes(run) is TurnStatus.COMPLETED
            (item,) = [one.item for one in run.ear.data(ItemCompleted)]
            assert isinstance(item, Command)
            assert item.exit_code is None


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
