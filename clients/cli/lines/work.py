"""Tool calls, searches, pictures, agents and reviews as lines. Sans-IO."""

from collections.abc import Sequence
from typing import Final

from clients.cli.clock import duration
from clients.cli.lines.layout import (
    INDENT,
    WORTH_SAYING_MS,
    label,
    labelled,
    quoted,
    some_of,
    unfinished,
)
from clients.cli.plain import block, one_line, visible
from clients.cli.style import Line, Span, bold, dim, line
from transport.protocol.events import TurnPlan
from transport.protocol.items import (
    Image,
    ItemStatus,
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

COMPACTED: Final = "the context was compacted: the model goes on with a summary"

_ARGUMENTS: Final = 200  # characters of a call's arguments, unless all is wanted

_PLAN_MARKS: Final = {"completed": "x", "inProgress": ">"}
_SPAWN: Final = SubagentAction.SPAWN
_ACTIONS: Final = {
    SubagentAction.SPAWN: "started",
    SubagentAction.MESSAGE: "told",
    SubagentAction.RESUME: "resumed",
    SubagentAction.WAIT: "waited for",
    SubagentAction.INTERRUPT: "stopped",
    SubagentAction.CLOSE: "closed",
    SubagentAction.LIST: "listed",
    SubagentAction.DONE: "finished",
}


def tool_line(item: ToolCall, *, full: bool = False) -> Line:
    """Return the call itself, on one line."""
    name = f"{item.server}.{item.tool}" if item.server else item.tool
    given = visible(item.arguments or "").replace("\n", " ")
    if not full and len(given) > _ARGUMENTS:
        given = given[: _ARGUMENTS - 1] + "…"
    shown = [] if given in {"", "{}", "null"} else [f" {given}"]
    return line(label("tool"), bold(visible(name)), *shown)


def tool_result(item: ToolCall, *, full: bool = False) -> list[Line]:
    """Return what the tool said: its first lines, and how the call ended."""
    rows = _rows(item.result)
    found = some_of(rows, full=full, tail=0)
    found += quoted("\n".join(_rows(item.error))) if item.error else []
    end = _tool_end(item)
    return [*found, line(INDENT, end)] if end is not None else found


def _rows(text: str | None) -> Sequence[str]:
    shown = block(text or "").strip("\n")
    return shown.split("\n") if shown else []


def _tool_end(item: ToolCall) -> Span | None:
    """Return how it ended, unless it simply did."""
    long = item.duration_ms is not None and item.duration_ms >= WORTH_SAYING_MS
    took = f", {duration(item.duration_ms or 0)}" if long else ""
    match item.status:
        case ItemStatus.COMPLETED:
            return dim(f"done{took}") if took else None
        case ItemStatus.IN_PROGRESS:
            return Span("still running", "warn")
        case _:
            return Span(f"{item.status}{took}", "bad")


def search_lines(item: WebSearch) -> list[Line]:
    """Return what was looked for on the web, or which page was read."""
    query, url = one_line(item.query, 300), visible(item.url or "")
    if url and query and query != item.url:
        text = f"looked for “{query}” in {url}"
    elif url:
        text = f"opened {url}"
    else:
        text = f"searched: {query}"
    return [*labelled(label("web"), text), *unfinished(item)]


def image_lines(item: Image) -> list[Line]:
    """Return where a picture lies that the model saw or made."""
    made = "tried to make" if item.error else "made"
    verb = "looked at" if item.origin is ImageOrigin.VIEWED else made
    place = visible(item.path) if item.path else "a picture"
    fetch = f"  {item.blob_id}" if item.blob_id else ""
    rows = [line(label("image"), f"{verb} {place}", dim(visible(fetch)))]
    if item.prompt:
        rows.append(line(INDENT, dim(one_line(item.prompt, 300))))
    if item.error:
        rows.append(line(INDENT, Span(f"failed: {one_line(item.error)}", "bad")))
    return rows if item.error else [*rows, *unfinished(item)]


def agent_lines(item: Subagent) -> list[Line]:
    """Return what was done with sub-agents; each is named by its thread."""
    verb = _ACTIONS.get(item.action, "used")
    if item.agents:
        head = line(label("agent"), f"{verb} {len(item.agents)} agents")
        return [head, *(_agent_line(one) for one in item.agents)]
    about = item.name or item.thread_id or item.prompt or item.action is _SPAWN
    name = f" {visible(item.name)}" if item.name else "" if about else " its agents"
    known = item.state is not SubagentState.UNKNOWN
    where = f"  thread {item.thread_id}" if item.thread_id else ""
    rows = [
        line(
            label("agent"),
            f"{verb}{name}",
            dim(f" ({item.state})" if known else ""),
            Span(where, "name"),
        )
    ]
    if item.prompt:
        rows.append(line(INDENT, dim(one_line(item.prompt, 200))))
    return [*rows, *unfinished(item)]


def _agent_line(agent: AgentRef) -> Line:
    said = f": {one_line(agent.message, 200)}" if agent.message else ""
    return line(INDENT, Span(agent.thread_id, "name"), f" {_state(agent.state)}{said}")


def _state(state: SubagentState) -> str:
    return "state not known" if state is SubagentState.UNKNOWN else str(state)


def plan_lines(plan: TurnPlan) -> list[Line]:
    """Return the list of steps that the model ticks off."""
    steps = [
        line(INDENT, f"[{_PLAN_MARKS.get(step.status, ' ')}] {one_line(step.text)}")
        for step in plan.steps
    ]
    why = one_line(plan.explanation or "")
    return [line(label("plan"), bold(why)), *steps]


def review_lines(item: Review) -> list[Line]:
    """Return the beginning of a review, or its findings."""
    text = block(item.text or "").strip("\n")
    if item.phase is ReviewPhase.ENTERED:
        return labelled(label("review"), f"of {text or 'the changes'}")
    return labelled(label("review"), text or "no findings")
