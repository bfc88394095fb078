"""v2 call → Codex request, one function a call; deadlines by table. Sans-IO.

PROTOCOL.md section 4. What a client left out is left out here too: no default model,
sandbox, provider or policy of ours ever reaches a thread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from adapter.calls.inputs import user_inputs
from adapter.calls.jsonrpc import Json
from adapter.limits import (
    LIST_S,
    OTHER_S,
    PROBE_S,
    QUEUE_SHOWN,
    READ_S,
    RESUME_S,
)
from adapter.runtime.acts import InputPart
from adapter.runtime.reader import ThreadQuery
from adapter.runtime.threads import NO_WISHES, NewThread, Wishes
from generated.codex import (
    AskForApproval,
    CollaborationMode,
    ModeKind,
    ReviewStartParams,
    ReviewTarget,
    SandboxMode,
    SandboxPolicy,
    SortDirection,
    ThreadBackgroundTerminalsCleanParams,
    ThreadBackgroundTerminalsListParams,
    ThreadBackgroundTerminalsTerminateParams,
    ThreadCompactStartParams,
    ThreadGoalClearParams,
    ThreadGoalGetParams,
    ThreadGoalSetParams,
    ThreadListParams,
    ThreadQueueListParams,
    ThreadReadParams,
    ThreadResumeParams,
    ThreadRevertParams,
    ThreadSettingsUpdateParams,
    ThreadSortKey,
    ThreadSourceKind,
    ThreadStartParams,
    ThreadTurnsListParams,
    TurnInterruptParams,
    TurnItemsView,
    TurnStartParams,
    TurnSteerParams,
)

DEADLINES: Final[Mapping[str, float]] = {
    "thread/list": LIST_S,
    "thread/read": READ_S,
    "thread/turns/list": READ_S,
    "thread/queue/list": READ_S,
    "thread/goal/get": READ_S,
    "thread/loaded/list": PROBE_S,
    "thread/resume": RESUME_S,
    "thread/start": OTHER_S,
    "thread/name/set": OTHER_S,
    "thread/goal/set": OTHER_S,
    "thread/goal/clear": OTHER_S,
    "thread/settings/update": OTHER_S,
    "thread/compact/start": OTHER_S,
    "thread/revert": RESUME_S,  # Codex loads the thread anew for it
    "review/start": OTHER_S,
    "thread/backgroundTerminals/list": READ_S,
    "thread/backgroundTerminals/terminate": OTHER_S,
    "thread/backgroundTerminals/clean": OTHER_S,
    "turn/start": OTHER_S,
    "turn/steer": OTHER_S,
    "turn/interrupt": OTHER_S,
}
"""Every method that we call but initialize, in seconds."""

SOURCES: Final[Sequence[ThreadSourceKind]] = ("cli", "vscode", "appServer")
"""Interactive ones; threads of an app-server say vscode or appServer by version."""

SUB_AGENTS: Final[Sequence[ThreadSourceKind]] = (
    "subAgent",
    "subAgentReview",
    "subAgentCompact",
    "subAgentThreadSpawn",
    "subAgentOther",
)
SORT_KEYS: Final[Mapping[str, ThreadSortKey]] = {
    "updatedAt": "updated_at",
    "createdAt": "created_at",
}
ITEM_VIEWS: Final[Mapping[str, TurnItemsView]] = {
    "none": "notLoaded",
    "summary": "summary",
    "full": "full",
}
ORDERS: Final[Mapping[str, SortDirection]] = {"desc": "desc", "asc": "asc"}
SANDBOXES: Final[Mapping[str, SandboxMode]] = {
    "read-only": "read-only",
    "workspace-write": "workspace-write",
    "danger-full-access": "danger-full-access",
}
POLICIES: Final[Mapping[str, AskForApproval]] = {
    "untrusted": "untrusted",
    "on-request": "on-request",
    "never": "never",
}
MODES: Final[Mapping[str, ModeKind]] = {"default": "default", "plan": "plan"}
SANDBOX_POLICIES: Final[Mapping[str, SandboxPolicy]] = {
    "read-only": {"type": "readOnly"},
    "workspace-write": {"type": "workspaceWrite"},
    "danger-full-access": {"type": "dangerFullAccess"},
}
"""A loaded thread takes no mode by name. What a policy leaves out is narrow: no network,
no folder but the thread's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One request to Codex."""

    method: str
    params: Json
    timeout_s: float


