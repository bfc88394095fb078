"""Handlers of what threads hold and of acts on whole threads. Trio shell, no decisions.

PROTOCOL.md section 4; the table of all is in `agent/sessions/handlers.py`.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from agent.access.scopes import Caller
from agent.door import Door
from agent.mutations.thread_wishes import Archive, Delete, Rename, Unarchive, Wish
from agent.sessions.router import Call, Handler
from transport.protocol import methods
from transport.protocol.base import ThreadMutationParams, WireModel
from transport.protocol.contents import ItemListParams, ItemListResult

P = TypeVar("P")
A = TypeVar("A", bound=ThreadMutationParams)
R = TypeVar("R", bound=WireModel)


def content_handlers(door: Door) -> dict[str, Handler]:
    """Return the handler of each method, by its name."""
    contents = door.contents

    def wishing(wish: Wish[A, R]) -> Handler:
        async def handler(call: Call, params: A) -> WireModel:
            return await door.thread_acts.run(call.rights.caller, wish, params)

        return handler

    async def item_list(call: Call, params: ItemListParams) -> ItemListResult:
        result = await contents.item_list(call.rights.caller, params)
        door.pictures.learn(params.thread_id, result.items)
        return result

    return {
        methods.ITEM_LIST.name: item_list,
        methods.ITEM_OUTPUT.name: _for_caller(contents.item_output),
        methods.THREAD_DIFF.name: _for_caller(contents.thread_diff),
        methods.THREAD_SEARCH.name: _for_caller(contents.search),
        methods.THREAD_FIND.name: _for_caller(contents.find),
        methods.FILE_SEARCH.name: _for_caller(door.file_search.search),
        methods.THREAD_FORK.name: _for_caller(door.thread_fork.run),
        methods.THREAD_COMPACT.name: _for_caller(door.admission.compact),
        methods.THREAD_REVERT.name: _for_caller(door.admission.revert),
        methods.REVIEW_START.name: _for_caller(door.admission.review),
        methods.THREAD_RENAME.name: wishing(Rename()),
        methods.THREAD_ARCHIVE.name: wishing(Archive()),
        methods.THREAD_UNARCHIVE.name: wishing(Unarchive()),
        methods.THREAD_DELETE.name: wishing(Delete()),
    }


def _for_caller(act: Callable[[Caller, P], Awaitable[WireModel]]) -> Handler:
    async def handler(call: Call, params: P) -> WireModel:
        return await act(call.rights.caller, params)

    return handler
