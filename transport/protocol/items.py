"""Items: what happens inside a turn, one model a kind. Sans-IO. PROTOCOL.md section 5.

An item is at most 256 KiB packed: each text keeps its first 48 KiB and its last
16 KiB and is then named in `truncated`; true sizes stay beside it.
"""

from typing import Annotated, Any, Final, Literal, cast

from pydantic import Discriminator, Tag, model_validator

from transport.protocol.base import OpenEnum, WireModel
from transport.protocol.item_base import ItemBase, ItemStatus
from transport.protocol.work_items import (
    Compaction,
    Image,
    Plan,
    Review,
    Subagent,
    ToolCall,
    WebSearch,
)

__all__ = [
    "AgentMessage",
    "ChangeKind",
    "Citation",
    "Command",
    "CommandAction",
    "Compaction",
    "FileChange",
    "FileDiff",
    "Image",
    "Item",
    "ItemBase",
    "ItemStatus",
    "OtherItem",
    "Plan",
    "Reasoning",
    "Review",
    "Subagent",
    "ToolCall",
    "UserMessage",
    "WebSearch",
]


class UserMessage(ItemBase):
    """What a person (or a program in their name) wrote."""

    kind: Literal["userMessage"] = "userMessage"
    text: str
    attachments: list[str] = []
    client_key: str | None = None


class Citation(WireModel):
    """A file that a message draws on; lines are counted from 1."""

    path: str
    note: str | None = None
    line_start: int | None = None
    line_end: int | None = None


class AgentMessage(ItemBase):
    """What the model wrote for the person.

    `delivery` `async`: it came beside the answer, and the turn does not wait. Questions in
    it are part of the text; the next message of the person answers them.
    """

    kind: Literal["agentMessage"] = "agentMessage"
    text: str
    phase: str | None = None
    delivery: str | None = None
    citations: list[Citation] | None = None


class Reasoning(ItemBase):
    """The model's reasoning: summary parts, and the raw text where Codex gives it."""

    kind: Literal["reasoning"] = "reasoning"
    summary: list[str] = []
    text: str | None = None


class CommandAction(WireModel):
    """What Codex thinks that a command does (`read`, `search`, `listFiles`, `unknown`)."""

    type: str
    command: str | None = None
    path: str | None = None


class Command(ItemBase):
    """A command that Codex ran or asks to run. `output_bytes` is the true size."""

    kind: Literal["command"] = "command"
    command: str
    cwd: str
    exit_code: int | None = None
    duration_ms: int | None = None
    output: str = ""
    output_bytes: int = 0
    actions: list[CommandAction] = []


class ChangeKind(OpenEnum):
    """What happened to a file."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"
    MOVE = "move"
    OTHER = "other"


class FileDiff(WireModel):
    """One file of a change. `moved_to` only for `move`."""

    path: str
    change: ChangeKind
    diff: str
    added: int
    removed: int
    moved_to: str | None = None


class FileChange(ItemBase):
    """A patch: at most 200 files are listed, `files` is the true count."""

    kind: Literal["fileChange"] = "fileChange"
    changes: list[FileDiff] = []
    files: int = 0


class OtherItem(ItemBase):
    """A type that this version does not map. `summary` is one line for a person.

    A client reads a kind of a newer Agent as this, with the kind as `source_type`.
    """

    kind: Literal["other"] = "other"
    source_type: str = ""
    summary: str = ""

    @model_validator(mode="before")
    @classmethod
    def _read_newer_kind(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        fields = cast("dict[str, object]", value)
        kind = fields.get("kind", "other")
        if kind == "other":
            return fields
        return {**fields, "kind": "other", "sourceType": str(kind)}


_KINDS: Final = frozenset(
    {
        "userMessage",
        "agentMessage",
        "reasoning",
        "command",
        "fileChange",
        "toolCall",
        "webSearch",
        "plan",
        "image",
        "subagent",
        "review",
        "compaction",
    }
)


def _tag(value: Any) -> str:
    if isinstance(value, dict):
        kind = cast("dict[str, object]", value).get("kind")
    else:
        kind = getattr(value, "kind", None)
    return kind if isinstance(kind, str) and kind in _KINDS else "other"


Item = Annotated[
    Annotated[UserMessage, Tag("userMessage")]
    | Annotated[AgentMessage, Tag("agentMessage")]
    | Annotated[Reasoning, Tag("reasoning")]
    | Annotated[Command, Tag("command")]
    | Annotated[FileChange, Tag("fileChange")]
    | Annotated[ToolCall, Tag("toolCall")]
    | Annotated[WebSearch, Tag("webSearch")]
    | Annotated[Plan, Tag("plan")]
    | Annotated[Image, Tag("image")]
    | Annotated[Subagent, Tag("subagent")]
    | Annotated[Review, Tag("review")]
    | Annotated[Compaction, Tag("compaction")]
    | Annotated[OtherItem, Tag("other")],
    Discriminator(_tag),
]
