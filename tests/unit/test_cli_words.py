"""Times, durations, columns and colours."""

from datetime import timedelta, timezone

import pytest

from clients.cli.clock import Clock, duration
from clients.cli.columns import cells, cut, table
from clients.cli.style import Span, line, paint
from tests.support.cli_samples import NOON

CLOCK = Clock(now=NOON, zone=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("ms", "says"),
    [
        (300, "0.3 s"),
        (2_000, "2 s"),
        (12_400, "12 s"),
        (60_000, "1 min"),
        (184_000, "3 min 4 s"),
        (7_500_000, "2 h 5 min"),
        (7_200_000, "2 h"),
    ],
)
def test_durations_are_said_in_two_units_at_most(ms: int, says: str) -> None:
    assert duration(ms) == says


@pytest.mark.parametrize(
    ("passed", "says"),
    [
        (0, "now"),
        (-5_000, "now"),
        (12_000, "12 s"),
        (180_000, "3 min"),
        (7_300_000, "2 h"),
        (864_000_000, "10 d"),
    ],
)
def test_how_long_ago_is_one_unit(passed: int, says: str) -> None:
    assert CLOCK.ago(NOON - passed) == says


def test_a_moment_is_in_the_zone_of_the_person_and_has_a_date_on_another_day() -> None:
    assert CLOCK.time(NOON) == "14:00"
    assert CLOCK.time(NOON - 86_400_000) == "2026-11-30 14:00"


@pytest.mark.parametrize("at", [10**15, -(10**15), 10**18, 2**80])
def test_a_moment_that_is_none_is_said_to_be_none(at: int) -> None:
    assert CLOCK.time(at) == "no date"


def test_a_deadline_that_has_passed_leaves_no_time() -> None:
    assert CLOCK.left(NOON + 90_000) == "1 min 30 s"
    assert CLOCK.left(NOON) == "no time"


def test_wide_letters_take_two_cells_and_columns_still_align() -> None:
    rows = [[Span("記事"), Span("b")], [Span("ab"), Span("c")]]
    shown = [paint(row, colour=False) for row in table(("A", "B"), rows, width=None)]
    assert shown == ["A     B", "記事  b", "ab    c"]
    assert cells("記事é") == 5


def test_the_last_column_is_cut_to_the_width_of_the_terminal() -> None:
    rows = [[Span("id"), Span("a long title that goes on")]]
    assert paint(table(("A", "B"), rows, width=20)[1], colour=False) == (
        "id  a long title th…"
    )
    assert cut("記事記事", 5) == "記事…"


def test_colour_is_added_only_where_it_is_wanted_and_around_safe_text() -> None:
    row = line("see ", Span("\x1b[31mthis\n", "bad"))
    assert paint(row, colour=False) == "see [31mthis"
    assert paint(row, colour=True) == "see \x1b[31m[31mthis \x1b[0m"
