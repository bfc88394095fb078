"""`steer`, `send --when-free`, `queue`, `background`, `goal`, against a played Agent."""

from pathlib import Path

from clients.cli import reading, sending, waiting
from clients.cli.exits import ExitCode
from clients.cli.message import Manner
from clients.cli.screen import Screen
from clients.cli.since import threads_since
from tests.support import cli_samples as samples
from tests.support.cli_runs import noted, paper, printed
from tests.support.cli_samples import SHOP
from tests.support.fake_agent import Answer, fake
from transport.protocol.admin import AuditListResult
from transport.protocol.background import (
    BackgroundCommand,
    BackgroundListResult,
    BackgroundStopResult,
)
from transport.protocol.events import TurnCompleted
from transport.protocol.goals import Goal, GoalGetResult, GoalResult, GoalStatus
from transport.protocol.queue import (
    DroppedMessage,
    QueueDeleteResult,
    QueuedMessage,
    QueueListResult,
    WaitsFor,
)
from transport.protocol.threads import ThreadReadResult
from transport.protocol.turns import (
    Queued,
    TurnListResult,
    TurnResult,
    TurnStartResult,
    TurnStatus,
    TurnSteerResult,
)

RUNNING = samples.turn("turn-8", status=TurnStatus.IN_PROGRESS)
READ = ThreadReadResult(thread=samples.thread(), turns=[RUNNING], head=1)
WAITING = [
    QueuedMessage(
        queue_id=f"q-{number}{'0' * 31}",
        thread_id=SHOP,
        position=number,
        preview=f"message {number}\x1b[31m",
        device_id="local",
        created_at=1_796_000_000_000,
        expires_at=1_796_000_100_000,
        waits_for=WaitsFor.TURN if number == 1 else None,
    )
    for number in (1, 2)
]
DROPPED = [
    DroppedMessage(
        queue_id=f"q-{number}{'0' * 31}",
        thread_id=SHOP,
        device_id="local",
        preview=preview,
        code="queueExpired",
        message="It waited for a day.\x1b[31m",
        at=1_796_000_000_000,
    )
    for number, preview in ((8, "message 8"), (9, ""))
]
COMMAND = BackgroundCommand(
    item_id="call_7", thread_id=SHOP, command="sleep 600", cwd="/work"
)


async def send(text: str, manner: Manner, screen: Screen) -> ExitCode:
    return await sending.send(
        screen,
        text,
        host=None,
        thread=SHOP,
        follow=True,
        wait_ms=0,
        after=None,
        allow_pending=False,
        key=None,
        manner=manner,
    )


async def test_a_message_that_waits_is_named_and_not_followed(state: Path) -> None:
    queued = TurnStartResult(
        queued=Queued(queue_id=WAITING[0].queue_id, position=1), delivery="queued"
    )
    screen = paper()
    answers: dict[str, Answer] = {"turn/start": lambda _: queued}
    async with fake(state, answers) as agent:
        manner = Manner(
            delivery="queue", model="m", effort="low", mode="plan", cwd="/w"
        )
        assert await send("later", manner, screen) is ExitCode.OK
    (params,) = agent.called("turn/start")
    named = {key: params[key] for key in ("delivery", "model", "effort", "mode", "cwd")}
    assert [*named.values()] == ["queue", "m", "low", "plan", "/w"]
    assert WAITING[0].queue_id in printed(screen)
    assert "queue delete" in noted(screen)


async def test_a_steered_message_names_the_running_turn_and_follows_it(
    state: Path,
) -> None:
    screen = paper()

    def answer(_: object) -> TurnSteerResult:
        agent.tell(TurnCompleted(turn=samples.turn("turn-8")))
        return TurnSteerResult(turn=RUNNING, pending=True)

    answers: dict[str, Answer] = {"thread/read": lambda _: READ, "turn/steer": answer}
    async with fake(state, answers) as agent:
        code = await sending.steer(
            screen, "and", host=None, thread=SHOP, turn=None, follow=True, key=None
        )
    assert code is ExitCode.OK
    (params,) = agent.called("turn/steer")
    assert params["turnId"] == "turn-8"
    assert "next call" in printed(screen)


