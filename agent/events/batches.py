"""What one write of a session carries: everything new for it. Sans-IO.

PROTOCOL.md section 6 (Delivery). Sessions that stand at the same place and see the same
share one result, so a hundred watchers of one turn cost one packing.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from agent.edge_limits import BATCHES_SHARED, DELTAS_A_FRAME, MERGED_TEXT, WRITE_BYTES
from agent.events.entries import Said
from agent.events.journal import Journal, Matches
from transport.codec import pack

_WIRE_COST: Final = 12  # of a delta beside its text, about


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Which events are for a session. `threads`: None means all.

    `sees`: whether a root thread exists for the device; None means that all do.
    `whole`: it sits at the workstation, and is told what is only for there.
    """

    threads: frozenset[str] | None
    deltas: bool = True
    whole: bool = False
    sees: Callable[[str], bool] | None = None

    @property
    def key(self) -> Hashable:
        """Equal for views that choose the same; None where that changes at any time."""
        return (
            None if self.sees is not None else (self.threads, self.deltas, self.whole)
        )

    def matches(self, thread_id: str | None, root_thread_id: str | None) -> bool:
        """Whether it is for the session. A root's id matches its sub-agents."""
        if thread_id is None:
            return True
        if self.threads is not None and not (
            thread_id in self.threads or root_thread_id in self.threads
        ):
            return False
        return self.sees is None or self.sees(root_thread_id or thread_id)

    def matches_now(self) -> Matches:
        """Return `matches` for one step: each thread's folder is looked at only once,
        however many of its events there are."""
        return cache(self.matches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Frames to send, and the cursor once they are sent."""

    frames: tuple[bytes, ...]
    position: int


_Delta = tuple[int, int, int, int, str]


@dataclass(slots=True)
class _Frames:
    """Frames being made; deltas are joined while nothing else comes between."""

    barrier: int
    frames: list[bytes] = field(default_factory=list[bytes])
    size: int = 0
    _deltas: list[_Delta] = field(default_factory=list[_Delta])
    _pieces: list[str] = field(default_factory=list[str])  # texts of the last delta
    _length: int = 0

    def add(self, data: bytes) -> None:
        self.close()
        self.frames.append(data)
        self.size += len(data)

    def say(self, entry: Said) -> None:
        if self._joins(entry):
            self._deltas[-1] = (entry.seq, *self._deltas[-1][1:])
        else:
            self._settle()
            if len(self._deltas) >= DELTAS_A_FRAME:
                self.close()
            self._deltas.append((entry.seq, entry.ref, entry.channel, entry.part, ""))
            self.size += _WIRE_COST
        self._pieces.append(entry.text)
        self._length += len(entry.text)
        self.size += len(entry.text)

    def _joins(self, entry: Said) -> bool:
        if not self._pieces or self._length + len(entry.text) > MERGED_TEXT:
            return False
        seq, ref, channel, part, _ = self._deltas[-1]
        same = (ref, channel, part) == (entry.ref, entry.channel, entry.part)
        return same and not seq <= self.barrier < entry.seq

    def _settle(self) -> None:
        if self._pieces:
            seq, ref, channel, part, _ = self._deltas[-1]
            self._deltas[-1] = (seq, ref, channel, part, "".join(self._pieces))
            self._pieces = []
            self._length = 0

    def close(self) -> None:
        """Pack the deltas that wait."""
        self._settle()
        if len(self._deltas) == 1:
            self.frames.append(pack({"d": self._deltas[0]}))
        elif self._deltas:
            self.frames.append(pack({"ds": self._deltas}))
        self._deltas = []


class Batches:
    """Makes batches from one journal, each of them once."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._head = -1
        self._made: dict[Hashable, Batch] = {}

    def after(self, position: int, view: View, *, barrier: int) -> Batch:
        """Return what `view` lacks after `position`, about 128 KiB of it at most.

        Neighbouring deltas of one text are merged under the seq of the last, never
        across `barrier`: the head as of which the session was told the open items.
        """
        chosen = view.key
        if chosen is None:
            return self._make(position, view, barrier)
        if self._head != self._journal.head:
            self._head = self._journal.head
            self._made.clear()
        key = (position, chosen, barrier if barrier > position else 0)
        batch = self._made.get(key)
        if batch is None:
            if len(self._made) >= BATCHES_SHARED:  # somebody catches up from far behind
                del self._made[next(iter(self._made))]
            batch = self._made[key] = self._make(position, view, barrier)
        return batch

    def _make(self, position: int, view: View, barrier: int) -> Batch:
        made = _Frames(barrier)
        matches = view.matches_now()
        for entry in self._journal.after(position):
            position = entry.seq
            if matches(entry.thread_id, entry.root_thread_id):
                if not isinstance(entry, Said):
                    public = None if view.whole else entry.public
                    made.add(entry.data if public is None else public)
                elif view.deltas:
                    made.say(entry)
            if made.size >= WRITE_BYTES:
                break
        else:
            position = self._journal.head
        made.close()
        return Batch(frames=tuple(made.frames), position=position)
