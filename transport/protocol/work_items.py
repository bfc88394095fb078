"""Items of what a turn does beside talking, running commands and changing files. Sans-IO.

PROTOCOL.md section 5.
"""

from typing import Literal

from transport.protocol.base import OpenEnum, WireModel
from transport.protocol.item_base import ItemBase


class ToolCall(ItemBase):
    """A call of a tool: an MCP server's, or one that a client of Codex brought itself.

    `server` is absent for the latter. `arguments` is JSON as text; `result` is what the
    tool said, a picture or a resource named in brackets. A tool can fail with a result.
    """

    kind: Literal["toolCall"] = "toolCall"
    server: str | None = None
    tool: str
    arguments: str | None = None
    result: str | None = None
    error: str | None = None
    duration_ms: int | None = None


class WebSearch(ItemBase):
    """A search of the web, or a page that the model opened or looked through.

    `query`: what was looked for; `url`: the page, where one was opened. `action`:
    `search`, `openPage`, `findInPage`, or a newer word of Codex.
    """

    kind: Literal["webSearch"] = "webSearch"
    query: str
    action: str | None = None
    url: str | None = None


class Plan(ItemBase):
    """A plan that the model proposes in plan mode, as Markdown."""

    kind: Literal["plan"] = "plan"
    text: str


class ImageOrigin(OpenEnum):
    """Whether the model looked at a picture or made it."""

    VIEWED = "viewed"
    MADE = "made"
    OTHER = "other"


class Image(ItemBase):
    """A picture that the turn read or made. `path`: where it lies on the workstation.

    `blob_id`: it can be fetched by `blob/read`. `prompt`: what it was made from.
    """

    kind: Literal["image"] = "image"
    origin: ImageOrigin
    blob_id: str | None = None
    path: str | None = None
    prompt: str | None = None
    error: str | None = None


class SubagentAction(OpenEnum):
    """What is done with a sub-agent; `done`: it says that it has finished."""

    SPAWN = "spawn"
    MESSAGE = "message"
    RESUME = "resume"
    WAIT = "wait"
    INTERRUPT = "interrupt"
    CLOSE = "close"
    LIST = "list"
    DONE = "done"
    OTHER = "other"


class SubagentState(OpenEnum):
    """How a sub-agent stands, as its parent was told."""

    STARTING = "starting"
    RUNNING = "running"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    CLOSED = "closed"
    UNKNOWN = "unknown"
    OTHER = "other"


class AgentRef(WireModel):
    """One of the sub-agents that an item is about. `message`: what it said last."""

    thread_id: str
    state: SubagentState
    message: str | None = None


class Subagent(ItemBase):
    """Something that a thread does with its sub-agents, which are threads of their own.

    `thread_id` and `state` are those of the one that it is about; where it is about
    several (a wait), `agents` lists them, at most 100, and these two are absent and the
    state of the least finished. `prompt`: what the agent was told.
    """

    kind: Literal["subagent"] = "subagent"
    action: SubagentAction
    thread_id: str | None = None
    name: str | None = None
    state: SubagentState
    prompt: str | None = None
    agents: list[AgentRef] | None = None


class ReviewPhase(OpenEnum):
    """A review begins with one item and ends with another."""

    ENTERED = "entered"
    EXITED = "exited"
    OTHER = "other"


class Review(ItemBase):
    """The beginning of a review (`text`: of what), or its end (`text`: the findings)."""

    kind: Literal["review"] = "review"
    phase: ReviewPhase
    text: str | None = None


class Compaction(ItemBase):
    """The context was compacted: from here on the model knows a summary of it."""

    kind: Literal["compaction"] = "compaction"
