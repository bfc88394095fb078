"""compact, revert and review, against an Agent that says what the test tells it."""

import json
from pathlib import Path
from typing import Any

import pytest

from clients.cli import reverting, reviewing
from clients.cli.exits import ExitCode, UsageProblemError
from clients.cli.reviewing import Wanted
from tests.support import cli_samples as samples
from tests.support.cli_runs import noted, paper, printed
from tests.support.cli_samples import SHOP
from tests.support.fake_agent import Answer, FakeAgent, Frame, fake
from transport.protocol.events import TurnCompleted
from transport.protocol.thread_acts import ThreadCompactResult
from transport.protocol.threads import ThreadResult
from transport.protocol.turns import TurnListResult, TurnResult, TurnStatus

TURNS = [samples.turn(f"turn-{n}", full=True) for n in (3, 2, 1, 0)]
LISTED: dict[str, Answer] = {
    "turn/list": lambda _: TurnListResult(turns=TURNS, head=1),
    "thread/revert": lambda _: ThreadResult(
        thread=samples.thread().model_copy(update={"last_turn_id": "turn-1"})
    ),
}


async def revert(screen: Any, *, before: str = "turn-2", yes: bool = True) -> ExitCode:
    return await reverting.revert(
        screen, host=None, thread=SHOP, before=before, yes=yes, wait_ms=0
    )


async def test_what_goes_is_shown_and_exactly_that_is_taken_back(state: Path) -> None:
    async with fake(state, LISTED) as agent:
        screen = paper()
        assert await revert(screen) == ExitCode.OK
        sent = agent.called("thread/revert")[0]
    assert sent["beforeTurnId"] == "turn-2"
    assert sent["expectedLastTurnId"] == "turn-3"
    rows = printed(screen).splitlines()
    assert rows[0] == "These 2 turns go:"
    assert [row.split()[0] for row in rows[1:3]] == ["turn-2", "turn-3"]
    assert rows[-1] == f"{SHOP} ends with turn turn-1 now"


async def test_nothing_is_taken_back_without_a_yes(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake(state, LISTED) as agent:
        with pytest.raises(UsageProblemError):  # nobody is there to be asked
            await revert(paper(), yes=False)

        async def no(_question: str) -> bool:  # noqa: ASYNC124 - it is awaited
            return False

        monkeypatch.setattr(reverting, "confirm_for_good", no)
        screen = paper()
        assert await revert(screen, yes=False) == ExitCode.FAILED
        assert "Nothing was taken back." in noted(screen)
        with pytest.raises(UsageProblemError):  # which turn?
            await revert(paper(), before="turn")
        assert agent.called("thread/revert") == []


def ending(agent: FakeAgent, result: Any) -> Answer:
    """Answer, then tell the turn's end."""

    def answer(_: Frame) -> Any:
        agent.tell(TurnCompleted(turn=samples.turn("turn-9")))
        return result

    return answer


@pytest.mark.parametrize(
    ("wanted", "target"),
    [
        (Wanted(), {"type": "uncommitted"}),
        (Wanted(uncommitted=True), {"type": "uncommitted"}),
        (Wanted(branch="main"), {"type": "branch", "base": "main"}),
        (Wanted(commit="beef12"), {"type": "commit", "sha": "beef12"}),
        (Wanted(text="the parser"), {"type": "custom", "text": "the parser"}),
    ],
)
async def test_a_review_is_asked_for_and_followed_to_its_end(
    wanted: Wanted, target: dict[str, str], state: Path
) -> None:
    async with fake(state, {}) as agent:
        turn = samples.turn("turn-9", status=TurnStatus.IN_PROGRESS)
        agent.answers["review/start"] = ending(agent, TurnResult(turn=turn))
        screen = paper()
        code = await reviewing.review(
            screen,
            host=None,
            thread=SHOP,
            wanted=wanted,
            follow=True,
            wait_ms=0,
            allow_pending=False,
            key=None,
        )
        assert code == ExitCode.OK
        assert agent.called("review/start")[0]["target"] == target
    assert "completed" in printed(screen)


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(text="x", uncommitted=True),
        Wanted(branch="main", commit="beef12"),
        Wanted(branch="--upload-pack=x"),
        Wanted(commit="HEAD"),
        Wanted(text=" "),
    ],
)
async def test_what_cannot_be_meant_is_said_before_anything_is_asked(
    wanted: Wanted,
) -> None:
    with pytest.raises(UsageProblemError):
        await reviewing.review(
            paper(),
            host=None,
            thread=SHOP,
            wanted=wanted,
            follow=True,
            wait_ms=0,
            allow_pending=False,
            key=None,
        )


async def test_a_compaction_is_followed_to_its_end(state: Path) -> None:
    async with fake(state, {}) as agent:
        turn = samples.turn("turn-9", status=TurnStatus.IN_PROGRESS)
        result = ThreadCompactResult(thread=samples.thread(), turn=turn)
        agent.answers["thread/compact"] = ending(agent, result)
        screen = paper(as_json=True)
        code = await reviewing.compact(
            screen,
            host=None,
            thread=SHOP,
            follow=True,
            wait_ms=0,
            allow_pending=True,
            key=None,
        )
        assert code == ExitCode.OK
        assert agent.called("thread/compact")[0]["allowPending"] is True
    told = [json.loads(row) for row in printed(screen).splitlines()]
    assert told[0]["result"]["turn"]["id"] == "turn-9"
