"""Codex's items as v2 items, by table; what has no kind of its own is a line. Sans-IO.

PROTOCOL.md section 5. Live items and stored ones take the same way, so an item looks
alike from both.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from adapter.limits import ACTIONS, CHANGES, ITEM_BYTES, TEXT_BYTES
from adapter.shapes.agent_items import subagent_activity, subagent_call
from adapter.shapes.changes import changes_from
from adapter.shapes.item_frame import Build, Cutter, Frame, base_of
from adapter.shapes.message_items import agent_message, plan, reasoning, user_message
from adapter.shapes.shapes import mapping, maybe_text, maybe_whole, sequence, text
from adapter.shapes.summaries import summary_of
from adapter.shapes.texts import packed_bound, prefix
from adapter.shapes.tool_items import (
    client_tool,
    function_output,
    image_made,
    image_viewed,
    mcp_tool,
    web_search,
)
from adapter.shapes.whole_texts import true_size
from generated import codex
from transport.protocol.items import (
    Command,
    CommandAction,
    Compaction,
    FileChange,
    Item,
    ItemStatus,
    OtherItem,
    Review,
)
from transport.protocol.work_items import ReviewPhase

_LIMITS: Final = (TEXT_BYTES, 16 * 1024, 4 * 1024, 1024, 512, 256)


def item_from(raw: Mapping[str, Any], frame: Frame) -> Item:
    """Return the v2 item; at most 256 KiB packed. Raises one of `MISFITS`."""
    build = _BUILDERS.get(text(raw["type"]), _other)
    for limit in _LIMITS:
        item = build(raw, Cutter(limit=limit), frame)
        if packed_bound(item.wire()) <= ITEM_BYTES:
            return item
    raise ValueError("an item whose ids and paths alone are too large")


def ended_as(item: Item, status: ItemStatus, at: int, provenance: str) -> Item:
    """Return the item as we end it ourselves, because Codex never will."""
    return item.model_copy(
        update={"status": status, "completed_at": at, "provenance": provenance}
    )


def _command(raw: Mapping[str, Any], cutter: Cutter, frame: Frame) -> Item:
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
        **base_of(raw, cutter, frame),
        command=command,
        cwd=cwd,
        output=shown,
        actions=listed,
        exit_code=maybe_whole(item.get("exitCode")),
        duration_ms=maybe_whole(item.get("durationMs")),
        output_bytes=true_size(output),
    )


def _action(raw: object, cutter: Cutter) -> CommandAction:
    action = mapping(raw)
    path, command = maybe_text(action.get("path")), maybe_text(action.get("command"))
    return CommandAction(
        type=text(action["type"]),
        command=None if command is None else cutter("actions", command, 1024),
        path=None if path is None else cutter("actions", path, 1024),
    )


def _file_change(raw: Mapping[str, Any], cutter: Cutter, frame: Frame) -> Item:
    item = cast("codex.ThreadItemFileChange", raw)
    changes = sequence(item["changes"])
    if len(changes) > CHANGES:
        cutter.dropped.add("changes")
    shown = changes_from(changes[:CHANGES], lambda diff: cutter("changes", diff))
    base = base_of(raw, cutter, frame)
    return FileChange(**base, changes=shown, files=len(changes))


def _review_entered(raw: Mapping[str, Any], cutter: Cutter, frame: Frame) -> Item:
    return _review(raw, cutter, frame, ReviewPhase.ENTERED)


def _review_exited(raw: Mapping[str, Any], cutter: Cutter, frame: Frame) -> Item:
    return _review(raw, cutter, frame, ReviewPhase.EXITED)


def _review(
    raw: Mapping[str, Any], cutter: Cutter, frame: Frame, phase: ReviewPhase
) -> Item:
    said = maybe_text(raw.get("review"))
    shown = cutter("text", said) if said else None
    return Review(**base_of(raw, cutter, frame), phase=phase, text=shown)


def _compaction(raw: Mapping[str, Any], cutter: Cutter, frame: Frame) -> Item:
    return Compaction(**base_of(raw, cutter, frame))


def _other(raw: Mapping[str, Any], cutter: Cutter, frame: Frame) -> Item:
    return OtherItem(
        **base_of(raw, cutter, frame),
        source_type=prefix(text(raw["type"]), 128),
        summary=summary_of(raw),
    )


_BUILDERS: Final[Mapping[str, Build]] = {
    "agentMessage": agent_message,
    "collabAgentToolCall": subagent_call,
    "commandExecution": _command,
    "contextCompaction": _compaction,
    "dynamicToolCall": client_tool,
    "enteredReviewMode": _review_entered,
    "exitedReviewMode": _review_exited,
    "fileChange": _file_change,
    "functionCallOutput": function_output,
    "imageGeneration": image_made,
    "imageView": image_viewed,
    "mcpToolCall": mcp_tool,
    "plan": plan,
    "reasoning": reasoning,
    "subAgentActivity": subagent_activity,
    "userMessage": user_message,
    "webSearch": web_search,
}
