"""Exactly one thing is meant, or the person is asked: never a guess."""

import pytest

from clients.cli.choose import pick, short
from clients.cli.exits import ExitCode, UsageProblemError
from clients.cli.style import Line, line, paint

IDS = ["abcd1111", "abcd2222", "efgh3333", "efgh"]


def chosen(word: str) -> str:
    return pick(
        word,
        IDS,
        key=lambda one: one,
        show=lambda one: line(f"  {one} in /folder"),
        kind="thread",
        how="`threadgate threads`",
    )


def shown(rows: tuple[Line, ...]) -> list[str]:
    return [paint(row, colour=False) for row in rows]


def test_the_beginning_of_one_id_means_it() -> None:
    assert chosen("abcd1") == "abcd1111"


def test_a_whole_id_wins_over_one_that_begins_with_it() -> None:
    assert chosen("efgh") == "efgh"


def test_several_that_fit_are_listed_and_none_is_taken() -> None:
    with pytest.raises(UsageProblemError, match="fits 2 threads") as caught:
        chosen("abcd")
    assert caught.value.exit_code is ExitCode.USAGE
    assert shown(caught.value.details) == [
        "  abcd1111 in /folder",
        "  abcd2222 in /folder",
    ]


def test_a_short_beginning_is_refused_even_where_only_one_fits() -> None:
    with pytest.raises(UsageProblemError, match="too short"):
        chosen("abc")


def test_nothing_that_fits_says_where_to_look() -> None:
    with pytest.raises(UsageProblemError, match="see `threadgate threads`"):
        chosen("zzzz\x1b[31m")


def test_ids_are_shown_as_short_as_tells_them_apart() -> None:
    assert short(["aaaaaaaa11", "aaaaaaaa12", "bbbbbbbb11"]) == 10
    assert short(["aaaaaaaa11", "bbbbbbbb11"]) == 8
    assert short(["abc"]) == 8
