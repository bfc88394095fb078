"""Questions about commands, file changes and permissions. Sans-IO. PROTOCOL.md section 5.

What a yes to them lets through happens on the workstation, so it is shown to its last
byte or can only be refused.
"""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from adapter.approvals import choices
from adapter.approvals.choices import Result, Way, Ways, fixed
from adapter.approvals.legible import (
    hidden_lines,
    lines_fit,
    shown_lines,
    text_fits,
    unknown_lines,
)
from adapter.approvals.permissions import permission_lines, permission_rows
from adapter.approvals.questions import Question, Raw, place_lines, reason_of
from adapter.limits import PATH_BYTES, TEXT_BYTES
from adapter.shapes.shapes import mapping, maybe_text, sequence, text, wire_id
from adapter.shapes.texts import cut, one_line
from generated import codex
from transport.protocol.approvals import (
    ApprovalDetail,
    ApprovalKind,
    ChoiceEffect,
    Permission,
    PermissionKind,
)
from transport.protocol.items import Command, FileChange, Item

DECLINED: Final[Result] = {"decision": "decline"}
NOTHING_GRANTED: Final[Result] = {"permissions": {}, "scope": "turn"}

_SESSION: Final = "Allow, and do not ask again until the thread is unloaded"
_DECISIONS: Final = {
    choices.ALLOW: "accept",
    choices.ALLOW_FOR_SESSION: "acceptForSession",
}
_YES: Final[Mapping[str, Way]] = {
    choices.ALLOW: fixed("Allow once", ChoiceEffect.ALLOW, {"decision": "accept"}),
    choices.ALLOW_FOR_SESSION: fixed(
        _SESSION, ChoiceEffect.ALLOW_FOR_SESSION, {"decision": "acceptForSession"}
    ),
}
_NO: Final[Mapping[str, Way]] = {  # legal whether Codex lists them or not
    choices.DENY: fixed("Decline; the turn goes on", ChoiceEffect.DENY, DECLINED),
    choices.CANCEL: fixed(
        "Decline and stop the turn", ChoiceEffect.CANCEL, {"decision": "cancel"}
    ),
}
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
        "permissions",
        "proposedExecpolicyAmendment",
        "proposedNetworkPolicyAmendments",
        "reason",
        "startedAtMs",
        "threadId",
        "turnId",
    }
)
_GRANTS: Final = ("network", "fileSystem")


def about_command(raw: Raw, item: Item | None) -> Question:
    """`item`: the open item that it is about, where there is one."""
    asked = cast("codex.CommandExecutionRequestApprovalParams", raw)
    command = maybe_text(asked.get("command"))
    if command is None and isinstance(item, Command) and not item.truncated:
        command = item.command
    host = asked.get("networkApprovalContext")
    cwd = maybe_text(asked.get("cwd"))
    allows = [*_network(host), *place_lines(raw)]
    allows += permission_lines(raw.get("additionalPermissions"))
    allows += unknown_lines(raw, _SHOWN)
    allows += hidden_lines(f"{command or ''}{cwd or ''}")
    plain = (maybe_text(asked.get("kind")) or "command") == "command"
    whole = plain and (command is not None or host is not None)
    fits = text_fits(command, TEXT_BYTES) and text_fits(cwd, PATH_BYTES)
    detail = ApprovalDetail(
        command=None if command is None else cut(command, TEXT_BYTES),
        cwd=None if cwd is None else cut(cwd, PATH_BYTES),
        reason=reason_of(raw),
        allows=shown_lines(allows),
    )
    yes = _offered(asked.get("availableDecisions"))
    return _question(
        ApprovalKind.COMMAND,
        raw,
        title=_title(command, plain=plain),
        detail=detail,
        yes=yes if whole and fits and lines_fit(allows) else {},
    )


def _title(command: str | None, *, plain: bool) -> str:
    if not plain:
        return "Type into a running command"
    return f"Run {one_line(command, 120)}" if command else "Use the network"


def about_change(raw: Raw, item: Item | None) -> Question:
    """Codex sends no diff with it: without the open item there is nothing to show."""
    asked = cast("codex.FileChangeRequestApprovalParams", raw)
    change = item if isinstance(item, FileChange) else None
    root = maybe_text(asked.get("grantRoot"))
    allows = unknown_lines(raw, _SHOWN)
    if root:
        allows.append(f"writes to anything below {root} until the thread is unloaded")
    allows += hidden_lines(f"{root or ''}{_paths(change)}")
    whole = change is not None and change.changes and not change.truncated
    detail = ApprovalDetail(
        changes=change.changes if change else None,
        reason=reason_of(raw),
        allows=shown_lines(allows),
    )
    return _question(
        ApprovalKind.FILE_CHANGE,
        raw,
        title=_files(change),
        detail=detail,
        yes=_yes_to_change(root) if whole and lines_fit(allows) else {},
    )


