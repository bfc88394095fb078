"""What a person is shown when Codex asks, and which answers they may give. Sans-IO.

PROTOCOL.md section 5. A yes is offered only where Codex offered it and where everything
that it lets through can be shown: an answer that is legal but was not offered may be
taken for consent to something else. Answers that outlive the thread (a rule for a prefix
of commands, for a host, a tool that is never asked about again) are never offered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from adapter.approvals.choices import Ways, listed, refusals
from adapter.limits import REASON_BYTES
from adapter.shapes.shapes import maybe_text
from adapter.shapes.texts import cut
from transport.protocol.approvals import (
    ApprovalDetail,
    ApprovalKind,
    AskedQuestion,
    Choice,
)
from transport.protocol.items import FileDiff

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question and its choices. `lasts_ms`: Codex waits no longer than that.

    `turn_id` and `item_id` are there where Codex names one that a client can find.
    """

    kind: ApprovalKind
    thread_id: str
    turn_id: str | None
    item_id: str | None = None
    title: str
    detail: ApprovalDetail
    choices: Ways
    lasts_ms: int | None = None

    def listed(self) -> list[Choice]:
        """Return the choices as a client sees them."""
        return listed(self.choices)

    def without_yes(self, detail: ApprovalDetail) -> "Question":
        """Return the question as one that cannot be shown whole: it can be refused."""
        return replace(self, detail=detail, choices=refusals(self.choices))


def reason_of(raw: Raw) -> str | None:
    """Return why Codex asks; it is no part of what a yes lets through."""
    reason = maybe_text(raw.get("reason"))
    return cut(reason, REASON_BYTES) if reason else None


def place_lines(raw: Raw) -> list[str]:
    """Say where it would happen, unless that is here."""
    where = maybe_text(raw.get("environmentId"))
    return [] if where in {None, "local"} else [f"runs in the environment {where}"]


def smaller(detail: ApprovalDetail, limit: int) -> ApprovalDetail:
    """Return the detail with each of its texts cut to `limit` bytes, without its form."""

    def short(words: str | None) -> str | None:
        return None if words is None else cut(words, limit)

    return detail.model_copy(
        update={
            "command": short(detail.command),
            "changes": detail.changes and [_cut(one, limit) for one in detail.changes],
            "permissions": detail.permissions
            and [
                one.model_copy(
                    update={"path": short(one.path), "text": cut(one.text, limit)}
                )
                for one in detail.permissions
            ],
            "questions": detail.questions
            and [_cut_question(one, limit) for one in detail.questions],
            "message": short(detail.message),
            "form": None,
            "url": short(detail.url),
            "arguments": short(detail.arguments),
            "allows": [cut(line, limit) for line in detail.allows],
        }
    )


def _cut(change: FileDiff, limit: int) -> FileDiff:
    return change.model_copy(
        update={
            "path": cut(change.path, limit),
            "diff": cut(change.diff, limit),
            "moved_to": None
            if change.moved_to is None
            else cut(change.moved_to, limit),
        }
    )


def _cut_question(question: AskedQuestion, limit: int) -> AskedQuestion:
    options = [
        one.model_copy(
            update={
                "label": cut(one.label, limit),
                "description": cut(one.description, limit),
            }
        )
        for one in question.options
    ]
    return question.model_copy(
        update={
            "header": cut(question.header, limit),
            "text": cut(question.text, limit),
            "options": options,
        }
    )
