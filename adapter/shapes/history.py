"""Codex's stored threads and turns as v2 models. Sans-IO. PROTOCOL.md section 5.

What an answer told: lists, reads, pages of turns, and the answers to start and resume.
A shape that does not fit is an `AnswerShapeError`.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from adapter.errors import AnswerShapeError
from adapter.limits import PATH_BYTES, PREVIEW_CHARS
from adapter.runtime.threads import EffectiveSettings
from adapter.shapes.failures import turn_error
from adapter.shapes.items import Frame, item_from
from adapter.shapes.shapes import (
    MISFITS,
    mapping,
    maybe_id,
    maybe_text,
    maybe_whole,
    seconds,
    sequence,
    text,
    why,
    wire_id,
)
from adapter.shapes.texts import one_line, prefix
from generated import codex
from transport.protocol.gateway import LeaseState
from transport.protocol.items import Item, ItemStatus, OtherItem
from transport.protocol.threads import (
    GitInfo,
    Thread,
    ThreadMode,
    ThreadSettings,
    ThreadStatus,
)
from transport.protocol.turns import Turn, TurnStatus

HISTORY: Final = "codex:history"

_STATUSES: Final = {
    "idle": ThreadStatus.IDLE,
    "systemError": ThreadStatus.FAILED,
    "active": ThreadStatus.RUNNING,
}
_FLAGS: Final = {
    "waitingOnApproval": ThreadStatus.WAITING_ON_APPROVAL,
    "waitingOnUserInput": ThreadStatus.WAITING_ON_INPUT,
}
_SANDBOXES: Final = {
    "readOnly": "read-only",
    "workspaceWrite": "workspace-write",
    "dangerFullAccess": "danger-full-access",
}


def thread_from(
    raw: Mapping[str, Any],
    *,
    archived: bool = False,
    mode: ThreadMode = ThreadMode.STILL,
    lease: LeaseState = LeaseState.NONE,
    settings: ThreadSettings | None = None,
) -> Thread:
    """Return a thread of a list, read, start or resume answer.

    Codex's `notLoaded` reads as status `unknown`: another process may run it.
    Raises: AnswerShapeError.
    """
    thread = cast("codex.Thread", raw)
    try:
        return Thread(
            id=wire_id(thread["id"]),
            title=_line(thread.get("name")),
            preview=one_line(text(thread["preview"]), PREVIEW_CHARS),
            cwd=prefix(text(thread["cwd"]), PATH_BYTES),
            source=_source(thread["source"]),
            status=status_from(thread["status"]),
            mode=mode,
            lease=lease,
            settings=settings,
            created_at=seconds(thread["createdAt"]) or 0,
            updated_at=seconds(thread["updatedAt"]) or 0,
            archived=archived or _lies_in_archive(raw),
            parent_id=parent_from(raw),
            forked_from_id=maybe_id(thread.get("forkedFromId")),
            git=_git(thread.get("gitInfo")),
            ephemeral=thread.get("ephemeral") is True,
        )
    except MISFITS as error:
        raise AnswerShapeError("thread", why(error)) from error


def turn_from(raw: Mapping[str, Any], thread_id: str, *, legacy: bool = False) -> Turn:
    """Return a stored turn, with its items unless Codex says `notLoaded`.

    `interrupted` without an end is `inferred`: a turn that runs in another process reads
    like that. `legacy`: the thread's historyMode; ids of its items are not the live ones.
    Raises: AnswerShapeError.
    """
    turn = cast("codex.Turn", raw)
    try:
        shown = turn.get("itemsView") != "notLoaded"
        return ended_turn(raw, thread_id).model_copy(
            update={"items": _items(raw, legacy=legacy) if shown else None}
        )
    except MISFITS as error:
        raise AnswerShapeError("turn", why(error)) from error


def settings_from(answer: Mapping[str, Any]) -> EffectiveSettings:
    """Return the settings in an answer to thread/start or resume.

    Raises: AnswerShapeError.
    """
    loaded = cast("codex.ThreadResumeResponse", answer)
    try:
        return EffectiveSettings(
            cwd=text(loaded["cwd"]),
            sandbox=sandbox_from(loaded["sandbox"]),
            approval_policy=policy_from(loaded["approvalPolicy"]),
            model=maybe_text(loaded.get("model")),
            effort=_word(loaded.get("reasoningEffort")),
        )
    except MISFITS as error:
        raise AnswerShapeError("settings", why(error)) from error


def effective(settings: ThreadSettings) -> EffectiveSettings:
    """Return a thread's settings as they are compared with a ceiling.

    What is not known is a word that no ceiling contains.
    """
    return EffectiveSettings(
        cwd=settings.cwd or "",
        sandbox=settings.sandbox or "unknown",
        approval_policy=settings.approval_policy or "unknown",
        model=settings.model,
        effort=settings.effort,
        mode=settings.mode,
    )


def settings_shown(settings: EffectiveSettings) -> ThreadSettings:
    """Return them as a thread shows them."""
    return ThreadSettings(
        model=settings.model,
        effort=settings.effort,
        mode=settings.mode,
        sandbox=settings.sandbox,
        approval_policy=settings.approval_policy,
        cwd=settings.cwd,
    )


def thread_settings_from(answer: Mapping[str, Any]) -> ThreadSettings:
    """Return the same answer, or a `threadSettings`, as a thread shows its settings.

    Raises: AnswerShapeError.
    """
    try:
        effort = answer.get("reasoningEffort", answer.get("effort"))
        mode = answer.get("collaborationMode")
        sandbox = answer.get("sandbox", answer.get("sandboxPolicy"))
        cwd = maybe_text(answer.get("cwd"))
        return ThreadSettings(
            model=maybe_text(answer.get("model")),
            effort=_word(effort),
            mode=_word(mapping(mode)["mode"]) if mode else None,
            sandbox=sandbox_from(sandbox),
            approval_policy=policy_from(answer["approvalPolicy"]),
            cwd=prefix(cwd, PATH_BYTES) if cwd else None,
        )
    except MISFITS as error:
        raise AnswerShapeError("settings", why(error)) from error


def ended_turn(raw: Mapping[str, Any], thread_id: str) -> Turn:
    """Return a turn without its items. Raises one of `MISFITS`."""
    turn = cast("codex.Turn", raw)
    status = TurnStatus(text(turn["status"]))
    ended = seconds(turn.get("completedAt"))
    cut_off = status is TurnStatus.INTERRUPTED and ended is None
    return Turn(
        id=wire_id(turn["id"]),
        thread_id=thread_id,
        status=status,
        error=turn_error(turn.get("error")),
        started_at=seconds(turn.get("startedAt")),
        completed_at=ended,
        duration_ms=maybe_whole(turn.get("durationMs")),
        inferred=True if cut_off else None,
    )


def status_from(raw: object) -> ThreadStatus:
    """Return what Codex says that a thread does; a waiting one is not just running."""
    status = mapping(raw)
    for flag in sequence(status.get("activeFlags")):
        if flag in _FLAGS:
            return _FLAGS[flag]
    return _STATUSES.get(text(status["type"]), ThreadStatus.UNKNOWN)


def parent_from(raw: Mapping[str, Any]) -> str | None:
    """Return the thread that spawned this one, from either place where Codex says it."""
    thread = cast("codex.Thread", raw)
    if parent := maybe_id(thread.get("parentThreadId")):
        return parent
    spawned = _inside(_inside(thread.get("source"), "subAgent"), "thread_spawn")
    return maybe_id(_inside(spawned, "parent_thread_id"))


def sandbox_from(raw: object) -> str:
    """Return the ceiling's word, or Codex's own where there is none."""
    word = text(mapping(raw)["type"])
    return _SANDBOXES.get(word, word)


def policy_from(raw: object) -> str:
    """Return the policy's word; of one made of parts (`granular`) its only key."""
    if isinstance(raw, Mapping):
        return text(next(iter(cast("Mapping[str, object]", raw))))
    return text(raw)