def _command(method: str, params: object, *, timeout_s: float | None = None) -> Command:
    return Command(
        method=method,
        params=cast("Json", params),
        timeout_s=DEADLINES[method] if timeout_s is None else timeout_s,
    )


def list_threads(query: ThreadQuery, *, state_db: bool) -> Command:
    """All providers; `state_db`: do not scan (and repair) the rollouts."""
    params: ThreadListParams = {
        "modelProviders": [],  # empty: every provider
        "sourceKinds": list(SUB_AGENTS if query.parent_id else SOURCES),
        "sortKey": SORT_KEYS[query.sort],
        "sortDirection": "desc",
        "archived": query.archived,
        "limit": query.limit,
    }
    if state_db:
        params["useStateDbOnly"] = True
    if query.cwd is not None:
        params["cwd"] = query.cwd
    if query.query is not None:
        params["searchTerm"] = query.query
    if query.parent_id is not None:
        params["parentThreadId"] = query.parent_id
    if query.cursor is not None:
        params["cursor"] = query.cursor
    return _command("thread/list", params)


def read_thread(thread_id: str) -> Command:
    """One thread without its turns."""
    params: ThreadReadParams = {"threadId": thread_id}
    return _command("thread/read", params)


def list_turns(
    thread_id: str, *, cursor: str | None, limit: int, order: str, items: str
) -> Command:
    """A page of turns."""
    params: ThreadTurnsListParams = {
        "threadId": thread_id,
        "limit": limit,
        "sortDirection": ORDERS[order],
        "itemsView": ITEM_VIEWS[items],
    }
    if cursor is not None:
        params["cursor"] = cursor
    return _command("thread/turns/list", params)


def newest_turn(thread_id: str) -> Command:
    """The newest turn with what shows whether it is empty."""
    return list_turns(thread_id, cursor=None, limit=1, order="desc", items="summary")


def list_queue(thread_id: str) -> Command:
    """What others queued at Codex; the first page is enough to refuse."""
    params: ThreadQueueListParams = {"threadId": thread_id, "limit": QUEUE_SHOWN}
    return _command("thread/queue/list", params)


def get_goal(thread_id: str, *, timeout_s: float | None = None) -> Command:
    """The thread's goal."""
    params: ThreadGoalGetParams = {"threadId": thread_id}
    return _command("thread/goal/get", params, timeout_s=timeout_s)


def set_goal(thread_id: str, objective: str) -> Command:
    """Pursue something: in a loaded thread turns start by themselves."""
    params: ThreadGoalSetParams = {
        "threadId": thread_id,
        "objective": objective,
        "status": "active",
    }
    return _command("thread/goal/set", params)


def clear_goal(thread_id: str) -> Command:
    """Have no goal any more."""
    params: ThreadGoalClearParams = {"threadId": thread_id}
    return _command("thread/goal/clear", params)


def pause_goal(thread_id: str, *, timeout_s: float | None = None) -> Command:
    """Start no further turn for the goal."""
    params: ThreadGoalSetParams = {"threadId": thread_id, "status": "paused"}
    return _command("thread/goal/set", params, timeout_s=timeout_s)


def loaded_threads() -> Command:
    """What the process that is asked has loaded."""
    return _command("thread/loaded/list", {})


def resume(thread_id: str) -> Command:
    """Load a thread. Its turns are read apart: one line of 9 MB serves nobody."""
    params: ThreadResumeParams = {"threadId": thread_id, "excludeTurns": True}
    return _command("thread/resume", params)


def start_thread(new: NewThread) -> Command:
    """Make a thread. Codex has no `effort` here: it is the config key of that name."""
    params: ThreadStartParams = {"cwd": new.cwd}
    if new.model is not None:
        params["model"] = new.model
    if new.effort is not None:
        params["config"] = {"model_reasoning_effort": new.effort}
    if new.sandbox is not None:
        params["sandbox"] = SANDBOXES[new.sandbox]
    if new.approval_policy is not None:
        params["approvalPolicy"] = POLICIES[new.approval_policy]
    return _command("thread/start", params)


def name_thread(thread_id: str, name: str) -> Command:
    """Give a thread its title."""
    return _command("thread/name/set", {"threadId": thread_id, "name": name})


