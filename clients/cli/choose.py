"""What a person meant by the beginning of an id: exactly one, or an error. Sans-IO.

Never a guess: where several fit they are listed, and the command ends with exit code 2.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from clients.cli.exits import UsageProblemError
from clients.cli.plain import one_line
from clients.cli.style import Line

T = TypeVar("T")

MIN_PREFIX: Final = 4  # shorter ones fit by accident
SHOWN: Final = 20  # of those that fit


def pick(
    word: str,
    things: Iterable[T],
    *,
    key: Callable[[T], str],
    show: Callable[[T], Line],
    kind: str,
    how: str,
) -> T:
    """Return the one thing whose id is `word` or begins with it.

    `kind`: what it is called; `how`: the command that lists them. Raises:
    UsageProblemError, with the candidates where several fit.
    """
    known = list(things)
    for thing in known:
        if key(thing) == word:
            return thing
    told = one_line(word, 60)
    if len(word) < MIN_PREFIX:
        raise UsageProblemError(
            f"“{told}” is too short for a {kind}: give at least {MIN_PREFIX} characters of its id ({how})"
        )
    fit = [thing for thing in known if key(thing).startswith(word)]
    if len(fit) == 1:
        return fit[0]
    if not fit:
        raise UsageProblemError(f"no {kind} begins with “{told}”: see {how}")
    raise UsageProblemError(
        f"“{told}” fits {len(fit)} {kind}s: give more characters of the one you mean",
        [show(thing) for thing in fit[:SHOWN]],
    )


def short(ids: Sequence[str], least: int = 8) -> int:
    """Return how many characters tell these ids apart, at least `least`."""
    distinct = set(ids)
    longest = max((len(one) for one in distinct), default=least)
    for length in range(least, longest):
        if len({one[:length] for one in distinct}) == len(distinct):
            return length
    return max(longest, least)
