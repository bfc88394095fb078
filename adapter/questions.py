"""What a person is shown when Codex asks, and which answers they may give. Sans-IO.

PROTOCOL.md section 5. A yes is offered only where Codex offered it and where everything
that it lets through can be shown: an answer that is legal but was not offered may be
taken for consent to something else. Answers that outlive the thread (a rule for a prefix
of commands, for a host) are never offered.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from adapter.limits import ALLOWS, LINE_CHARS, PATH_BYTES, REASON_BYTES, TEXT_BYTES
from adapter.permissions import permission_lines
from adapter.shapes import mapping, maybe_text, sequence, text, wire_id
from adapter.texts import byte_size, cut, one_line
from generated import codex
from transport.protocol.approvals import (
    ApprovalDetail,
    ApprovalKind,
    Choice,
    ChoiceEffect,
)
from transport.protocol.items import Command, FileChange, FileDiff, Item

Raw = Mapping[str, Any]

DECISIONS: Final[Mapping[str, str]] = {
    "allow": "accept",
    "allowForSession": "acceptForSession",
    "deny": "decline",
    "cancel": "cancel",
}
"""Our choices and Codex's words: all that we ever send."""

_LABELS: Final = {
    "allow": ("Allow once", ChoiceEffect.ALLOW),
    "allowForSession": (
        "Allow, and do not ask again until the thread is unloaded",
        ChoiceEffect.ALLOW_FOR_SESSION,
    ),
    "deny": ("Decline; the turn goes on", ChoiceEffect.DENY),
    "cancel": ("Decline and stop the turn", ChoiceEffect.CANCEL),
}
_REFUSALS: Final = ("deny", "cancel")  # legal whether Codex lists them or not
_SHOWN: Final = frozenset(
    {
        "additionalPermissions",
        "approvalId",
        "availableDecisions",
        "command",
        "commandActions",
        "cwd",
        "environmentId",
        "grantRoot",
        "itemId",
        "kind",
        "networkApprovalContext",
        "proposedExecpolicyAmendment",
        "proposedNetworkPolicyAmendments",
        "reason",
        "startedAtMs",
        "threadId",
        "turnId",
    }
)
_TURNED: Final = (
    "careful, it holds letters that run from right to left: it may be shown in another "
    "order than it has"
)
_LEFTWARD: Final = frozenset({"R", "AL", "AN"})
_BLANK: Final = re.compile(  # blank, or nothing at all, and yet no control or format
    "[\u00a0\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200a"
    "\u202f\u205f\u2800\u3000\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0100-\U000e01ef]"
)
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question. `choices` maps each choice that may be given to Codex's decision."""

    kind: ApprovalKind
    thread_id: str
    turn_id: str
    item_id: str
    title: str
    detail: ApprovalDetail
    choices: Mapping[str, str]

    def listed(self) -> list[Choice]:
        """Return the choices as a client sees them."""
        return [
            Choice(id=name, label=label, effect=effect)
            for name in self.choices
            for label, effect in [_LABELS[name]]
        ]

    def without_yes(self, detail: ApprovalDetail) -> "Question":
        """Return the question as one that cannot be shown whole: it can be refused."""
        choices = {name: DECISIONS[name] for name in _REFUSALS}
        return Question(
            kind=self.kind,
            thread_id=self.thread_id,
            turn_id=self.turn_id,
            item_id=self.item_id,
            title=self.title,
            detail=detail,
            choices=choices,
        )


def question_from(kind: ApprovalKind, raw: Raw, item: Item | None) -> Question:
    """Return what to ask. `item`: the open item that it is about, where there is one.

    Raises one of `MISFITS`.
    """
    if kind is ApprovalKind.FILE_CHANGE:
        return _about_change(raw, item)
    return _about_command(raw, item)