def start_turn(
    thread_id: str,
    parts: Sequence[InputPart],
    client_key: str,
    *,
    wishes: Wishes = NO_WISHES,
    collaboration: CollaborationMode | None = None,
    output_schema: Mapping[str, Any] | None = None,
) -> Command:
    """Start a turn; the key comes back in its userMessage."""
    params: TurnStartParams = {
        "threadId": thread_id,
        "input": user_inputs(parts),
        "clientUserMessageId": client_key,
    }
    if wishes.model is not None:
        params["model"] = wishes.model
    if wishes.effort is not None:
        params["effort"] = wishes.effort
    if wishes.cwd is not None:
        params["cwd"] = wishes.cwd
    if collaboration is not None:
        params["collaborationMode"] = collaboration
    if output_schema is not None:
        params["outputSchema"] = dict(output_schema)
    return _command("turn/start", params)


def steer(
    thread_id: str, turn_id: str, parts: Sequence[InputPart], client_key: str
) -> Command:
    """Put more words into exactly this turn."""
    params: TurnSteerParams = {
        "threadId": thread_id,
        "expectedTurnId": turn_id,
        "input": user_inputs(parts),
        "clientUserMessageId": client_key,
    }
    return _command("turn/steer", params)


def compact(thread_id: str) -> Command:
    """Put a summary in the place of what the model has read so far.

    Codex interrupts whatever runs in the thread for it.
    """
    params: ThreadCompactStartParams = {"threadId": thread_id}
    return _command("thread/compact/start", params)


def revert(thread_id: str, before: str) -> Command:
    """Take this turn back and all behind it. Codex interrupts whatever runs."""
    params: ThreadRevertParams = {"threadId": thread_id, "beforeTurnId": before}
    return _command("thread/revert", params)


def review(thread_id: str, target: ReviewTarget) -> Command:
    """Have changes reviewed, in this very thread. Codex interrupts whatever runs."""
    params: ReviewStartParams = {
        "threadId": thread_id,
        "target": target,
        "delivery": "inline",
    }
    return _command("review/start", params)


def collaboration(mode: str, *, model: str, effort: str | None) -> CollaborationMode:
    """A mode with Codex's own instructions for it. It names its model and effort: they
    are the thread's, so that it changes neither."""
    return {
        "mode": MODES[mode],
        "settings": {
            "model": model,
            "reasoning_effort": effort,
            "developer_instructions": None,
        },
    }


def update_settings(
    thread_id: str, wishes: Wishes, *, collaboration: CollaborationMode | None = None
) -> Command:
    """Change a loaded thread's settings for later turns."""
    params: ThreadSettingsUpdateParams = {"threadId": thread_id}
    if wishes.model is not None:
        params["model"] = wishes.model
    if wishes.effort is not None:
        params["effort"] = wishes.effort
    if wishes.cwd is not None:
        params["cwd"] = wishes.cwd
    if wishes.sandbox is not None:
        params["sandboxPolicy"] = SANDBOX_POLICIES[wishes.sandbox]
    if wishes.approval_policy is not None:
        params["approvalPolicy"] = POLICIES[wishes.approval_policy]
    if collaboration is not None:
        params["collaborationMode"] = collaboration
    return _command("thread/settings/update", params)


def list_background(thread_id: str) -> Command:
    """Commands that outlived their turn."""
    params: ThreadBackgroundTerminalsListParams = {"threadId": thread_id}
    return _command("thread/backgroundTerminals/list", params)


def stop_background(thread_id: str, process_id: str) -> Command:
    """End one of them."""
    params: ThreadBackgroundTerminalsTerminateParams = {
        "threadId": thread_id,
        "processId": process_id,
    }
    return _command("thread/backgroundTerminals/terminate", params)


def stop_all_background(thread_id: str) -> Command:
    """End all of them."""
    params: ThreadBackgroundTerminalsCleanParams = {"threadId": thread_id}
    return _command("thread/backgroundTerminals/clean", params)


def interrupt(thread_id: str, turn_id: str) -> Command:
    """Stop exactly this turn.

    Raises: ValueError: with an empty id Codex would stop whatever runs.
    """
    if not turn_id:
        raise ValueError("an interrupt names its turn")
    params: TurnInterruptParams = {"threadId": thread_id, "turnId": turn_id}
    return _command("turn/interrupt", params)
