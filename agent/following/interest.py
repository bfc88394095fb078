"""Which threads somebody is subscribed to, and how soon each is read again. Sans-IO.

PROTOCOL.md section 3 (Modes): only what somebody wants is followed, the explicitly named
first, and so many at once. Times are seconds of a monotonic clock.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent.limits import FOLLOW_S, FOLLOWED, QUIET_S, READ_SHARE, RUNNING_S


class Interest:
    """What each session wants: threads by name, or all."""

    def __init__(self) -> None:
        self._wanted: dict[int, frozenset[str] | None] = {}

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def want(self, session: object, threads: frozenset[str] | None) -> None:
        """Note a session's whole subscription; `None`: all threads."""
        if threads is None or threads:
            self._wanted[id(session)] = threads
        else:
            self.forget(session)

    def forget(self, session: object) -> None:
        """The session wants nothing any more."""
        self._wanted.pop(id(session), None)

    @property
    def in_all(self) -> bool:
        """Whether somebody wants all threads."""
        return None in self._wanted.values()

    def named(self) -> Iterator[str]:
        """Yield the threads that are wanted by name, each once."""
        yield from dict.fromkeys(
            one for wanted in self._wanted.values() if wanted for one in sorted(wanted)
        )

    def covers(self, *threads: str | None) -> bool:
        """Whether one of these is wanted."""
        return any(
            wanted is None or not wanted.isdisjoint(threads)
            for wanted in self._wanted.values()
        )


@dataclass(slots=True)
class Pace:
    """When one thread is read next. `since`: when following it began, ms."""

    since: int
    due: float = 0.0
    pause: float = FOLLOW_S

    def was_read(
        self, now: float, *, took: float, changed: bool, running: bool
    ) -> None:
        """Decide when the next read is: soon where something happens."""
        longest = RUNNING_S if running else QUIET_S
        self.pause = FOLLOW_S if changed else min(self.pause * 2, longest)
        self.due = now + max(self.pause, took * READ_SHARE)

    def hasten(self, now: float) -> None:
        """Something is known to have changed."""
        self.pause = FOLLOW_S
        self.due = min(self.due, now)


class Paces:
    """The threads that are followed now, at most `FOLLOWED`."""

    def __init__(self) -> None:
        self._paces: dict[str, Pace] = {}

    def __iter__(self) -> Iterator[tuple[str, Pace]]:
        return iter(list(self._paces.items()))

    def get(self, thread_id: str) -> Pace | None:
        """Return the pace of a thread that is followed."""
        return self._paces.get(thread_id)

    def choose(self, wanted: Iterable[str], *, at: int) -> list[str]:
        """Follow the first of these and nothing else; return those that are too many."""
        names = [*dict.fromkeys(wanted)]
        chosen = names[:FOLLOWED]
        self._paces = {one: self._paces.get(one) or Pace(at) for one in chosen}
        return names[FOLLOWED:]

    def clear(self) -> None:
        """Follow nothing."""
        self._paces.clear()
