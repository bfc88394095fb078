"""Plays a recorded run of a real app-server through the adapter's cores.

A trace is JSON lines `{"dir", "t", "msg"}`; `in` came from the app-server. What its
client did then is done here too: threads are adopted, approvals answered.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from adapter.approvals import ApprovalLedger, Reply
from adapter.intake import Intake
from adapter.normalize import Normalizer
from adapter.runtime import RuntimeEvent
from transport.errors import ApprovalClosed

TRACES: Final = Path(__file__).parents[1] / "traces"
CHOICES: Final = {"accept": "allow", "decline": "deny", "cancel": "cancel"}

Message = Mapping[str, Any]


def trace_names() -> list[str]:
    """Return the names of all traces."""
    return sorted(path.stem for path in TRACES.glob("*.jsonl"))


def read_trace(name: str) -> list[Message]:
    """Return the lines of a trace."""
    lines = (TRACES / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@dataclass(kw_only=True)
class Replay:
    """A trace on its way through an intake, and all that came out."""

    lines: list[Message]
    intake: Intake = field(init=False)
    events: list[RuntimeEvent] = field(default_factory=list[RuntimeEvent])
    replies: list[Reply] = field(default_factory=list[Reply])
    at: int = 1_796_000_000_000
    _sent: dict[object, str] = field(default_factory=dict[object, str])
    _asked: dict[object, str] = field(default_factory=dict[object, str])

    def __post_init__(self) -> None:
        numbers = count()
        ledger = ApprovalLedger(mint=lambda: f"apr_{next(numbers):032x}")
        self.intake = Intake(Normalizer(), ledger)

    def run(self) -> "Replay":
        """Play it to its end; then the process dies."""
        for line in self.lines:
            message = line["msg"]
            if line["dir"] == "out":
                self._client_said(message)
            else:
                self._server_said(message)
        self.events += self.intake.died(self.at, "the trace is over")
        return self

    def _server_said(self, message: Message) -> None:
        self.at = message.get("emittedAtMs", self.at)
        if "method" not in message:
            self._answered(message)
        elif "id" in message:
            self._requested(message)
        else:
            method, params = message["method"], message.get("params", {})
            self.events += self.intake.notification(method, params, self.at)

    def _answered(self, message: Message) -> None:
        method = self._sent.pop(message["id"], "")
        if method in {"thread/start", "thread/resume", "thread/fork"} and (
            result := message.get("result")
        ):
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
        self.replies += [asked.reply] if asked.reply else []
        for one in self.intake.ledger.pending():
            if one.id not in before:
                self._asked[message["id"]] = one.id

    def _client_said(self, message: Message) -> None:
        if "method" in message:
            self._sent[message.get("id")] = message["method"]
            return
        approval_id = self._asked.get(message["id"])
        decision = message.get("result", {}).get("decision")
        approval = self.intake.ledger.get(approval_id or "")
        if approval is None or decision not in CHOICES:
            return
        with suppress(ApprovalClosed):  # some traces try an answer that is too late
            reply = self.intake.ledger.answer(
                approval.id,
                digest=approval.digest,
                choice=CHOICES[decision],
                decided_by="device",
                at=self.at,
            )
            self.replies += [reply] if reply else []


def said(lines: list[Message], *methods: str) -> Iterator[Message]:
    """Return the params of these notifications, in order."""
    for line in lines:
        message = line["msg"]
        told = line["dir"] == "in" and "id" not in message
        if told and message.get("method") in methods:
            yield message["params"]
