"""What a thread does with its sub-agents, as v2 items. Sans-IO. PROTOCOL.md section 5.

Codex has two forms of it: calls of agent tools (`collabAgentToolCall`), and an agent's
activity (`subAgentActivity`). What the agents do themselves comes under their own threads.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from adapter.limits import AGENTS
from adapter.shapes.item_frame import Cutter, Frame, base_of
from adapter.shapes.shapes import mapping, maybe_text, sequence, text, wire_id
from generated import codex
from transport.protocol.items import Item, ItemStatus, Subagent
from transport.protocol.work_items import AgentRef, SubagentAction, SubagentState

Raw = Mapping[str, Any]

_ACTIONS: Final[Mapping[str, SubagentAction]] = {
    "spawnAgent": SubagentAction.SPAWN,
    "sendInput": SubagentAction.MESSAGE,
    "sendMessage": SubagentAction.MESSAGE,
    "followupTask": SubagentAction.MESSAGE,
    "resumeAgent": SubagentAction.RESUME,
    "wait": SubagentAction.WAIT,
    "interruptAgent": SubagentAction.INTERRUPT,
    "closeAgent": SubagentAction.CLOSE,
    "listAgents": SubagentAction.LIST,
}
_ACTIVITIES: Final[Mapping[str, tuple[SubagentAction, SubagentState]]] = {
    "started": (SubagentAction.SPAWN, SubagentState.RUNNING),
    "interacted": (SubagentAction.MESSAGE, SubagentState.RUNNING),
    "interrupted": (SubagentAction.INTERRUPT, SubagentState.INTERRUPTED),
    "completed": (SubagentAction.DONE, SubagentState.COMPLETED),
}
_STATES: Final[Mapping[str, SubagentState]] = {
    "pendingInit": SubagentState.STARTING,
    "running": SubagentState.RUNNING,
    "interrupted": SubagentState.INTERRUPTED,
    "completed": SubagentState.COMPLETED,
    "errored": SubagentState.FAILED,
    "shutdown": SubagentState.CLOSED,
    "notFound": SubagentState.UNKNOWN,
}
_UNFINISHED_FIRST: Final[Sequence[SubagentState]] = (
    SubagentState.RUNNING,
    SubagentState.STARTING,
    SubagentState.FAILED,
    SubagentState.INTERRUPTED,
    SubagentState.COMPLETED,
    SubagentState.CLOSED,
)


def subagent_activity(raw: Raw, cutter: Cutter, frame: Frame) -> Item:
    """Something happened to one agent (`subAgentActivity`)."""
    item = cast("codex.ThreadItemSubAgentActivity", raw)
    unknown = (SubagentAction.OTHER, SubagentState.UNKNOWN)
    action, state = _ACTIVITIES.get(text(item["kind"]), unknown)
    name = maybe_text(item.get("agentPath"))
    shown = cutter("name", name, 1024) if name else None
    return Subagent(
        **base_of(raw, cutter, frame),
        action=action,
        thread_id=wire_id(item["agentThreadId"]),
        name=shown,
        state=state,
    )


def subagent_call(raw: Raw, cutter: Cutter, frame: Frame) -> Item:
    """A call of an agent tool (`collabAgentToolCall`), about any number of agents."""
    item = cast("codex.ThreadItemCollabAgentToolCall", raw)
    agents = _agents(item, cutter)
    prompt = maybe_text(item.get("prompt"))
    asked = cutter("prompt", prompt) if prompt else None
    base = base_of(raw, cutter, frame)
    return Subagent(
        **base,
        action=_ACTIONS.get(text(item["tool"]), SubagentAction.OTHER),
        thread_id=agents[0].thread_id if len(agents) == 1 else None,
        state=_state(agents, base["status"], spawns=item["tool"] == "spawnAgent"),
        prompt=asked,
        agents=agents if len(agents) > 1 else None,
    )


def _agents(
    item: "codex.ThreadItemCollabAgentToolCall", cutter: Cutter
) -> list[AgentRef]:
    """Return whom it is about; a wait names them by their states alone."""
    states = mapping(item.get("agentsStates") or {})
    named = [text(one) for one in sequence(item.get("receiverThreadIds"))]
    every = list(dict.fromkeys([*named, *states]))
    if len(every) > AGENTS:
        cutter.dropped.add("agents")
    return [_agent(one, states.get(one), cutter) for one in every[:AGENTS]]


def _agent(thread_id: str, raw: object, cutter: Cutter) -> AgentRef:
    told: Raw = mapping(raw) if raw else {}
    word, said = maybe_text(told.get("status")), maybe_text(told.get("message"))
    return AgentRef(
        thread_id=wire_id(thread_id),
        state=_STATES.get(word or "", SubagentState.UNKNOWN),
        message=cutter("agents", said, 4096) if said else None,
    )


def _state(
    agents: Sequence[AgentRef], status: ItemStatus, *, spawns: bool
) -> SubagentState:
    """Return how the least finished stands; only a spawn says something of no agent."""
    states = {agent.state for agent in agents}
    found = next((one for one in _UNFINISHED_FIRST if one in states), None)
    if found is not None:
        return found
    if spawns and status is ItemStatus.IN_PROGRESS:
        return SubagentState.STARTING
    failed = spawns and status is ItemStatus.FAILED
    return SubagentState.FAILED if failed else SubagentState.UNKNOWN
