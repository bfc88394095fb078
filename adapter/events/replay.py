"""Plays a recorded run of a real app-server through the adapter's cores. Sans-IO.

A recording is JSON lines `{"dir", "t", "msg"}`; `in` came from the app-server, `out` went
to it. What its client did then is done here too: threads are adopted, approvals answered.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from adapter.approvals.approvals import ApprovalLedger
from adapter.approvals.choices import ALLOW, ALLOW_FOR_SESSION, ANSWER, CANCEL, DENY
from adapter.approvals.replies import Reply
from adapter.errors import AdapterError
from adapter.events.intake import Intake
from adapter.events.invariants import Broken, Invariants
from adapter.events.normalize import Normalizer
from adapter.runtime.acts import NOTHING_FILLED, Filled
from adapter.runtime.events import (
    Emitted,
    ItemClosed,
    ItemDelta,
    ItemOpened,
    RuntimeEvent,
)
from transport.errors import ApprovalClosed, InvalidParams
from transport.protocol.approvals import Approval

CHOICES: Final = {"accept": "allow", "decline": "deny", "cancel": "cancel"}
START_MS: Final = 1_796_000_000_000  # where a recording tells no time
LATEST_MS: Final = 253_402_300_799_999  # the year 9999
_LOADS: Final = frozenset({"thread/start", "thread/resume", "thread/fork"})

Message = Mapping[str, Any]


class RecordingError(ValueError):
    """A line that is not one of a recording."""


@dataclass(kw_only=True)
class Replay:
    """A recording on its way through an intake, and all that came out."""

    lines: list[Message]
    intake: Intake = field(init=False)
    events: list[RuntimeEvent] = field(default_factory=list[RuntimeEvent])
    replies: list[Reply] = field(default_factory=list[Reply])
    at: int = START_MS
    _sent: dict[object, str] = field(default_factory=dict[object, str])
    _asked: dict[object, str] = field(default_factory=dict[object, str])

    def __post_init__(self) -> None:
        numbers = count()
        ledger = ApprovalLedger(mint=lambda: f"apr_{next(numbers):032x}")
        self.intake = Intake(Normalizer(), ledger)

    def run(self) -> "Replay":
        """Play it to its end; then the process dies."""
        for line in self.lines:
            self.take(line)
        self.events += self.intake.died(self.at, "the trace is over")
        return self

    def take(self, line: Message) -> list[RuntimeEvent]:
        """Play one line; return what it told. Raises: RecordingError."""
        before = len(self.events)
        try:
            message = line["msg"]
            if line["dir"] == "out":
                self._client_said(message)
            else:
                self._server_said(message)
        except (AdapterError, KeyError, TypeError, AttributeError, ValueError) as exc:
            raise RecordingError(f"not a line of a recording: {exc!r}") from exc
        return self.events[before:]

    def end(self) -> list[RuntimeEvent]:
        """The recording is over, and so is its process; return what that told."""
        last = self.intake.ended(self.at)
        self.events += last
        return last

    def _server_said(self, message: Message) -> None:
        at = message.get("emittedAtMs", self.at)
        self.at = at if type(at) is int and 0 <= at <= LATEST_MS else self.at
        if "method" not in message:
            self._answered(message)
        elif "id" in message:
            self._requested(message)
        else:
            method, params = message["method"], message.get("params", {})
            self.events += self.intake.notification(method, params, self.at)

    def _answered(self, message: Message) -> None:
        method = self._sent.pop(message["id"], "")
        if method in _LOADS and (result := message.get("result")):
            page: Message = result.get("initialTurnsPage") or {"data": []}
            turns = [*page["data"]] or [*reversed(result["thread"]["turns"])]
            self.intake.normalizer.adopt(result["thread"], turns)
            self.intake.normalizer.settle(result)

    def _requested(self, message: Message) -> None:
        before = {one.id for one in self.intake.ledger.pending()}
        asked = self.intake.request(
            message["id"], message["method"], message["params"], self.at
        )
        self.events += asked.events
        self.replies += asked.replies
        for one in self.intake.ledger.pending():
            if one.id not in before:
                self._asked[message["id"]] = one.id

    def _client_said(self, message: Message) -> None:
        if "method" in message:
            self._sent[message.get("id")] = message["method"]
            return
        approval_id = self._asked.get(message["id"])
        approval = self.intake.ledger.get(approval_id or "")
        given = _given(approval, message.get("result", {})) if approval else None
        if approval is None or given is None:
            return
        with suppress(ApprovalClosed, InvalidParams):  # too late, or not offered
            choice, filled = given
            reply = self.intake.ledger.reply_to(
                approval.id,
                digest=approval.digest,
                choice=choice,
                decided_by="device",
                at=self.at,
                filled=filled,
            )
            if reply is not None:
                self.intake.ledger.note_sent(
                    approval.id, choice=choice, decided_by="device", filled=filled
                )
                self.replies.append(reply)


def _given(approval: Approval, result: Message) -> tuple[str, Filled] | None:
    """Return the answer that its client gave, as a device of ours would give it.

    `None`: it gave one that no device of ours can give.
    """
    if (decision := result.get("decision")) is not None:
        named = CHOICES.get(decision) if isinstance(decision, str) else None
        return (named, NOTHING_FILLED) if named else None
    if answers := result.get("answers"):
        texts = {name: one["answers"] for name, one in answers.items()}
        return ANSWER, Filled(answers=texts)
    if "permissions" in result:
        yes = ALLOW_FOR_SESSION if result.get("scope") == "session" else ALLOW
        return (yes if result["permissions"] else DENY), NOTHING_FILLED
    match result.get("action"):
        case "accept" if ANSWER in {choice.id for choice in approval.choices}:
            return ANSWER, Filled(content=result["content"])
        case "accept":
            meta: Message = result.get("_meta") or {}
            remembered = meta.get("persist") == "session"
            return (ALLOW_FOR_SESSION if remembered else ALLOW), NOTHING_FILLED
        case "cancel":
            return CANCEL, NOTHING_FILLED
        case _:
            return DENY, NOTHING_FILLED


class Numbered:
    """Gives events their `seq` and `ref`, as a journal does; deltas are spelled out."""

    def __init__(self) -> None:
        self._refs: dict[tuple[str, str], int] = {}
        self._count = 0
        self.seq = 0

    def wire(self, event: RuntimeEvent) -> dict[str, Any]:
        """Return an event as the map that a client would be sent."""
        self.seq += 1
        row = {
            "seq": self.seq,
            **self._said(event),
            "at": event.at,
            "threadId": event.thread_id,
            "rootThreadId": event.root_thread_id,
        }
        return {key: value for key, value in row.items() if value is not None}

    def _said(self, event: RuntimeEvent) -> dict[str, Any]:
        match event:
            case Emitted():
                return {"event": event.data.event, "data": event.data.wire()}
            case ItemDelta():
                return {
                    "event": "item/delta",
                    "ref": self._refs.get((event.thread_id, event.item_id)),
                    "channel": event.channel.name.lower(),
                    "part": event.part,
                    "text": event.text,
                }
            case ItemOpened():
                self._count += 1
                ref = self._refs[event.thread_id, event.item.id] = self._count
                return {"event": "item/started", "data": _item(ref, event)}
            case ItemClosed():
                ref = self._refs.pop((event.thread_id, event.item.id), 0)
                return {"event": "item/completed", "data": _item(ref, event)}


def _item(ref: int, event: ItemOpened | ItemClosed) -> dict[str, Any]:
    return {"ref": ref, "item": event.item.wire()}


def checked(
    lines: Iterable[Message],
) -> Iterator[tuple[dict[str, Any] | None, list[Broken]]]:
    """Play a recording; yield each event as sent, and what it broke.

    The last one has no event: what was left without its end. Raises: RecordingError.
    """
    replay, rules, numbered = Replay(lines=[]), Invariants(), Numbered()
    for line in lines:
        for event in replay.take(line):
            yield numbered.wire(event), rules.see(event)
    for event in replay.end():
        yield numbered.wire(event), rules.see(event)
    yield None, rules.end()
