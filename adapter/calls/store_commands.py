"""Requests about what the store holds, and acts on threads that are not loaded. Sans-IO.

PROTOCOL.md section 4; see `adapter/calls/commands.py` for the others.
"""

from typing import Final, cast

from adapter.calls.commands import ORDERS, SOURCES, Command
from adapter.calls.jsonrpc import Json
from adapter.limits import FILES_END_S, FILES_S, LIST_S, OTHER_S, READ_S
from generated.codex import (
    FuzzyFileSearchParams,
    ThreadArchiveParams,
    ThreadDeleteParams,
    ThreadForkParams,
    ThreadItemsListParams,
    ThreadItemsReadParams,
    ThreadSearchOccurrencesParams,
    ThreadSearchParams,
    ThreadSetNameParams,
    ThreadUnarchiveParams,
)

LIST_ITEMS: Final = "thread/items/list"
SEARCH: Final = "thread/search"
FIND: Final = "thread/searchOccurrences"
FIND_FILES: Final = "fuzzyFileSearch"


def _command(method: str, params: object, *, timeout_s: float) -> Command:
    return Command(method=method, params=cast("Json", params), timeout_s=timeout_s)


def list_items(
    thread_id: str, *, turn_id: str | None, cursor: str | None, limit: int, order: str
) -> Command:
    """A page of items."""
    params: ThreadItemsListParams = {
        "threadId": thread_id,
        "limit": limit,
        "sortDirection": ORDERS[order],
    }
    if turn_id is not None:
        params["turnId"] = turn_id
    if cursor is not None:
        params["cursor"] = cursor
    return _command(LIST_ITEMS, params, timeout_s=READ_S)


def read_item(thread_id: str, turn_id: str, item_id: str) -> Command:
    """One item; none where it is not there."""
    params: ThreadItemsReadParams = {
        "threadId": thread_id,
        "turnId": turn_id,
        "itemIds": [item_id],
    }
    return _command("thread/items/read", params, timeout_s=READ_S)


def search(query: str, *, archived: bool, cursor: str | None, limit: int) -> Command:
    """Threads in which the words occur; Codex looks through all of them."""
    params: ThreadSearchParams = {
        "searchTerm": query,
        "archived": archived,
        "limit": limit,
        "sourceKinds": list(SOURCES),
    }
    if cursor is not None:
        params["cursor"] = cursor
    return _command(SEARCH, params, timeout_s=LIST_S)


def find(thread_id: str, query: str, *, cursor: str | None, limit: int) -> Command:
    """Places in one thread where the words occur."""
    params: ThreadSearchOccurrencesParams = {
        "threadId": thread_id,
        "searchTerm": query,
        "limit": limit,
    }
    if cursor is not None:
        params["cursor"] = cursor
    return _command(FIND, params, timeout_s=LIST_S)


def find_files(query: str, folder: str, *, token: str) -> Command:
    """Files below a folder. A later request with the same token ends this one."""
    params: FuzzyFileSearchParams = {
        "query": query,
        "roots": [folder],
        "cancellationToken": token,
    }
    return _command(FIND_FILES, params, timeout_s=FILES_S)


def end_search(token: str) -> Command:
    """Nothing is looked for nowhere: only to end the search that has this token."""
    params: FuzzyFileSearchParams = {
        "query": "",
        "roots": [],
        "cancellationToken": token,
    }
    return _command(FIND_FILES, params, timeout_s=FILES_END_S)


def rename(thread_id: str, name: str) -> Command:
    """The title, of any thread that is not archived."""
    params: ThreadSetNameParams = {"threadId": thread_id, "name": name}
    return _command("thread/name/set", params, timeout_s=OTHER_S)


def archive(thread_id: str) -> Command:
    """Out of the list. Codex would interrupt what runs in it."""
    params: ThreadArchiveParams = {"threadId": thread_id}
    return _command("thread/archive", params, timeout_s=OTHER_S)


def unarchive(thread_id: str) -> Command:
    """Back into the list."""
    params: ThreadUnarchiveParams = {"threadId": thread_id}
    return _command("thread/unarchive", params, timeout_s=OTHER_S)


def delete(thread_id: str) -> Command:
    """For good."""
    params: ThreadDeleteParams = {"threadId": thread_id}
    return _command("thread/delete", params, timeout_s=OTHER_S)


def fork(thread_id: str, *, through: str | None, before: str | None) -> Command:
    """A copy, loaded. Its settings are those of the source: none of ours."""
    params: ThreadForkParams = {"threadId": thread_id, "excludeTurns": True}
    if through is not None:
        params["lastTurnId"] = through
    if before is not None:
        params["beforeTurnId"] = before
    return _command("thread/fork", params, timeout_s=OTHER_S)
