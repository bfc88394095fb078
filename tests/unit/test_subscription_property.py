"""A client that comes and goes at any point ends with what one that stayed has.

A small model of the journal plays the Agent; the consumer does what `ClientEvent` says:
`Resumed.open` replaces items in progress, whole objects replace, deltas append, and on a
gap everything shown is read again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from transport.protocol.events import ItemCompleted, ItemStarted
from transport.protocol.session import SubscribeResult
from transport.subscription import (
    ClientEvent,
    DeltaSeen,
    EventSeen,
    Resumed,
    Subscription,
)


@dataclass
class Item:
    """What is known of an item. `seq`: the last event in `text`."""

    text: str = ""
    seq: int = 0
    done: bool = False


def body(ref: int, item: Item) -> dict[str, Any]:
    status = "completed" if item.done else "inProgress"
    known = {"id": f"i{ref}", "turnId": "t", "status": status, "kind": "agentMessage"}
    return {**known, "text": item.text}


@dataclass
class Journal:
    """Everything that happened: a frame each, and the state after it."""

    frames: list[tuple[int, int, dict[str, Any]]] = field(
        default_factory=list[tuple[int, int, dict[str, Any]]]
    )
    items: dict[int, Item] = field(default_factory=dict[int, Item])
    head: int = 100

    def add(self, action: tuple[str, int, str], hole: int) -> dict[str, Any]:
        """Let something happen; `hole`: seqs that other devices got meanwhile."""
        kind, which, text = action
        self.head += 1 + hole
        going = [ref for ref, item in self.items.items() if not item.done]
        if kind == "start" or not going:
            ref = len(self.items) + 1
            self.items[ref] = Item(seq=self.head)
            frame = self._event("item/started", ref)
        else:
            ref = going[which % len(going)]
            item = self.items[ref]
            item.text, item.seq, item.done = item.text + text, self.head, kind == "end"
            frame = {"d": [self.head, ref, 0, 0, text]}
            if item.done:
                frame = self._event("item/completed", ref)
        self.frames.append((self.head, ref, frame))
        return frame

    def _event(self, name: str, ref: int) -> dict[str, Any]:
        data = {"ref": ref, "item": body(ref, self.items[ref])}
        return {"seq": self.head, "event": name, "at": 1, "data": data}

    def answer(self, verdict: str) -> SubscribeResult:
        rows = [
            {"ref": ref, "seq": item.seq, "item": body(ref, item)}
            for ref, item in self.items.items()
            if not item.done
        ]
        answer = {"epoch": "e", "head": self.head, "verdict": verdict, "open": rows}
        return SubscribeResult.model_validate(answer)

    def since(self, cursor: int, *, thin: bool) -> list[dict[str, Any]]:
        """Return what follows a cursor; `thin`: without deltas of completed items."""
        return [
            frame
            for seq, ref, frame in self.frames
            if seq > cursor and not (thin and "d" in frame and self.items[ref].done)
        ]


class Viewer:
    """A client and what it shows."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._subscription = Subscription("all", deltas=True)
        self.shown: dict[int, Item] = {}
        self.seen: list[int] = []

    def come(self, *, gap: bool, thin: bool) -> None:
        resume = self._subscription.params().resume
        verdict = "new" if resume is None else "gap" if gap else "ok"
        self._show([self._subscription.answered(self._journal.answer(verdict))])
        if verdict == "ok" and resume is not None:
            for frame in self._journal.since(resume.seq, thin=thin):
                self.take(frame)

    def take(self, frame: dict[str, Any]) -> None:
        self._show(self._subscription.events(frame))

    def _show(self, events: Any) -> None:
        event: ClientEvent
        for event in events:
            match event:
                case Resumed():
                    self._resume(event)
                case DeltaSeen():
                    self.seen.append(event.seq)
                    self.shown[event.ref].text += event.text
                case EventSeen(data=ItemStarted(ref=ref) | ItemCompleted(ref=ref)):
                    self.seen.append(event.seq)
                    data: Any = event.data
                    done = isinstance(data, ItemCompleted)
                    self.shown[ref] = Item(text=data.item.text, done=done)
                case EventSeen():
                    pass

    def _resume(self, event: Resumed) -> None:
        if event.verdict != "ok":  # read again what is shown
            self.shown = {
                ref: Item(text=item.text, done=True)
                for ref, item in self._journal.items.items()
                if item.done
            }
        for one in event.open:
            item: Any = one.item
            self.shown[one.ref] = Item(text=item.text)


ACTIONS = st.tuples(
    st.sampled_from(["start", "text", "text", "text", "end"]),
    st.integers(0, 5),
    st.text("abc", min_size=1, max_size=3),
)


def state(items: dict[int, Item]) -> dict[int, tuple[str, bool]]:
    return {ref: (item.text, item.done) for ref, item in items.items()}


@given(
    steps=st.lists(
        st.tuples(ACTIONS, st.integers(0, 3), st.integers(0, 4)), max_size=60
    ),
    gaps=st.lists(st.booleans(), min_size=60, max_size=60),
    thin=st.booleans(),
)
def test_coming_and_going_changes_nothing(
    steps: Sequence[tuple[tuple[str, int, str], int, int]],
    gaps: list[bool],
    thin: bool,
) -> None:
    journal = Journal()
    stayed, came = Viewer(journal), Viewer(journal)
    for viewer in (stayed, came):
        viewer.come(gap=False, thin=thin)
    there = True
    for (action, hole, move), gap in zip(steps, gaps, strict=False):
        frame = journal.add(action, hole)
        stayed.take(frame)
        if there:
            came.take(frame)
        if move == 0:
            there = False  # cut, somewhere in the stream
        elif move == 1:  # back, or only a new connection
            there = True
            came.come(gap=gap, thin=thin)
    came.come(gap=False, thin=thin)
    assert state(stayed.shown) == state(journal.items)
    assert state(came.shown) == state(journal.items)
    assert came.seen == sorted(set(came.seen))  # nothing twice, nothing out of order
