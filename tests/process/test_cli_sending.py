"""`send`, `new` and `interrupt` against an Agent that says what the test tells it."""

from functools import partial
from pathlib import Path

import pytest
import trio

from clients.cli import (
    following,
    reading,
    sending,
    starting,
)
from clients.cli.exits import ExitCode, FailedError, UsageProblemError
from tests.support import cli_asked
from tests.support import cli_samples as samples
from tests.support.cli_runs import noted, paper, printed
from tests.support.cli_samples import SHOP
from tests.support.fake_agent import Answer, Frame, fake
from tests.support.golden import check_golden
from transport.background import open_background
from transport.errors import CodexUnavailable, Conflict, OutcomeUnknown
from transport.protocol.base import WireModel
from transport.protocol.events import (
    ApprovalRequested,
    ItemCompleted,
    ItemStarted,
    Open,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.items import ItemStatus
from transport.protocol.threads import (
    ThreadListResult,
    ThreadReadResult,
    ThreadStartResult,
)
from transport.protocol.turns import TurnResult, TurnStartResult, TurnStatus

GOLDEN = Path(__file__).parent / "golden"
RUNNING = ItemStatus.IN_PROGRESS
APPROVAL = cli_asked.command_approval()


def running_turn() -> TurnStartResult:
    turn = samples.turn(status=TurnStatus.IN_PROGRESS)
    return TurnStartResult(turn=turn, delivery="started")


send = partial(
    sending.send,
    host=None,
    thread="019ad9a0",
    follow=True,
    wait_ms=0,
    after=None,
    allow_pending=False,
    key=None,
)


async def test_a_thread_is_never_guessed(state: Path) -> None:
    both = [samples.thread(), samples.thread(samples.BLOG, cwd="/home/ann/blog")]
    answer = ThreadListResult(threads=both, head=1)
    async with fake(state, thread_list=lambda _: answer) as agent:
        with pytest.raises(UsageProblemError, match="fits 2 threads") as caught:
            await send(paper(), "go on")
        shown = ["".join(span.text for span in row) for row in caught.value.details]
        assert "/home/ann/shop" in shown[0]
        assert "/home/ann/blog" in shown[1]
        assert agent.called("turn/start") == []


async def test_an_archived_thread_is_found_only_where_no_other_fits(
    state: Path,
) -> None:
    def answer(params: Frame) -> WireModel:
        found = [samples.thread()] if params.get("archived") else []
        return ThreadListResult(threads=found, head=1)

    screen = paper()
    async with fake(state, thread_list=answer):
        await reading.read(screen, host=None, thread="019ad9", turns=1, full=False)
    assert "Add a cart page" in printed(screen)


async def test_send_follows_the_turn_to_its_end(state: Path) -> None:
    def answer(params: Frame) -> WireModel:
        del params
        message = samples.message("", RUNNING)
        agent.tell(TurnStarted(turn=samples.turn(status=TurnStatus.IN_PROGRESS)))
        agent.tell(ItemCompleted(ref=1, item=samples.user_message()))
        agent.tell(ItemStarted(ref=2, item=samples.command(RUNNING)))
        agent.tell(ApprovalRequested(approval=APPROVAL))
        agent.tell(ItemCompleted(ref=2, item=samples.command(exit_code=2)))
        agent.tell(ItemCompleted(ref=3, item=samples.change()))
        agent.tell(ItemStarted(ref=4, item=message))
        agent.say(4, "The cart ")
        agent.say(4, "page is there.")
        agent.tell(ItemCompleted(ref=4, item=samples.message()))
        agent.tell(TurnCompleted(turn=samples.turn()))
        return running_turn()

    screen = paper()
    async with fake(state, turn_start=answer) as agent:
        assert await send(screen, "go on") is ExitCode.OK
    check_golden(GOLDEN / "send.txt", printed(screen))
    (params,) = agent.called("turn/start")
    assert params["expectedLastTurnId"] == "turn-0"
    assert params["input"] == [{"type": "text", "text": "go on"}]
    assert params["requestKey"].startswith("cli-")


async def test_every_send_has_a_key_of_its_own_unless_one_is_asked_about(
    state: Path,
) -> None:
    async with fake(state, turn_start=lambda _: running_turn()) as agent:
        for key in (None, None, "cli-00000000000000000000"):
            await send(paper(), "go on", follow=False, key=key, after="turn-7")
    keys = [params["requestKey"] for params in agent.called("turn/start")]
    assert len(set(keys)) == 3
    assert keys[2] == "cli-00000000000000000000"
    assert agent.called("turn/start")[0]["expectedLastTurnId"] == "turn-7"


async def test_a_repeat_of_what_has_ended_long_ago_ends_as_that_did(
    state: Path,
) -> None:
    """Nothing of its turn is told any more: history has how it ended."""
    old = samples.turn(status=TurnStatus.INTERRUPTED)
    read = ThreadReadResult(thread=samples.thread(), turns=[old], head=1)
    screen = paper()
    with trio.fail_after(60):
        async with fake(
            state, turn_start=lambda _: running_turn(), thread_read=lambda _: read
        ):
            code = await send(screen, "go on", key="cli-00000000000000000000")
    assert code is ExitCode.FAILED
    assert "interrupted" in printed(screen)


@pytest.mark.parametrize("status", [TurnStatus.FAILED, TurnStatus.INTERRUPTED])
async def test_a_turn_that_does_not_complete_fails_the_command(
    state: Path, status: TurnStatus
) -> None:
    def answer(params: Frame) -> WireModel:
        del params
        agent.tell(TurnCompleted(turn=samples.turn(status=status)))
        return running_turn()

    async with fake(state, turn_start=answer) as agent:
        assert await send(paper(), "go on") is ExitCode.FAILED


@pytest.mark.parametrize(
    "refusal", [CodexUnavailable("closed"), Conflict("newer"), OutcomeUnknown("?")]
)
async def test_a_refused_message_is_never_sent_again(
    state: Path, refusal: Exception
) -> None:
    def answer(params: Frame) -> WireModel:
        del params
        raise refusal

    async with fake(state, turn_start=answer) as agent:
        with pytest.raises(type(refusal)):
            await send(paper(), "go on")
    assert len(agent.called("turn/start")) == 1


async def test_a_lost_connection_does_not_end_the_following(state: Path) -> None:
    screen = paper()

    async def finish(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await agent.subscribed.wait()
        await agent.cut()
        agent.open_items = [
            Open(ref=4, seq=2, item=samples.message("The cart ", RUNNING))
        ]
        agent.say(4, "page is there.")
        agent.tell(ItemCompleted(ref=4, item=samples.message()))
        await agent.subscribed.wait()
        agent.tell(TurnCompleted(turn=samples.turn()))

    def answer(params: Frame) -> WireModel:
        del params
        agent.tell(ItemStarted(ref=4, item=samples.message("", RUNNING)))
        agent.say(4, "The cart ")
        return running_turn()

    async with fake(state, turn_start=answer) as agent, open_background(finish):
        assert await send(screen, "go on") is ExitCode.OK
    assert printed(screen).count("The cart page is there.") == 1
    assert "connection lost" in noted(screen)
    assert "connected again" in noted(screen)


async def test_after_a_gap_the_end_of_the_turn_is_read_from_history(
    state: Path,
) -> None:
    def answer(params: Frame) -> WireModel:
        del params
        agent.lost = 1_000_000
        return running_turn()

    async def lose(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await agent.wait_called("turn/start")
        await agent.cut()

    ended = ThreadReadResult(thread=samples.thread(), turns=[samples.turn()], head=1)
    answers: dict[str, Answer] = {
        "turn_start": answer,
        "thread_read": lambda _: ended,
    }
    async with fake(state, **answers) as agent, open_background(lose):
        assert await send(paper(), "go on") is ExitCode.OK


async def test_new_starts_a_thread_and_tells_only_that_one(state: Path) -> None:
    def answer(params: Frame) -> WireModel:
        del params
        foreign = samples.message("of another thread")
        agent.tell(ItemCompleted(ref=1, item=foreign), samples.BLOG)
        agent.tell(ItemCompleted(ref=2, item=samples.message("of ours")))
        agent.tell(TurnCompleted(turn=samples.turn()))
        turn = samples.turn(status=TurnStatus.IN_PROGRESS)
        return ThreadStartResult(thread=samples.thread(), turn=turn)

    screen = paper()
    new = partial(starting.new, host=None, follow=True, wait_ms=0, key=None)
    async with fake(state, thread_start=answer) as agent:
        assert await new(screen, "hello", cwd="/home/ann/shop") is ExitCode.OK
    assert "of ours" in printed(screen)
    assert "of another thread" not in printed(screen)
    assert agent.called("thread/start")[0]["cwd"] == "/home/ann/shop"


async def test_events_before_the_answer_are_bounded(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MAX_EARLY", 3)

    def answer(params: Frame) -> WireModel:
        del params
        for ref in range(10):
            agent.tell(ItemCompleted(ref=ref, item=samples.message(f"n{ref}")))
        agent.tell(TurnCompleted(turn=samples.turn()))
        return running_turn()

    async with fake(state, turn_start=answer) as agent:
        assert await send(paper(), "go on") is ExitCode.OK


async def test_interrupt_names_the_turn_that_runs(state: Path) -> None:
    turn = samples.turn("turn-8", status=TurnStatus.IN_PROGRESS)
    read = ThreadReadResult(thread=samples.thread(), turns=[turn], head=1)
    stopped = TurnResult(turn=samples.turn("turn-8", status=TurnStatus.INTERRUPTED))
    screen = paper()
    answers: dict[str, Answer] = {
        "thread_read": lambda _: read,
        "turn_interrupt": lambda _: stopped,
    }
    async with fake(state, **answers) as agent:
        await sending.interrupt(screen, host=None, thread=SHOP, turn=None)
    assert agent.called("turn/interrupt")[0]["turnId"] == "turn-8"
    assert "interrupted" in printed(screen)


async def test_interrupt_says_when_nothing_runs(state: Path) -> None:
    async with fake(state) as agent:
        with pytest.raises(FailedError, match="no turn runs"):
            await sending.interrupt(paper(), host=None, thread=SHOP, turn=None)
    assert agent.called("turn/interrupt") == []