async def test_the_queue_says_what_waits_for_what_and_gives_back(state: Path) -> None:
    refused = {"waits_for": WaitsFor.CODEX, "waits_message": "config.toml:3: no\x1b"}
    found = QueueListResult(
        queue=[*WAITING, WAITING[0].model_copy(update=refused)],
        codex_queue=["theirs"],
        dropped=DROPPED,
        head=1,
    )
    screen = paper()
    answers: dict[str, Answer] = {
        "queue/list": lambda _: found,
        "queue/delete": lambda _: QueueDeleteResult(),
    }
    async with fake(state, answers) as agent:
        await waiting.queue_list(screen, host=None, thread=None)
        await waiting.queue_delete(paper(), host=None, message="q-2000")
    shown = printed(screen)
    assert "message 1" in shown
    assert "running turn" in shown
    assert "waits behind the one before it" in shown
    assert "theirs" in shown
    assert "for Codex, which refuses for now: config.toml:3: no" in shown
    assert "kept for a day" in shown
    assert "message 8" in shown
    assert "no words are kept" in shown
    assert "It waited for a day." in shown
    assert "\x1b" not in shown
    assert agent.called("queue/delete")[0]["queueId"] == WAITING[1].queue_id


async def test_status_says_how_much_waits_and_that_something_was_not_sent(
    state: Path,
) -> None:
    found = QueueListResult(queue=[*WAITING], dropped=DROPPED, head=1)
    screen = paper()
    async with fake(state, {"queue/list": lambda _: found}):
        await reading.status(screen, host=None)
    assert f"{len(WAITING)} messages wait for their thread" in printed(screen)
    assert f"{len(DROPPED)} messages were not sent" in printed(screen)
    assert "threadgate queue list" in printed(screen)


async def test_what_happened_lately_includes_what_was_not_sent(state: Path) -> None:
    found = QueueListResult(queue=[], dropped=DROPPED, head=1)
    answers: dict[str, Answer] = {
        "queue/list": lambda _: found,
        "turn/list": lambda _: TurnListResult(turns=[], next_cursor=None, head=1),
        "audit/list": lambda _: AuditListResult(entries=[], next_cursor=None),
    }
    shown: list[str] = []
    for since in (DROPPED[-1].at, DROPPED[-1].at + 1):
        screen = paper()
        async with fake(state, answers):
            await threads_since(
                screen,
                host=None,
                since=since,
                archived=False,
                query=None,
                cwd=None,
                count=9,
            )
        shown.append(printed(screen))
    assert "It waited for a day." in shown[0]
    assert "not sent" not in shown[1]


async def test_background_commands_are_shown_and_one_is_ended(state: Path) -> None:
    screen = paper()
    answers: dict[str, Answer] = {
        "background/list": lambda _: BackgroundListResult(commands=[COMMAND], head=1),
        "background/stop": lambda _: BackgroundStopResult(),
    }
    async with fake(state, answers) as agent:
        await waiting.background(screen, host=None, thread=SHOP, stop="call_7")
    assert "sleep 600" in printed(screen)
    assert agent.called("background/stop")[0]["itemId"] == "call_7"


async def test_an_interrupt_can_end_what_runs_on(state: Path) -> None:
    stopped = TurnResult(turn=samples.turn("turn-8", status=TurnStatus.INTERRUPTED))
    answers: dict[str, Answer] = {
        "thread/read": lambda _: READ,
        "turn/interrupt": lambda _: stopped,
    }
    async with fake(state, answers) as agent:
        await sending.interrupt(
            paper(), host=None, thread=SHOP, turn=None, background=True
        )
    assert agent.called("turn/interrupt")[0]["background"] is True


async def test_a_goal_is_shown_set_paused_and_cleared(state: Path) -> None:
    goal = Goal(objective="all green", status=GoalStatus.ACTIVE)
    answers: dict[str, Answer] = {
        "thread/goal/get": lambda _: GoalGetResult(goal=goal, head=1),
        "thread/goal/set": lambda _: GoalResult(goal=goal),
        "thread/goal/pause": lambda _: GoalResult(goal=goal),
        "thread/goal/clear": lambda _: GoalResult(),
    }
    screen = paper()
    async with fake(state, answers) as agent:
        for objective, pause, clear in (
            (None, False, False),
            ("all green", False, False),
            (None, True, False),
            (None, False, True),
        ):
            await waiting.goal(
                screen,
                host=None,
                thread=SHOP,
                objective=objective,
                pause=pause,
                clear=clear,
            )
    for method in ("get", "set", "pause", "clear"):
        assert len(agent.called(f"thread/goal/{method}")) == 1
    assert printed(screen).splitlines()[-1] == "No goal."
    assert "all green" in printed(screen)
