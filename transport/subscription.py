"""A client's one subscription: cursor, refs, what to show and what to skip. Sans-IO.

PROTOCOL.md sections 1 and 2. The cursor is the seq of the last event taken; what comes
again is skipped. Deltas are guarded by `ref` and seq, because an item that a resume
handed over already holds part of the text that follows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from pydantic import ValidationError

from transport.errors import RemoteProtocolError
from transport.limits import REFS_HELD
from transport.protocol.events import (
    JOURNAL_EVENTS,
    DeltaChannel,
    EventData,
    Gap,
    ItemCompleted,
    ItemStarted,
    Open,
)
from transport.protocol.session import ResumeFrom, SubscribeParams, SubscribeResult

E = TypeVar("E", bound=EventData)

Threads = Literal["all"] | Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSeen:
    """A whole-object event, in seq order. Applying one twice is harmless."""

    seq: int
    at: int
    thread_id: str | None
    root_thread_id: str | None
    data: EventData


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaSeen:
    """More text of the item that `ref` names (`ItemStarted`, or `Resumed.open`)."""

    seq: int
    ref: int
    channel: DeltaChannel
    part: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """Where events go on. `open` replaces all that is known of items in progress.

    `verdict`: `new` at first; `ok`: nothing was lost; `gap`: read again what is shown.
    """

    verdict: str
    epoch: str
    head: int
    open: list[Open]


ClientEvent = EventSeen | DeltaSeen | Resumed


class Subscription:
    """From frames to events. Takes nothing before it is told where it stands."""

    def __init__(self, threads: Threads, *, deltas: bool) -> None:
        self._threads = threads
        self._deltas = deltas
        self._epoch: str | None = None
        self._cursor = 0
        self._refs: dict[int, int] = {}
        self._taking = False
        self._torn = False

    @property
    def begun(self) -> bool:
        """Whether it was told where it stands."""
        return self._epoch is not None

    def params(self) -> SubscribeParams:
        """Return the request that goes on from the cursor. Nothing is taken until its
        answer: what comes before belongs to the subscription that it replaces.
        """
        self._taking = False
        resume = None
        if self._epoch is not None:
            resume = ResumeFrom(epoch=self._epoch, seq=self._cursor)
        threads = "all" if self._threads == "all" else list(self._threads)
        return SubscribeParams.model_validate(
            {"threads": threads, "deltas": self._deltas, "resume": resume}
        )

    def pause(self) -> None:
        """Take nothing more until the next answer; the cursor stays."""
        self._taking = False

    def answered(self, result: SubscribeResult) -> Resumed:
        """Take in the answer to `params()`. Behind what could not be read is a gap."""
        verdict = "gap" if self._torn else result.verdict
        return self._go_on(verdict, result.epoch, result.head, result.open)

    def caught_up(self, seq: int) -> None:
        """All of this session up to `seq` has been sent (a pong says so)."""
        if self._taking:
            self._cursor = max(self._cursor, seq)

    def events(self, frame: Mapping[str, Any]) -> Iterable[ClientEvent]:
        """Return what a frame holds for the consumer.

        Raises:
            RemoteProtocolError: the frame is none of the protocol's.
        """
        try:
            return self._read(frame) if self._taking else ()
        except RemoteProtocolError:
            self._torn = True
            raise

    def _read(self, frame: Mapping[str, Any]) -> Iterable[ClientEvent]:
        if "d" in frame:
            return self._all_deltas([frame["d"]])
        if "ds" in frame:
            return self._all_deltas(frame["ds"])
        name = frame.get("event")
        if name == Gap.event:
            gap = _parsed(Gap, frame)
            return (self._go_on("gap", gap.epoch, gap.head, gap.open),)
        return self._event(str(name), frame)

    def _go_on(
        self, verdict: str, epoch: str, head: int, opened: list[Open]
    ) -> Resumed:
        if verdict != "ok":  # after ok, all behind the cursor follows
            self._cursor = head
        self._epoch = epoch
        self._refs = {one.ref: one.seq for one in opened}
        self._taking = True
        self._torn = False
        return Resumed(verdict=verdict, epoch=epoch, head=head, open=opened)

    def _event(self, name: str, frame: Mapping[str, Any]) -> Iterable[ClientEvent]:
        seq = frame.get("seq")
        if not isinstance(seq, int):
            return ()  # a session event that this build does not know
        if seq <= self._cursor:
            return ()
        self._cursor = seq
        model = JOURNAL_EVENTS.get(name)
        if model is None:  # of a newer Agent
            return ()
        data = _parsed(model, frame)
        if not self._note_ref(seq, data):
            return ()
        return (_seen(seq, frame, data),)

    def _note_ref(self, seq: int, data: EventData) -> bool:
        """Follow which refs are in progress; `False`: known already, and better."""
        match data:
            case ItemStarted(ref=ref):
                if ref in self._refs:  # `open` holds it with the text that it has now
                    return False
                self._refs[ref] = seq
                if len(self._refs) > REFS_HELD:
                    del self._refs[next(iter(self._refs))]
            case ItemCompleted(ref=ref):
                self._refs.pop(ref, None)
            case _:
                pass
        return True

    def _all_deltas(self, deltas: object) -> Iterable[ClientEvent]:
        if not isinstance(deltas, list):
            raise RemoteProtocolError("deltas are a list")
        found = (self._delta(delta) for delta in cast("list[object]", deltas))
        return [delta for delta in found if delta is not None]

    def _delta(self, delta: object) -> DeltaSeen | None:
        match delta:
            case [int(seq), int(ref), int(channel), int(part), str(text)]:
                pass
            case _:
                raise RemoteProtocolError("a delta of a wrong shape")
        if seq <= self._cursor:
            return None
        self._cursor = seq
        if ref not in self._refs or seq <= self._refs[ref]:
            return None
        try:
            known = DeltaChannel(channel)
        except ValueError:  # of a newer Agent
            return None
        return DeltaSeen(seq=seq, ref=ref, channel=known, part=part, text=text)


def _parsed(model: type[E], frame: Mapping[str, Any]) -> E:
    try:
        return model.model_validate(frame.get("data"))
    except ValidationError as exc:
        raise RemoteProtocolError(f"{model.event}: not as specified") from exc


def _seen(seq: int, frame: Mapping[str, Any], data: EventData) -> EventSeen:
    at, thread, root = (frame.get(key) for key in ("at", "threadId", "rootThreadId"))
    if not isinstance(at, int):
        raise RemoteProtocolError("an event without its time")
    return EventSeen(
        seq=seq,
        at=at,
        thread_id=thread if isinstance(thread, str) else None,
        root_thread_id=root if isinstance(root, str) else None,
        data=data,
    )
