"""Codex's items as v2 items, by table: five kinds in full, the rest in a line. Sans-IO.

PROTOCOL.md section 5. Live items and stored ones take the same way, so an item looks
alike from both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from adapter.changes import changes_from
from adapter.limits import ACTIONS, ATTACHMENTS, CHANGES, ITEM_BYTES, TEXT_BYTES
from adapter.shapes import (
    mapping,
    maybe_id,
    maybe_text,
    maybe_whole,
    sequence,
    text,
    wire_id,
)
from adapter.summaries import summary_of
from adapter.texts import byte_size, cut, packed_bound, prefix
from generated import codex
from transport.protocol.items import (
    AgentMessage,
    Command,
    CommandAction,
    FileChange,
    Item,
    ItemStatus,
    OtherItem,
    Reasoning,
    UserMessage,
)

_LIMITS: Final = (TEXT_BYTES, 16 * 1024, 4 * 1024, 1024, 512, 256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What is known of an item from around it. Times in ms.

    `status` overrides the item's own; `unfinished` replaces one that says in progress.
    """

    turn_id: str
    provenance: str
    started_at: int | None = None
    completed_at: int | None = None
    status: ItemStatus | None = None
    unfinished: ItemStatus = ItemStatus.COMPLETED
    background: bool | None = None
    stable_id: bool | None = None


@dataclass(slots=True, kw_only=True)
class _Cutter:
    """Cuts the texts of one item, and remembers which."""

    limit: int
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    dropped: set[str] = field(default_factory=set[str])

    def __call__(self, name: str, whole: str, limit: int | None = None) -> str:
        kept = cut(whole, min(self.limit, limit or self.limit))
        if kept != whole:
            self.sizes[name] = self.sizes.get(name, 0) + byte_size(whole)
        return kept

    @property
    def truncated(self) -> list[str] | None:
        return sorted(self.sizes.keys() | self.dropped) or None


def item_from(raw: Mapping[str, Any], frame: Frame) -> Item:
    """Return the v2 item; at most 256 KiB packed. Raises one of `MISFITS`."""
    build = _BUILDERS.get(text(raw["type"]), _other)
    for limit in _LIMITS:
        item = build(raw, _Cutter(limit=limit), frame)
        if packed_bound(item.wire()) <= ITEM_BYTES:
            return item
    raise ValueError("an item whose ids and paths alone are too large")


def ended_as(item: Item, status: ItemStatus, at: int, provenance: str) -> Item:
    """Return the item as we end it ourselves, because Codex never will."""
    return item.model_copy(
        update={"status": status, "completed_at": at, "provenance": provenance}
    )


def _base(raw: Mapping[str, Any], cutter: _Cutter, frame: Frame) -> dict[str, Any]:
    started, ended = raw.get("startedAtMs"), raw.get("completedAtMs")
    return {
        "id": wire_id(raw["id"]),
        "turn_id": frame.turn_id,
        "status": frame.status or _status(raw.get("status"), frame.unfinished),
        "started_at": frame.started_at or maybe_whole(started),
        "completed_at": frame.completed_at or maybe_whole(ended),
        "background": frame.background,
        "stable_id": frame.stable_id,
        "provenance": frame.provenance,
        "truncated": cutter.truncated,
        "sizes": cutter.sizes or None,
    }


def _status(word: object, unfinished: ItemStatus) -> ItemStatus:
    if not isinstance(word, str):
        return ItemStatus.COMPLETED
    status = ItemStatus(word)
    return unfinished if status is ItemStatus.IN_PROGRESS else status


def _user_message(raw: Mapping[str, Any], cutter: _Cutter, frame: Frame) -> Item:
    item = cast("codex.ThreadItemUserMessage", raw)
    inputs = [mapping(part) for part in sequence(item["content"])]
    words = [text(part["text"]) for part in inputs if part["type"] == "text"]
    attached = [_attachment(part) for part in inputs if part["type"] != "text"]
    if len(attached) > ATTACHMENTS:
        cutter.dropped.add("attachments")
    said = cutter("text", "\n".join(words))
    names = [cutter("attachments", name, 1024) for name in attached[:ATTACHMENTS]]
    return UserMessage(
        **_base(raw, cutter, frame),
        text=said,
        attachments=names,
        client_key=maybe_id(item.get("clientId")),
    )


