"""Codex's threads, listed, read or loaded, as v2 models. Sans-IO. PROTOCOL.md section 5.

A shape that does not fit is an `AnswerShapeError`.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from adapter.limits import PATH_BYTES, PREVIEW_CHARS
from adapter.shapes.shapes import (
    Shape,
    mapping,
    maybe_id,
    maybe_text,
    maybe_word,
    seconds,
    sequence,
    text,
    wire_id,
)
from adapter.shapes.texts import one_line, prefix
from generated import codex
from transport.protocol.gateway import LeaseState
from transport.protocol.threads import (
    GitInfo,
    Thread,
    ThreadMode,
    ThreadSettings,
    ThreadStatus,
)

_STATUSES: Final = {
    "idle": ThreadStatus.IDLE,
    "systemError": ThreadStatus.FAILED,
    "active": ThreadStatus.RUNNING,
}
_FLAGS: Final = {
    "waitingOnApproval": ThreadStatus.WAITING_ON_APPROVAL,
    "waitingOnUserInput": ThreadStatus.WAITING_ON_INPUT,
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
    with Shape("thread"):
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


def status_from(raw: object) -> ThreadStatus:
    """Return what Codex says that a thread does; a waiting one is not just running."""
    status = mapping(raw)
    for flag in sequence(status.get("activeFlags")):
        if flag in _FLAGS:
            return _FLAGS[flag]
    return _STATUSES.get(text(status["type"]), ThreadStatus.UNKNOWN)


def is_legacy(raw: Mapping[str, Any]) -> bool:
    """Whether its history is kept as before 0.163, which did not name the mode at all."""
    return raw.get("historyMode") != "paginated"


def parent_from(raw: Mapping[str, Any]) -> str | None:
    """Return the thread that spawned this one, from either place where Codex says it."""
    thread = cast("codex.Thread", raw)
    if parent := maybe_id(thread.get("parentThreadId")):
        return parent
    spawned = _inside(_inside(thread.get("source"), "subAgent"), "thread_spawn")
    return maybe_id(_inside(spawned, "parent_thread_id"))


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
        return maybe_word(raw) or "unknown"
    source = mapping(raw)
    if "custom" in source:
        return maybe_word(source["custom"]) or "custom"
    return maybe_word(next(iter(source), None)) or "unknown"


def _git(raw: object) -> GitInfo | None:
    if raw is None:
        return None
    info = cast("codex.GitInfo", mapping(raw))
    origin = maybe_text(info.get("originUrl"))
    return GitInfo(
        branch=maybe_word(info.get("branch")),
        commit=maybe_word(info.get("sha")),
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
