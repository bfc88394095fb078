"""Tool calls, web searches and pictures as v2 items. Sans-IO. PROTOCOL.md section 5.

A tool's arguments are JSON as text, its result is the text that it gave: both can be cut
like any other text, whatever a tool puts into them.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, cast

from adapter.limits import PATH_BYTES
from adapter.shapes.item_frame import Cutter, Frame, base_of
from adapter.shapes.shapes import (
    json_text,
    mapping,
    maybe_text,
    maybe_whole,
    sequence,
    text,
)
from adapter.shapes.texts import prefix, without_backtrace
from generated import codex
from transport.protocol.items import Image, Item, ItemStatus, ToolCall, WebSearch
from transport.protocol.work_items import ImageOrigin

Raw = Mapping[str, Any]

_NAME_BYTES: Final = 256  # of a tool or its server; they name it and nothing else
_TEXTS: Final = frozenset({"text", "inputText", "input_text"})


def mcp_tool(raw: Raw, cutter: Cutter, frame: Frame) -> Item:
    """A tool of an MCP server; it can fail with a result (`isError`)."""
    item = cast("codex.ThreadItemMcpToolCall", raw)
    return _tool_call(
        raw,
        cutter,
        frame,
        server=text(item["server"]),
        result=_mcp_result(item.get("result")),
        error=_error(item.get("error")),
    )


def client_tool(raw: Raw, cutter: Cutter, frame: Frame) -> Item:
    """A tool that a client of Codex brought itself (`dynamicToolCall`)."""
    item = cast("codex.ThreadItemDynamicToolCall", raw)
    content = item.get("contentItems")
    return _tool_call(
        raw,
        cutter,
        frame,
        server=maybe_text(item.get("namespace")),
        result=None if content is None else _content(content),
    )


def function_output(raw: Raw, cutter: Cutter, frame: Frame) -> Item:
    """What a tool answered, without what it was asked (`functionCallOutput`)."""
    item = cast("codex.ThreadItemFunctionCallOutput", raw)
    output: object = item["output"]
    return _tool_call(
        {**raw, "tool": item["name"]},
        cutter,
        frame,
        server=maybe_text(item.get("namespace")),
        result=output if isinstance(output, str) else _content(output),
    )


def _tool_call(
    raw: Raw,
    cutter: Cutter,
    frame: Frame,
    *,
    server: str | None,
    result: str | None,
    error: str | None = None,
) -> Item:
    given = json_text(raw["arguments"]) if "arguments" in raw else None
    arguments = None if given is None else cutter("arguments", given)
    said = None if result is None else cutter("result", text(result))
    why = None if error is None else cutter("error", error)
    return ToolCall(
        **base_of(raw, cutter, frame),
        server=prefix(server, _NAME_BYTES) if server else None,
        tool=prefix(text(raw["tool"]), _NAME_BYTES),
        arguments=arguments,
        result=said,
        error=why,
        duration_ms=maybe_whole(raw.get("durationMs")),
    )


def _mcp_result(raw: object) -> str | None:
    """The text of a result; of one that has none, its structure."""
    if raw is None:
        return None
    result = cast("codex.McpToolCallResult", mapping(raw))
    said = _content(result["content"])
    structure = result.get("structuredContent")
    return json_text(structure) if not said and structure is not None else said


def _content(raw: object) -> str:
    return "\n".join(_part(mapping(part)) for part in sequence(raw))


def _part(part: Raw) -> str:
    """Text as it is; anything else is named, never sent: it may be a picture's bytes."""
    kind = text(part.get("type", "part"))
    if kind in _TEXTS:
        return text(part["text"])
    resource = part.get("resource")
    inner = cast("Raw", resource) if isinstance(resource, Mapping) else part
    if isinstance(inner.get("text"), str):
        return text(inner["text"])
    names = (inner.get(key) for key in ("uri", "name", "mimeType"))
    name = next((text(one) for one in names if isinstance(one, str)), "")
    return f"[{kind} {prefix(name, PATH_BYTES)}]" if name else f"[{kind}]"


def _error(raw: object) -> str | None:
    if raw is None:
        return None
    return without_backtrace(text(mapping(raw)["message"]))


def web_search(raw: Raw, cutter: Cutter, frame: Frame) -> Item:
    """A search; what it found is not told, the model's answer says it."""
    item = cast("codex.ThreadItemWebSearch", raw)
    action = mapping(item.get("action") or {})
    url = maybe_text(action.get("url"))
    query = cutter("query", _looked_for(text(item["query"]), action))
    page = cutter("url", url, PATH_BYTES) if url else None
    kind = maybe_text(action.get("type"))
    return WebSearch(
        **base_of(raw, cutter, frame),
        query=query,
        action=prefix(kind, _NAME_BYTES) if kind else None,
        url=page,
    )


def _looked_for(query: str, action: Raw) -> str:
    """Inside a page it is the pattern: there Codex's query is a sentence about both."""
    queries = " · ".join(text(one) for one in sequence(action.get("queries")))
    words = (action.get("pattern"), query, action.get("query"), queries)
    return next((text(one) for one in words if one), "")


def image_viewed(raw: Raw, cutter: Cutter, frame: Frame) -> Item:
    """A picture that the model looked at."""
    path = cutter("path", text(raw["path"]), PATH_BYTES)
    base = base_of(raw, cutter, frame)
    blob_id = _blob_id(base, path)
    return Image(**base, origin=ImageOrigin.VIEWED, blob_id=blob_id, path=path)


def image_made(raw: Raw, cutter: Cutter, frame: Frame) -> Item:
    """A picture that the model made; its bytes, where Codex sends them, are not told."""
    item = cast("codex.ThreadItemImageGeneration", raw)
    saved, prompt = maybe_text(item.get("savedPath")), item.get("revisedPrompt")
    path = cutter("path", saved, PATH_BYTES) if saved else None
    asked = cutter("prompt", text(prompt)) if prompt else None
    failure = item.get("failure")
    failed = failure is not None or raw.get("status") == ItemStatus.FAILED
    word = ItemStatus.FAILED if failed else ItemStatus.COMPLETED
    base = base_of({**raw, "status": word.value}, cutter, frame)
    return Image(
        **base,
        origin=ImageOrigin.MADE,
        blob_id=_blob_id(base, path),
        path=path,
        prompt=asked,
        error=prefix(text(mapping(failure)["type"]), _NAME_BYTES) if failure else None,
    )


def _blob_id(base: Mapping[str, Any], path: str | None) -> str | None:
    """Return the id that a picture is read by: the same for the same item, live and from
    history, and no guess of who has not seen it. A path that was cut names no file."""
    if path is None or "path" in (base["truncated"] or ()):
        return None
    named = "\0".join((base["turn_id"], base["id"], path))
    return f"img_{hashlib.sha256(named.encode(errors='replace')).hexdigest()[:32]}"