def _attachment(part: Mapping[str, Any]) -> str:
    """Name what came with a message; a data URL is a picture, not its name."""
    for key in ("path", "name", "fileId"):
        if isinstance(part.get(key), str):
            return text(part[key])
    return text(part["type"])


def _agent_message(raw: Mapping[str, Any], cutter: _Cutter, frame: Frame) -> Item:
    item = cast("codex.ThreadItemAgentMessage", raw)
    parts = [text(item["text"]), *map(_question, sequence(item.get("questions")))]
    said = cutter("text", "\n".join(part for part in parts if part))
    phase = maybe_text(item.get("phase"))
    return AgentMessage(**_base(raw, cutter, frame), text=said, phase=phase)


def _question(raw: object) -> str:
    """A question that the next message answers; it is in the item, not in its text."""
    question = mapping(raw)
    options = [_option(option) for option in sequence(question.get("options"))]
    title = text(question.get("title", ""))
    return f"{title} ({' / '.join(options)})" if options else title


def _option(raw: object) -> str:
    return text(raw if isinstance(raw, str) else mapping(raw).get("label", ""))


def _reasoning(raw: Mapping[str, Any], cutter: _Cutter, frame: Frame) -> Item:
    item = cast("codex.ThreadItemReasoning", raw)
    parts = [text(part) for part in sequence(item.get("summary"))]
    content = "\n\n".join(text(part) for part in sequence(item.get("content")))
    whole = "\n\n".join(parts)
    if byte_size(whole) > cutter.limit:
        parts = [cutter("summary", whole)]
    said = cutter("text", content) if content else None
    return Reasoning(**_base(raw, cutter, frame), summary=parts, text=said)


def _command(raw: Mapping[str, Any], cutter: _Cutter, frame: Frame) -> Item:
    item = cast("codex.ThreadItemCommandExecution", raw)
    output = maybe_text(item.get("aggregatedOutput")) or ""
    actions = sequence(item.get("commandActions"))
    if len(actions) > ACTIONS:
        cutter.dropped.add("actions")
    command = cutter("command", text(item["command"]))
    cwd = cutter("cwd", text(item["cwd"]))
    shown = cutter("output", output)
    listed = [_action(action, cutter) for action in actions[:ACTIONS]]
    return Command(
        **_base(raw, cutter, frame),
        command=command,
        cwd=cwd,
        output=shown,
        actions=listed,
        exit_code=maybe_whole(item.get("exitCode")),
        duration_ms=maybe_whole(item.get("durationMs")),
        output_bytes=byte_size(output),
    )


def _action(raw: object, cutter: _Cutter) -> CommandAction:
    action = mapping(raw)
    path, command = maybe_text(action.get("path")), maybe_text(action.get("command"))
    return CommandAction(
        type=text(action["type"]),
        command=None if command is None else cutter("actions", command, 1024),
        path=None if path is None else cutter("actions", path, 1024),
    )


def _file_change(raw: Mapping[str, Any], cutter: _Cutter, frame: Frame) -> Item:
    item = cast("codex.ThreadItemFileChange", raw)
    changes = sequence(item["changes"])
    if len(changes) > CHANGES:
        cutter.dropped.add("changes")
    shown = changes_from(changes[:CHANGES], lambda diff: cutter("changes", diff))
    base = _base(raw, cutter, frame)
    return FileChange(**base, changes=shown, files=len(changes))


def _other(raw: Mapping[str, Any], cutter: _Cutter, frame: Frame) -> Item:
    return OtherItem(
        **_base(raw, cutter, frame),
        source_type=prefix(text(raw["type"]), 128),
        summary=summary_of(raw),
    )


_BUILDERS: Final[Mapping[str, Callable[[Mapping[str, Any], _Cutter, Frame], Item]]] = {
    "userMessage": _user_message,
    "agentMessage": _agent_message,
    "reasoning": _reasoning,
    "commandExecution": _command,
    "fileChange": _file_change,
}
