"""What is told of messages that waited and were not delivered. Sans-IO. PROTOCOL.md 4.

Nobody may have listened when one was dropped, such as while the Agent began. So it is told
for a day in `queue/list`. Where there are too many, the oldest goes of who has most: no
device pushes another's out.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from agent.limits import DROPPED_KEPT, DROPPED_MS, DROPPED_WORDS
from agent.queue.queue_book import Waiting
from transport.protocol.queue import DroppedMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why one was dropped: `brief` for devices, `whole` for the workstation, if it is
    told more. `error`: the code of the refusal."""

    code: str
    brief: str
    whole: str | None = None
    error: str | None = None


EVENT: Final = "message/dropped"  # in the audit
OUT: Final = "queueDropped"
SHUT_OUT: Final = Why(
    code=OUT,
    brief="A queued message of a device that was shut out was dropped; it was not sent.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """One of them. `message`, `whole`: as of `Why`. `at`: for people, in ms since the epoch; `since`: in `Ages.least`."""

    queue_id: str
    thread_id: str
    device_id: str
    preview: str
    code: str
    message: str
    whole: str | None = None
    error: str | None
    at: int
    since: int


def dropped(row: Waiting, why: Why, *, at: int, since: int) -> Dropped:
    """Return what is told of a message that was dropped."""
    return Dropped(
        queue_id=row.queue_id,
        thread_id=row.thread_id,
        device_id=row.device_id,
        preview="" if why.code == OUT else row.preview,
        code=why.code,
        message=why.brief[:DROPPED_WORDS],
        whole=None if why.whole is None else why.whole[:DROPPED_WORDS],
        error=why.error,
        at=at,
        since=since,
    )


def entry_of(one: Dropped) -> dict[str, str]:
    """Return what the audit log says of it."""
    return {
        "device": one.device_id,
        "thread": one.thread_id,
        "key": one.queue_id,
        "code": one.code,
    }


class DroppedBook:
    """All that are told."""

    def __init__(self, rows: Iterable[Dropped]) -> None:
        self._rows = {row.queue_id: row for row in rows}
        self._unwritten: set[str] = set()

    def add(self, row: Dropped) -> None:
        """Tell of one more."""
        self._rows[row.queue_id] = row
        self._unwritten.add(row.queue_id)
        while len(self._rows) > DROPPED_KEPT:
            self.forget(self._oldest_of_who_has_most())

    def forget(self, queue_id: str) -> None:
        """Tell of this one no more."""
        if self._rows.pop(queue_id, None) is not None:
            self._unwritten.add(queue_id)

    def prune(self, now: int) -> None:
        """Forget what is past its day (`Ages.least`, ms)."""
        for row in list(self._rows.values()):
            if now - row.since >= DROPPED_MS:
                self.forget(row.queue_id)

    def blank(self, device_id: str) -> None:
        """Keep no words of this device; that they were dropped is told all the same."""
        for row in list(self._rows.values()):
            if row.device_id == device_id and row.preview:
                self._rows[row.queue_id] = replace(row, preview="")
                self._unwritten.add(row.queue_id)

    def _oldest_of_who_has_most(self) -> str:
        counts = Counter(row.device_id for row in self._rows.values())
        most, _ = counts.most_common(1)[0]
        return next(one for one, row in self._rows.items() if row.device_id == most)

    # the disk

    def unwritten(self) -> dict[str, Dropped | None]:
        """Return what the disk does not have yet; None: it is to forget that one."""
        return {one: self._rows.get(one) for one in self._unwritten}

    def written(self, rows: dict[str, Dropped | None]) -> None:
        """The disk has these as they were."""
        for one, row in rows.items():
            if self._rows.get(one) is row:
                self._unwritten.discard(one)

    # what clients see

    def threads(self) -> set[str]:
        """Return the threads of all of them."""
        return {row.thread_id for row in self._rows.values()}

    def shown(
        self, thread_id: str | None = None, *, whole: bool
    ) -> list[DroppedMessage]:
        """Return those of one thread, or all; `whole`: as the workstation sees them."""
        return [
            DroppedMessage(
                queue_id=row.queue_id,
                thread_id=row.thread_id,
                device_id=row.device_id,
                preview=row.preview,
                code=row.code,
                message=(row.whole or row.message) if whole else row.message,
                error=row.error,
                at=row.at,
            )
            for row in self._rows.values()
            if thread_id in (None, row.thread_id)
        ]
