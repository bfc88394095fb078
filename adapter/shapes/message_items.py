"""Items of what is said: messages, reasoning, plans. Sans-IO. PROTOCOL.md section 5."""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from adapter.limits import ATTACHMENTS, CITATIONS, SUMMARY_PARTS
from adapter.shapes.item_frame import Cutter, Frame, base_of
from adapter.shapes.shapes import (
    mapping,
    maybe_id,
    maybe_text,
    maybe_whole,
    sequence,
    text,
)
from adapter.shapes.texts import byte_size
from generated import codex
from transport.protocol.items import (
    AgentMessage,
    Citation,
    Item,
    Plan,
    Reasoning,
    UserMessage,
)

_UPLOAD: Final = re.compile(r"/uploads/[0-9a-z]{1,64}/[0-9a-f]{32}$")


def user_message(raw: Mapping[str, Any], cutter: Cutter, frame: Frame) -> Item:
    """What a person sent, with the names of what came with it."""
    item = cast("codex.ThreadItemUserMessage", raw)
    inputs = [mapping(part) for part in sequence(item["content"])]
    words = [text(part["text"]) for part in inputs if part["type"] == "text"]
    attached = [_attachment(part) for part in inputs if part["type"] != "text"]
    if len(attached) > ATTACHMENTS:
        cutter.dropped.add("attachments")
    said = cutter("text", "\n".join(words))
    names = [cutter("attachments", name, 1024) for name in attached[:ATTACHMENTS]]
    return UserMessage(
        **base_of(raw, cutter, frame),
        text=said,
        attachments=names,
        client_key=maybe_id(item.get("clientId")),
    )


def _attachment(part: Mapping[str, Any]) -> str:
    """Name what came with a message; a data URL is a picture, not its name, and the
    place where the Agent keeps uploads is nobody's business."""
    if part["type"] == "localImage" and _UPLOAD.search(text(part["path"])):
        return "uploaded picture"
    for key in ("path", "name", "fileId"):
        if isinstance(part.get(key), str):
            return text(part[key])
    return text(part["type"])


def agent_message(raw: Mapping[str, Any], cutter: Cutter, frame: Frame) -> Item:
    """What the model said, with the questions that the next message answers."""
    item = cast("codex.ThreadItemAgentMessage", raw)
    parts = [text(item["text"]), *map(_question, sequence(item.get("questions")))]
    said = cutter("text", "\n".join(part for part in parts if part))
    cited = _citations(item.get("memoryCitation"), cutter)
    return AgentMessage(
        **base_of(raw, cutter, frame),
        text=said,
        phase=maybe_text(item.get("phase")),
        delivery=maybe_text(item.get("delivery")),
        citations=cited or None,
    )


def _citations(raw: object, cutter: Cutter) -> list[Citation]:
    if raw is None:
        return []
    entries = sequence(mapping(raw).get("entries"))
    if len(entries) > CITATIONS:
        cutter.dropped.add("citations")
    return [_citation(mapping(one), cutter) for one in entries[:CITATIONS]]


def _citation(raw: Mapping[str, Any], cutter: Cutter) -> Citation:
    entry = cast("codex.MemoryCitationEntry", raw)
    note = maybe_text(entry.get("note"))
    return Citation(
        path=cutter("citations", text(entry["path"]), 1024),
        note=cutter("citations", note, 1024) if note else None,
        line_start=maybe_whole(entry.get("lineStart")),
        line_end=maybe_whole(entry.get("lineEnd")),
    )


def _question(raw: object) -> str:
    """A question that the next message answers; it is in the item, not in its text."""
    question = mapping(raw)
    options = [_option(option) for option in sequence(question.get("options"))]
    title = text(question.get("title", ""))
    return f"{title} ({' / '.join(options)})" if options else title


def _option(raw: object) -> str:
    return text(raw if isinstance(raw, str) else mapping(raw).get("label", ""))


def reasoning(raw: Mapping[str, Any], cutter: Cutter, frame: Frame) -> Item:
    """What the model thought, as far as Codex shows it."""
    item = cast("codex.ThreadItemReasoning", raw)
    parts = [text(part) for part in sequence(item.get("summary"))]
    content = "\n\n".join(text(part) for part in sequence(item.get("content")))
    whole = "\n\n".join(parts)
    if len(parts) > SUMMARY_PARTS or byte_size(whole) > cutter.limit:
        parts = [cutter("summary", whole)]
    said = cutter("text", content) if content else None
    return Reasoning(**base_of(raw, cutter, frame), summary=parts, text=said)


def plan(raw: Mapping[str, Any], cutter: Cutter, frame: Frame) -> Item:
    """A plan that the model proposes."""
    said = cutter("text", text(cast("codex.ThreadItemPlan", raw)["text"]))
    return Plan(**base_of(raw, cutter, frame), text=said)
