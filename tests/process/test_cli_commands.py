"""Commands against an Agent that says what the test tells it, over a real socket."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from clients.cli import (
    answering,
    devices,
    following,
    reading,
    sending,
    starting,
    watching,
)
from clients.cli.doors import open_local
from clients.cli.exits import ExitCode, FailedError, UsageProblemError
from clients.cli.pairing import offer
from clients.cli.screen import Screen
from tests.support import cli_samples as samples
from tests.support.cli_runs import noted, paper, paper_of, printed
from tests.support.cli_samples import SHOP
from tests.support.fake_agent import Answer, FakeAgent, Frame, open_fake_agent
from tests.support.golden import check_golden
from transport.background import open_background
from transport.errors import CodexUnavailable, Conflict, OutcomeUnknown
from transport.protocol.admin import (
    DeviceListResult,
    DeviceResult,
    PairAwaitResult,
    PairCandidate,
    PairDecideResult,
    PairOpenParams,
    PairOpenResult,
)
from transport.protocol.approvals import (
    ApprovalListResult,
    ApprovalResult,
    ApprovalState,
)
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
DEADLINE_S = 240
RUNNING = ItemStatus.IN_PROGRESS
APPROVAL = samples.command_approval()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("THREADGATE_STATE_DIR", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("THREADGATE_CONFIG", "THREADGATE_RUNTIME_DIR", "THREADGATE_HOST"):
        monkeypatch.delenv(name, raising=False)
    return folder


@asynccontextmanager
async def fake(state: Path, **answers: Answer) -> AsyncGenerator[FakeAgent]:
    """An Agent; `turn_start=f` answers `turn/start` by `f`."""
    agent = FakeAgent()
    for name, answer in answers.items():
        agent.answers[name.replace("_", "/", 1)] = answer
    with trio.fail_after(DEADLINE_S):
        async with open_fake_agent(state / "run" / "admin.sock", agent):
            yield agent


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


async def test_status_says_first_whether_one_can_write(state: Path) -> None:
    screen = paper()
    async with fake(state) as agent:
        agent.gate = samples.closed_gate()
        assert await reading.status(screen, host=None) is ExitCode.OK
    assert printed(screen).splitlines()[0] == (
        "Read-only: Codex desktop (pid 812, since 11:42) is the writer. "
        "Nothing waits for an answer."
    )


async def test_json_is_one_value_in_the_words_of_the_protocol(state: Path) -> None:
    screen = paper(as_json=True)
    async with fake(state):
        await reading.status(screen, host=None)
        await reading.threads(
            screen, host=None, archived=False, query=None, cwd=None, count=5
        )
        await reading.read(screen, host=None, thread=SHOP, turns=1, full=False)
        await reading.approvals(screen, host=None, thread=None)
    status, threads, read, approvals = map(json.loads, printed(screen).splitlines())
    assert status["gate"]["state"] == "open"
    assert threads["threads"][0]["id"] == SHOP
    assert read["turns"][0]["id"] == "turn-0"
    assert approvals == {"approvals": []}


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


def waiting(_: Frame) -> WireModel:
    return ApprovalListResult(approvals=[APPROVAL], head=1)


def answered(params: Frame) -> WireModel:
    ended = samples.command_approval(
        state=ApprovalState.ANSWERED, choice=params["choice"], decided_by="local"
    )
    return ApprovalResult(approval=ended)


async def approve(screen: Screen, *, yes: bool = True, **more: object) -> ExitCode:
    options = {"host": None, "remember": False, "digest": None, **more}
    call = partial(answering.approve, approval="0123", yes=yes)
    return await call(screen, **options)  # type: ignore[arg-type] # of the test


async def test_approve_allows_exactly_what_was_fetched(state: Path) -> None:
    screen = paper()
    async with fake(state, approval_list=waiting, approval_answer=answered) as agent:
        assert await approve(screen) is ExitCode.OK
    assert agent.called("approval/answer") == [
        {"approvalId": APPROVAL.id, "digest": APPROVAL.digest, "choice": "accept"}
    ]
    assert "make deploy" in printed(screen)
    assert "network access for this command" in printed(screen)
    assert "approved at the workstation" in printed(screen)


async def test_approve_without_a_terminal_needs_a_yes(state: Path) -> None:
    async with fake(state, approval_list=waiting) as agent:
        with pytest.raises(UsageProblemError, match="--yes"):
            await approve(paper(), yes=False)
    assert agent.called("approval/answer") == []


async def test_what_has_changed_since_one_looked_is_not_approved(state: Path) -> None:
    async with fake(state, approval_list=waiting) as agent:
        with pytest.raises(FailedError, match="is not what you saw"):
            await approve(paper(), digest="of-something-else")
    assert agent.called("approval/answer") == []


async def test_a_choice_that_is_not_offered_is_not_invented(state: Path) -> None:
    async with fake(state, approval_list=waiting) as agent:
        with pytest.raises(FailedError, match="offered is: allow"):
            await approve(paper(), remember=True)
    assert agent.called("approval/answer") == []


async def test_an_approval_that_waits_no_more_says_what_does(state: Path) -> None:
    async with fake(state, approval_list=waiting):
        with pytest.raises(FailedError, match=APPROVAL.id):
            await approve(paper(), approval="ffff")


@pytest.mark.parametrize(("stop", "choice"), [(False, "decline"), (True, "cancel")])
async def test_deny_declines_without_asking(
    state: Path, stop: bool, choice: str
) -> None:
    async with fake(state, approval_list=waiting, approval_answer=answered) as agent:
        code = await answering.deny(paper(), host=None, approval="0123", stop=stop)
        assert code is ExitCode.OK
    assert agent.called("approval/answer")[0]["choice"] == choice


async def test_watch_streams_json_lines_and_comes_back_by_itself(state: Path) -> None:
    screen = paper(as_json=True)

    async def watch(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await watching.watch(screen, host=None, thread=None)

    async with fake(state) as agent, open_background(watch):
        await agent.subscribed.wait()
        agent.tell(TurnStarted(turn=samples.turn()))
        await paper_of(screen).wait_lines(2)
        await agent.cut()
        agent.tell(TurnCompleted(turn=samples.turn()))
        await paper_of(screen).wait_lines(4)
    lines = [json.loads(row) for row in printed(screen).splitlines()]
    assert [row["event"] for row in lines] == [
        "resumed",
        "turn/started",
        "resumed",
        "turn/completed",
    ]
    assert lines[2]["verdict"] == "ok"
    assert [lines[1]["seq"], lines[3]["seq"]] == [1, 2]


async def test_a_watch_begins_with_what_waits(state: Path) -> None:
    screen = paper()

    async def watch(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await watching.watch(screen, host=None, thread=SHOP)

    async with fake(state, approval_list=waiting) as agent, open_background(watch):
        await agent.wait_called("approval/list")
        agent.tell(ApprovalRequested(approval=APPROVAL))  # its own event, late
        agent.tell(TurnCompleted(turn=samples.turn()))
        await paper_of(screen).wait_for("completed")
    assert printed(screen).count("make deploy") == 1
    assert "make deploy" in printed(screen)
    assert "threadgate approve apr_" in printed(screen)


def came(_: Frame) -> WireModel:
    return PairAwaitResult(outcome="candidate", candidate=samples.candidate())


def offered(_: Frame) -> WireModel:
    return PairOpenResult(text="TGATE:ABC", expires_at=samples.NOON + 120_000)


@pytest.mark.parametrize("accept", [True, False])
async def test_pairing_asks_and_repeats_the_check_number(
    state: Path, accept: bool
) -> None:
    asked: list[PairCandidate] = []

    async def ask(candidate: PairCandidate) -> bool:
        asked.append(candidate)
        return accept

    def decided(params: Frame) -> WireModel:
        row = samples.device() if params["accept"] else None
        return PairDecideResult(device=row)

    screen = paper()
    answers: dict[str, Answer] = {
        "pair_open": offered,
        "pair_await": came,
        "pair_decide": decided,
    }
    async with fake(state, **answers) as agent, open_local() as client:
        if accept:
            device = await offer(screen, client, PairOpenParams(), ask)
            assert device == samples.device()
        else:
            with pytest.raises(FailedError, match="not paired"):
                await offer(screen, client, PairOpenParams(), ask)
    assert asked == [samples.candidate()]
    assert agent.called("pair/decide") == [{"accept": accept, "check": "012345"}]
    assert "TGATE:ABC" in printed(screen)
    assert "012 345" in printed(screen)


async def test_devices_are_revoked_by_a_beginning_or_a_name_never_by_chance(
    state: Path,
) -> None:
    rows = [
        samples.device("0a1b2c3d4e5f6071", "phone"),
        samples.device("ffff2c3d4e5f6071", "0a1b2c3d4e5f6071"),
        samples.device("eeee2c3d4e5f6071", "laptop"),
    ]
    listed = DeviceListResult(devices=rows)
    result = DeviceResult(device=rows[2])
    answers: dict[str, Answer] = {
        "device_list": lambda _: listed,
        "device_revoke": lambda _: result,
    }
    async with fake(state, **answers) as agent:
        await devices.revoke(paper(), device="laptop", stop=False)
        await devices.revoke(paper(), device="0a1b2c", stop=True)
        with pytest.raises(UsageProblemError, match="several devices"):
            await devices.revoke(paper(), device="0a1b2c3d4e5f6071", stop=False)
    revoked = [
        (p["deviceId"], p.get("stop", False)) for p in agent.called("device/revoke")
    ]
    assert revoked == [("eeee2c3d4e5f6071", False), ("0a1b2c3d4e5f6071", True)]
