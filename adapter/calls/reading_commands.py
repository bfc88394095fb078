"""Requests that read threads and turns, and change nothing. Sans-IO. PROTOCOL.md section 4."""

from collections.abc import Mapping, Sequence
from typing import Final

from adapter.calls.commands import Command, command
from adapter.limits import QUEUE_SHOWN
from adapter.runtime.reader import ThreadQuery
from generated.codex import (
    SortDirection,
    ThreadListParams,
    ThreadQueueListParams,
    ThreadReadParams,
    ThreadSortKey,
    ThreadSourceKind,
    ThreadTurnsListParams,
    TurnItemsView,
)

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
    return command("thread/list", params)


def read_thread(thread_id: str) -> Command:
    """One thread without its turns."""
    params: ThreadReadParams = {"threadId": thread_id}
    return command("thread/read", params)


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
    return command("thread/turns/list", params)


def newest_turn(thread_id: str) -> Command:
    """The newest turn with what shows whether it is empty."""
    return list_turns(thread_id, cursor=None, limit=1, order="desc", items="summary")


def list_queue(thread_id: str) -> Command:
    """What others queued at Codex; the first page is enough to refuse."""
    params: ThreadQueueListParams = {"threadId": thread_id, "limit": QUEUE_SHOWN}
    return command("thread/queue/list", params)


def loaded_threads() -> Command:
    """What the process that is asked has loaded."""
    return command("thread/loaded/list", {})
