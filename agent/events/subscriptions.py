"""A session's one subscription: a cursor, what it chooses, its gaps. Sans-IO.

PROTOCOL.md section 2 (`events/subscribe`) and section 6 (Delivery).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from agent.edge_limits import GAPS, GAPS_S
from agent.events.batches import Batches, View
from agent.events.journal import Journal
from transport.protocol.events import Open
from transport.protocol.session import ResumeFrom


class Verdict(StrEnum):
    """How a resume went."""

    OK = "ok"
    GAP = "gap"
    NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where events go on, and every item in progress as of `head`."""

    head: int
    verdict: Verdict
    open: Sequence[Open]


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What a write carries. `gap`: the session fell out of the ring.

    `quiet`: three gaps in a minute have just turned its deltas off.
    """

    frames: tuple[bytes, ...] = ()
    gap: Place | None = None
    quiet: bool = False


class Subscription:
    """Empty at first. Times are seconds of a monotonic clock."""

    def __init__(self, journal: Journal, batches: Batches) -> None:
        self._journal = journal
        self._batches = batches
        self._view: View | None = None
        self._barrier = 0
        self._gaps: deque[float] = deque(maxlen=GAPS)
        self.position: int | None = None

    def begin(self, view: View, *, epoch: str, resume: ResumeFrom | None) -> Place:
        """Replace the subscription. `epoch`: the one that this device is told now."""
        verdict = self._verdict(epoch, resume)
        at = resume.seq if resume is not None and verdict is Verdict.OK else None
        self._view = view
        self._gaps.clear()
        return self._place(verdict, at)

    def change(self, view: View) -> Place | None:
        """Go on with other rights, from the head; None where nothing is subscribed."""
        if self._view is None:
            return None
        self._view = replace(view, threads=self._view.threads, deltas=self._view.deltas)
        return self._place(Verdict.GAP, None)

    def silence(self) -> None:
        """Tell nothing more; what was chosen is kept for `change`."""
        self.position = None

    @property
    def threads(self) -> frozenset[str] | None:
        """Which threads were chosen; None: all (or nothing is subscribed)."""
        return None if self._view is None else self._view.threads

    @property
    def behind(self) -> bool:
        """Whether there is something to take."""
        return self.position is not None and self.position < self._journal.head

    @property
    def urgent(self) -> bool:
        """Whether a whole event waits: it needs no company."""
        return self.position is not None and self.position < self._journal.last_whole

    def take(self, now: float) -> News:
        """Return all that is new, up to one write, and move the cursor past it."""
        if self._view is None or self.position is None:
            return News()
        if self.position < self._journal.floor:
            return self._fall(now)
        batch = self._batches.after(self.position, self._view, barrier=self._barrier)
        self.position = batch.position
        return News(frames=batch.frames)

    def _verdict(self, epoch: str, resume: ResumeFrom | None) -> Verdict:
        if resume is None:
            return Verdict.NEW
        reachable = self._journal.floor <= resume.seq <= self._journal.head
        return Verdict.OK if resume.epoch == epoch and reachable else Verdict.GAP

    def _place(self, verdict: Verdict, at: int | None) -> Place:
        assert self._view is not None
        head = self._journal.head
        self._barrier = head
        self.position = head if at is None else at
        items = self._journal.open_items(self._view.matches_now())
        return Place(head=head, verdict=verdict, open=items)

    def _fall(self, now: float) -> News:
        assert self._view is not None
        self._gaps.append(now)
        often = len(self._gaps) == GAPS and now - self._gaps[0] <= GAPS_S
        quiet = often and self._view.deltas
        if quiet:
            self._view = replace(self._view, deltas=False)
        return News(gap=self._place(Verdict.GAP, None), quiet=quiet)