def smaller(detail: ApprovalDetail, limit: int) -> ApprovalDetail:
    """Return the detail with each of its texts cut to `limit` bytes."""
    changes = detail.changes
    return detail.model_copy(
        update={
            "command": None if detail.command is None else cut(detail.command, limit),
            "changes": None
            if changes is None
            else [_cut(one, limit) for one in changes],
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


def _about_command(raw: Raw, item: Item | None) -> Question:
    asked = cast("codex.CommandExecutionRequestApprovalParams", raw)
    command = maybe_text(asked.get("command"))
    if command is None and isinstance(item, Command) and not item.truncated:
        command = item.command
    host = asked.get("networkApprovalContext")
    cwd = maybe_text(asked.get("cwd"))
    allows = [*_network(host), *_rights(raw), *_unknown(raw)]
    allows += _hidden(f"{command or ''}{cwd or ''}")
    plain = (maybe_text(asked.get("kind")) or "command") == "command"
    whole = plain and (command is not None or host is not None)
    fits = _fit(allows) and _short(command, TEXT_BYTES) and _short(cwd, PATH_BYTES)
    detail = ApprovalDetail(
        command=None if command is None else cut(command, TEXT_BYTES),
        cwd=None if cwd is None else cut(cwd, PATH_BYTES),
        reason=_reason(raw),
        allows=[cut(line, PATH_BYTES) for line in allows[:ALLOWS]],
    )
    yes = _offered(asked.get("availableDecisions")) if whole and fits else ()
    title = _title(command, plain=plain)
    return _question(ApprovalKind.COMMAND, raw, title=title, detail=detail, yes=yes)


def _title(command: str | None, *, plain: bool) -> str:
    if not plain:
        return "Type into a running command"
    return f"Run {one_line(command, 120)}" if command else "Use the network"


def _about_change(raw: Raw, item: Item | None) -> Question:
    """Codex sends no diff with it: without the open item there is nothing to show."""
    asked = cast("codex.FileChangeRequestApprovalParams", raw)
    change = item if isinstance(item, FileChange) else None
    root = maybe_text(asked.get("grantRoot"))
    allows = list(_unknown(raw))
    if root:
        allows.append(f"writes to anything below {root} until the thread is unloaded")
    allows += _hidden(f"{root or ''}{_paths(change)}")
    whole = change is not None and change.changes and not change.truncated
    detail = ApprovalDetail(
        changes=change.changes if change else None,
        reason=_reason(raw),
        allows=[cut(line, PATH_BYTES) for line in allows[:ALLOWS]],
    )
    yes = ("allowForSession" if root else "allow", DECISIONS["allow"])
    return _question(
        ApprovalKind.FILE_CHANGE,
        raw,
        title=_files(change),
        detail=detail,
        yes=[yes] if whole and _fit(allows) else (),
    )


def _paths(change: FileChange | None) -> str:
    changes = change.changes if change else ()
    return "".join(f"{one.path}{one.moved_to or ''}" for one in changes)


def _files(change: FileChange | None) -> str:
    if change is None or not change.changes:
        return "Change files that are not known here"
    if change.files == 1:
        return f"Change {one_line(change.changes[0].path, 120)}"
    return f"Change {change.files} files"


def _question(
    kind: ApprovalKind,
    raw: Raw,
    *,
    title: str,
    detail: ApprovalDetail,
    yes: Iterable[tuple[str, str]],
) -> Question:
    refusals = {name: DECISIONS[name] for name in _REFUSALS}
    return Question(
        kind=kind,
        thread_id=wire_id(raw["threadId"]),
        turn_id=wire_id(raw["turnId"]),
        item_id=wire_id(raw["itemId"]),
        title=title,
        detail=detail,
        choices={**dict(yes), **refusals},
    )


def _offered(raw: object) -> Iterable[tuple[str, str]]:
    """Return the ways to say yes that Codex offered; old versions list none."""
    if raw is None:
        return [("allow", DECISIONS["allow"])]
    words = [word for word in sequence(raw) if isinstance(word, str)]
    names = ("allow", "allowForSession")
    return [(name, DECISIONS[name]) for name in names if DECISIONS[name] in words]


def _fit(lines: Sequence[str]) -> bool:
    """Whether all of what a yes lets through will be shown."""
    return len(lines) <= ALLOWS and all(_short(line, PATH_BYTES) for line in lines)


def _short(words: str | None, limit: int) -> bool:
    return byte_size(words or "") <= limit


def _reason(raw: Raw) -> str | None:
    reason = maybe_text(raw.get("reason"))
    return cut(reason, REASON_BYTES) if reason else None


def _network(raw: object) -> list[str]:
    if raw is None:
        return []
    context = cast("codex.NetworkApprovalContext", mapping(raw))
    return [f"network access to {text(context['host'])} ({text(context['protocol'])})"]


def _rights(raw: Raw) -> list[str]:
    where = maybe_text(raw.get("environmentId"))
    lines = [] if where in {None, "local"} else [f"runs in the environment {where}"]
    return lines + permission_lines(raw.get("additionalPermissions"))


def _unknown(raw: Raw) -> list[str]:
    """Show what a newer Codex adds to its question, as it is: a yes may depend on it."""
    return [
        f"{one_line(key, 64)}: {json.dumps(value, sort_keys=True)}"
        for key, value in raw.items()
        if key not in _SHOWN and value is not None
    ]


def _hidden(words: str) -> Sequence[str]:
    """Warn of characters that an eye does not see, or that turn text around."""
    lines: list[str] = []
    if found := {char for char in words if char not in "\n\t" and _unseen(char)}:
        codes = " ".join(sorted(f"U+{ord(char):04X}" for char in found))
        lines.append(f"careful, it holds invisible characters: {codes[:LINE_CHARS]}")
    if any(unicodedata.bidirectional(char) in _LEFTWARD for char in words):
        lines.append(_TURNED)
    return lines


def _unseen(char: str) -> bool:
    if unicodedata.category(char) in _INVISIBLE:
        return True
    return _BLANK.match(char) is not None
