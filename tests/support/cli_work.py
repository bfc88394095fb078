"""v2 items of what a turn does beside talking, for what the command line shows."""

from transport.protocol.items import (
    AgentMessage,
    Citation,
    Compaction,
    Image,
    Item,
    ItemStatus,
    Plan,
    Review,
    Subagent,
    ToolCall,
    WebSearch,
)
from transport.protocol.work_items import (
    AgentRef,
    ImageOrigin,
    ReviewPhase,
    SubagentAction,
    SubagentState,
)

CHILD = "019ad9a0-3333-7000-8000-000000000003"
DONE = ItemStatus.COMPLETED
FAILED = ItemStatus.FAILED
RUNNING = ItemStatus.IN_PROGRESS


def tool(
    status: ItemStatus = DONE,
    *,
    result: str | None = "one.md\ntwo.md\nthree.md\nfour.md\nfive.md\nsix.md",
    error: str | None = None,
    arguments: str = '{"path": "/home/ann/shop"}',
) -> ToolCall:
    """Return a call of an MCP server's tool."""
    return ToolCall(
        id="item-t",
        turn_id="turn-1",
        status=status,
        server="files",
        tool="list",
        arguments=arguments,
        result=result,
        error=error,
        duration_ms=None if status is RUNNING else 1_200,
    )


def search(query: str, action: str, url: str | None = None) -> WebSearch:
    """Return a web search, or a page that was read."""
    return WebSearch(
        id="item-w", turn_id="turn-1", status=DONE, query=query, action=action, url=url
    )


def plan(text: str = "# Plan\n- look\n- change", status: ItemStatus = DONE) -> Plan:
    """Return a plan of plan mode."""
    return Plan(id="item-p", turn_id="turn-1", status=status, text=text)


def spawned() -> Subagent:
    """Return the item that says that a sub-agent was started."""
    return Subagent(
        id="item-a",
        turn_id="turn-1",
        status=DONE,
        action=SubagentAction.SPAWN,
        thread_id=CHILD,
        name="/root/bee",
        state=SubagentState.RUNNING,
        prompt="Count the files.",
    )


def waited() -> Subagent:
    """Return a wait for two sub-agents."""
    done, running = SubagentState.COMPLETED, SubagentState.RUNNING
    return Subagent(
        id="item-b",
        turn_id="turn-1",
        status=DONE,
        action=SubagentAction.WAIT,
        state=running,
        agents=[
            AgentRef(thread_id=CHILD, state=done, message="There are seven."),
            AgentRef(thread_id="019ad9a0-4444", state=running),
        ],
    )


def waited_for_all() -> Subagent:
    """Return a wait that names nobody, as newer agents are waited for."""
    unknown = SubagentState.UNKNOWN
    return waited().model_copy(update={"agents": None, "state": unknown})


def image(origin: ImageOrigin, path: str | None, error: str | None = None) -> Image:
    """Return a picture."""
    return Image(
        id="item-i",
        turn_id="turn-1",
        status=FAILED if error else DONE,
        origin=origin,
        path=path,
        prompt="a loaf of rye" if origin is ImageOrigin.MADE else None,
        error=error,
    )


def review(phase: ReviewPhase, text: str) -> Review:
    """Return the beginning or the end of a review."""
    return Review(id="item-r", turn_id="turn-1", status=DONE, phase=phase, text=text)


def aside() -> AgentMessage:
    """Return a message that does not wait, which draws on a note."""
    cited = Citation(path="notes.md", note="the plan", line_start=3, line_end=9)
    return AgentMessage(
        id="item-m",
        turn_id="turn-1",
        status=DONE,
        text="Which one? (red / blue)",
        delivery="async",
        citations=[cited],
    )


def every_kind() -> list[Item]:
    """Return one of each, in an order that a turn could have."""
    return [
        review(ReviewPhase.ENTERED, "current changes"),
        tool(),
        tool(FAILED, result=None, error="tool call error\nTransport closed"),
        tool(result="ok", arguments="{}").model_copy(update={"server": None}),
        search("rye bread", "search"),
        search("", "openPage", "https://bread.example.org/rye"),
        search("crust", "findInPage", "https://bread.example.org/rye"),
        plan(),
        image(ImageOrigin.VIEWED, "/home/ann/shop/logo.png"),
        image(ImageOrigin.MADE, "/home/ann/shop/rye.png"),
        image(ImageOrigin.MADE, None, "usageLimitExceeded"),
        spawned(),
        waited(),
        waited_for_all(),
        aside(),
        Compaction(id="item-c", turn_id="turn-1", status=DONE),
        review(ReviewPhase.EXITED, "Two findings:\n- a\n- b"),
    ]
