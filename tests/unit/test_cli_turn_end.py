"""When the turn that a command waits for is over, and how its beginning and end are told."""

import pytest

from clients.cli.transcript import Transcript
from clients.cli.turn_watch import KEPT, TurnWatch
from tests.support import cli_samples as samples
from tests.support.cli_samples import SHOP
from tests.support.story import Story, resumed, told
from transport.protocol.events import (
    TurnCompleted,
    TurnReplaced,
    TurnStarted,
)
from transport.protocol.turns import TurnStatus


def test_a_start_that_was_announced_is_not_told_again() -> None:
    started = Story().event(TurnStarted(turn=samples.turn()))
    assert told(Transcript(root=SHOP, announced="turn-1"), [started]) == ""


@pytest.mark.parametrize("order", ["answer first", "end first"])
def test_the_turn_has_ended_whichever_comes_first(order: str) -> None:
    watch = TurnWatch()
    end = Story().event(TurnCompleted(turn=samples.turn("turn-1")))
    if order == "answer first":
        watch.expect("turn-1")
        assert watch.ended is None
        watch.feed(end)
    else:
        watch.feed(end)
        assert watch.ended is None
        watch.expect("turn-1")
    assert watch.ended == samples.turn("turn-1")


def test_another_turns_end_is_not_ours_and_is_not_kept_for_ever() -> None:
    watch, story = TurnWatch(), Story()
    for number in range(KEPT + 10):
        watch.feed(story.event(TurnCompleted(turn=samples.turn(f"t{number}"))))
    watch.expect("t1")
    assert watch.ended is None


def test_after_a_gap_history_tells_the_end_even_where_it_infers_it() -> None:
    watch = TurnWatch()
    watch.expect("turn-1")
    running = samples.turn(status=TurnStatus.IN_PROGRESS)
    assert watch.reread([samples.turn("turn-2"), running])
    assert watch.ended is None
    died = samples.turn(status=TurnStatus.INTERRUPTED)
    died = died.model_copy(update={"inferred": True})
    assert watch.reread([died])
    assert watch.ended == died


def test_a_turn_that_history_does_not_know_is_not_waited_for() -> None:
    watch = TurnWatch()
    watch.expect("turn-1")
    assert not watch.reread([samples.turn("turn-2")])
    assert watch.ended is None


def test_a_turn_that_is_told_anew_is_said_as_it_stands() -> None:
    story = Story()
    shown = told(
        Transcript(root=SHOP),
        [resumed(), story.event(TurnReplaced(turn=samples.turn()), SHOP)],
    )
    assert "as stored now" in shown
