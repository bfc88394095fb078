"""What differs between versions of codex, in one table. Sans-IO.

Compared as integers. A version that cannot be read is taken for the oldest: it locks
nothing and can do nothing that came later.
"""

import re
from dataclasses import dataclass
from typing import Final

Version = tuple[int, int, int]

PINNED: Final = "0.171.0"
"""The version whose schema `generated/` holds; the newest that the tests run."""

OLDEST: Final = "0.144.4"
"""The oldest version that the tests run."""

_NUMBERS: Final = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_OLDEST: Final[Version] = (0, 0, 0)

FIRST_LOCKING: Final[Version] = (0, 147, 0)  # 0.146.0 takes no thread lock
FIRST_REVIEWING: Final[Version] = (0, 163, 0)  # turns have a rootTurnId
_QUEUE: Final[Version] = (0, 163, 0)  # thread/queue/list; an unknown method before


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What this version of codex does and offers.

    `locks_threads`: a loaded thread is locked against other processes. `lists_queue`:
    `thread/queue/list` exists. `joins_reviews`: the two turns of a review name each
    other; before, nothing says that they are one.
    """

    locks_threads: bool
    lists_queue: bool
    joins_reviews: bool


def parse_version(words: str) -> Version | None:
    """Return the first version number in `codex --version` or a userAgent."""
    found = _NUMBERS.search(words)
    if found is None:
        return None
    major, minor, patch = (int(number) for number in found.groups())
    return major, minor, patch


def version_of(user_agent: str) -> str | None:
    """Return codex's version out of `<client>/<version> (<system>) …`.

    It is the first after a slash: a client's own name may hold another number.
    """
    _, slash, rest = user_agent.partition("/")
    found = parse_version(rest) if slash else None
    return None if found is None else ".".join(map(str, found))


def traits_of(version: str | None) -> Traits:
    """Return what a version does; `None` or an unreadable one is the oldest."""
    number = parse_version(version or "") or _OLDEST
    return Traits(
        locks_threads=number >= FIRST_LOCKING,
        lists_queue=number >= _QUEUE,
        joins_reviews=number >= FIRST_REVIEWING,
    )