def stored_frame(
    turn_id: str,
    *,
    running: bool = False,
    legacy: bool = False,
    started_at: int | None = None,
    completed_at: int | None = None,
) -> Frame:
    """Return what is known of a stored item; `running`: its turn is in progress."""
    return Frame(
        turn_id=turn_id,
        provenance=HISTORY,
        unfinished=ItemStatus.IN_PROGRESS if running else ItemStatus.INTERRUPTED,
        stable_id=False if legacy else None,
        started_at=started_at,
        completed_at=completed_at,
    )


def stored_item(raw: Mapping[str, Any], frame: Frame) -> Item:
    """Return a stored item. One that cannot be read does not hide the others."""
    try:
        return item_from(raw, frame)
    except MISFITS:
        return OtherItem(
            id=wire_id(raw["id"]),
            turn_id=frame.turn_id,
            status=ItemStatus.OTHER,
            provenance=HISTORY,
            source_type=_word(raw.get("type")) or "unknown",
            summary="this item has a shape that is not known here",
        )


def _items(raw: Mapping[str, Any], *, legacy: bool) -> list[Item]:
    turn = cast("codex.Turn", raw)
    running = turn["status"] == "inProgress"
    frame = stored_frame(wire_id(turn["id"]), running=running, legacy=legacy)
    return [stored_item(mapping(item), frame) for item in turn["items"]]


def _lies_in_archive(raw: Mapping[str, Any]) -> bool:
    """Codex says it only by where the thread's own file lies."""
    path = raw.get("path")
    return isinstance(path, str) and "/archived_sessions/" in path


def _inside(value: object, key: str) -> object:
    if not isinstance(value, Mapping):
        return None
    return cast("Mapping[str, object]", value).get(key)


def _source(raw: object) -> str:
    if isinstance(raw, str):
        return _word(raw) or "unknown"
    source = mapping(raw)
    if "custom" in source:
        return _word(source["custom"]) or "custom"
    return _word(next(iter(source), None)) or "unknown"


def _git(raw: object) -> GitInfo | None:
    if raw is None:
        return None
    info = cast("codex.GitInfo", mapping(raw))
    origin = maybe_text(info.get("originUrl"))
    return GitInfo(
        branch=_word(info.get("branch")),
        commit=_word(info.get("sha")),
        origin=None if origin is None else _without_credentials(origin),
    )


def _without_credentials(url: str) -> str:
    """Cut `user:token@`, query and fragment out; `git@host:path` stays as it is."""
    scheme, found, rest = url.partition("://")
    if found:
        authority, slash, path = rest.partition("/")
        host = authority.rpartition("@")[2]
        plain = (path.partition("?")[0]).partition("#")[0]
        return prefix(f"{scheme}://{host}{slash}{plain}", PATH_BYTES)
    user, _, place = url.rpartition("@")
    return prefix(place if ":" in user else url, PATH_BYTES)


def _line(raw: object) -> str | None:
    words = maybe_text(raw)
    return one_line(words, PREVIEW_CHARS) if words else None


def _word(raw: object) -> str | None:
    words = maybe_text(raw)
    return words[:128] if words else None
