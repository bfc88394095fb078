"""One line for each type of item that v2 does not map in full. Sans-IO.

PROTOCOL.md section 5, kind `other`. A type without a row here is named, no more.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from adapter.limits import LINE_CHARS
from adapter.texts import one_line

Raw = Mapping[str, Any]


def summary_of(raw: Raw) -> str:
    """Return a line for a person; never raises on what is in the item."""
    kind = str(raw.get("type", "item"))
    build = _LINES.get(kind)
    return one_line(build(raw) if build else kind, LINE_CHARS)


def _word(raw: Raw, key: str) -> str:
    """A text of the item, with nothing in it that UTF-8 cannot hold."""
    value = raw.get(key)
    words = value if isinstance(value, str) else ""
    return words.encode("utf-8", "replace").decode()


def _message(raw: Raw, key: str) -> str:
    value = raw.get(key)
    return _word(cast("Raw", value), "message") if isinstance(value, Mapping) else ""


def _mcp_tool(raw: Raw) -> str:
    call = f"{_word(raw, 'server')}.{_word(raw, 'tool')}"
    error = _message(raw, "error")
    return f"MCP tool {call} failed: {error}" if error else f"MCP tool {call}"


def _agent_tool(raw: Raw) -> str:
    return f"sub-agent {_word(raw, 'tool')}: {_word(raw, 'prompt')}".rstrip(": ")


def _agent(raw: Raw) -> str:
    return f"sub-agent {_word(raw, 'agentPath')} {_word(raw, 'kind')}".rstrip()


def _sleep(raw: Raw) -> str:
    return f"waited {raw.get('durationMs', '?')} ms"


_LINES: Final[Mapping[str, Callable[[Raw], str]]] = {
    "collabAgentToolCall": _agent_tool,
    "contextCompaction": lambda _: "the context was compacted",
    "dynamicToolCall": lambda raw: f"tool {_word(raw, 'tool')}",
    "enteredReviewMode": lambda raw: f"review of {_word(raw, 'review')}",
    "exitedReviewMode": lambda raw: f"review: {_word(raw, 'review')}",
    "functionCallOutput": lambda raw: f"result of {_word(raw, 'name')}",
    "hookPrompt": lambda _: "a hook added to the prompt",
    "imageGeneration": lambda _: "an image was made",
    "imageView": lambda raw: f"looked at {_word(raw, 'path')}",
    "mcpToolCall": _mcp_tool,
    "plan": lambda raw: f"plan: {_word(raw, 'text')}",
    "sleep": _sleep,
    "subAgentActivity": _agent,
    "webSearch": lambda raw: f"searched the web: {_word(raw, 'query')}",
}