def _yes_to_change(root: str | None) -> Mapping[str, Way]:
    """A plain yes to a root is remembered by Codex, whatever it is called."""
    if not root:
        return {choices.ALLOW: _YES[choices.ALLOW]}
    effect = ChoiceEffect.ALLOW_FOR_SESSION
    return {
        choices.ALLOW_FOR_SESSION: fixed(_SESSION, effect, {"decision": "accept"}),
    }


def _paths(change: FileChange | None) -> str:
    changes = change.changes if change else ()
    return "".join(f"{one.path}{one.moved_to or ''}" for one in changes)


def _files(change: FileChange | None) -> str:
    if change is None or not change.changes:
        return "Change files that are not known here"
    if change.files == 1:
        return f"Change {one_line(change.changes[0].path, 120)}"
    return f"Change {change.files} files"


def about_permissions(raw: Raw) -> Question:
    """A yes grants exactly what was asked for, and Codex clips what is more."""
    asked = cast("codex.PermissionsRequestApprovalParams", raw)
    profile = mapping(asked["permissions"])
    rows = permission_rows(profile)
    cwd = text(asked["cwd"])
    lines = [row.text for row in rows]
    allows = [*place_lines(raw), *unknown_lines(raw, _SHOWN)]
    allows += hidden_lines("".join((cwd, *lines)))
    known = all(row.access is not PermissionKind.OTHER for row in rows)
    fits = lines_fit([*lines, *allows]) and text_fits(cwd, PATH_BYTES)
    detail = ApprovalDetail(
        permissions=[_short(row) for row in rows[: len(shown_lines(lines))]],
        cwd=cut(cwd, PATH_BYTES),
        reason=reason_of(raw),
        allows=shown_lines(allows),
    )
    no = fixed("Grant nothing; the turn goes on", ChoiceEffect.DENY, NOTHING_GRANTED)
    no_way: Ways = {}
    yes = _grants(profile) if rows and known and fits else no_way
    return Question(
        kind=ApprovalKind.PERMISSIONS,
        thread_id=wire_id(raw["threadId"]),
        turn_id=wire_id(raw["turnId"]),
        title=_rights_title(rows),
        detail=detail,
        choices={**yes, choices.DENY: no},
    )


def _grants(profile: Raw) -> Mapping[str, Way]:
    granted = {key: profile[key] for key in _GRANTS if profile.get(key) is not None}
    return {
        choices.ALLOW: fixed(
            "Grant it for this turn",
            ChoiceEffect.ALLOW,
            {"permissions": granted, "scope": "turn"},
        ),
        choices.ALLOW_FOR_SESSION: fixed(
            "Grant it until the thread is unloaded",
            ChoiceEffect.ALLOW_FOR_SESSION,
            {"permissions": granted, "scope": "session"},
        ),
    }


def _short(row: Permission) -> Permission:
    path = None if row.path is None else cut(row.path, PATH_BYTES)
    return row.model_copy(update={"path": path, "text": cut(row.text, PATH_BYTES)})


def _rights_title(rows: Sequence[Permission]) -> str:
    if len(rows) == 1:
        return f"More permissions: {one_line(rows[0].text, 100)}"
    return f"More permissions ({len(rows)})"


def _question(
    kind: ApprovalKind,
    raw: Raw,
    *,
    title: str,
    detail: ApprovalDetail,
    yes: Mapping[str, Way],
) -> Question:
    return Question(
        kind=kind,
        thread_id=wire_id(raw["threadId"]),
        turn_id=wire_id(raw["turnId"]),
        item_id=wire_id(raw["itemId"]),
        title=title,
        detail=detail,
        choices={**yes, **_NO},
    )


def _offered(raw: object) -> Mapping[str, Way]:
    """Return the ways to say yes that Codex offered; old versions list none."""
    if raw is None:
        return {choices.ALLOW: _YES[choices.ALLOW]}
    words = [word for word in sequence(raw) if isinstance(word, str)]
    return {name: way for name, way in _YES.items() if _DECISIONS[name] in words}


def _network(raw: object) -> list[str]:
    if raw is None:
        return []
    context = cast("codex.NetworkApprovalContext", mapping(raw))
    return [f"network access to {text(context['host'])} ({text(context['protocol'])})"]
