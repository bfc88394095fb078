"""Requests about what the store holds, and acts on threads that are not loaded. Sans-IO.

PROTOCOL.md section 4. The reader is asked, and for a new thread's title its writer.
"""

from typing import Final

from adapter.calls.commands import Command, command
from adapter.calls.reading_commands import ORDERS, SOURCES
from adapter.limits import FILES_END_S
from generated.codex import (
    FuzzyFileSearchParams,
    ThreadArchiveParams,
    ThreadDeleteParams,
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
    return command(LIST_ITEMS, params)


def read_item(thread_id: str, turn_id: str, item_id: str) -> Command:
    """One item; none where it is not there."""
    params: ThreadItemsReadParams = {
        "threadId": thread_id,
        "turnId": turn_id,
        "itemIds": [item_id],
    }
    return command("thread/items/read", params)


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
    return command(SEARCH, params)


def find(thread_id: str, query: str, *, cursor: str | None, limit: int) -> Command:
    """Places in one thread where the words occur."""
    params: ThreadSearchOccurrencesParams = {
        "threadId": thread_id,
        "searchTerm": query,
        "limit": limit,
    }
    if cursor is not None:
        params["cursor"] = cursor
    return command(FIND, params)


def find_files(query: str, folder: str, *, token: str) -> Command:
    """Files below a folder. A later request with the same token ends this one."""
    params: FuzzyFileSearchParams = {
        "query": query,
        "roots": [folder],
        "cancellationToken": token,
    }
    return command(FIND_FILES, params)


def end_search(token: str) -> Command:
    """Nothing is looked for nowhere: only to end the search that has this token."""
    params: FuzzyFileSearchParams = {
        "query": "",
        "roots": [],
        "cancellationToken": token,
    }
    return command(FIND_FILES, params, timeout_s=FILES_END_S)


def rename(thread_id: str, name: str) -> Command:
    """The title, of any thread that is not archived."""
    params: ThreadSetNameParams = {"threadId": thread_id, "name": name}
    return command("thread/name/set", params)


def archive(thread_id: str) -> Command:
    """Out of the list. Codex would interrupt what runs in it."""
    params: ThreadArchiveParams = {"threadId": thread_id}
    return command("thread/archive", params)


def unarchive(thread_id: str) -> Command:
    """Back into the list."""
    params: ThreadUnarchiveParams = {"threadId": thread_id}
    return command("thread/unarchive", params)


def delete(thread_id: str) -> Command:
    """For good."""
    params: ThreadDeleteParams = {"threadId": thread_id}
    return command("thread/delete", params)
