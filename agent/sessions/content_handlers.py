"""Handlers of what threads hold, and of files. Trio shell, no decisions.

PROTOCOL.md section 4; the table of all is in `agent/sessions/handlers.py`. Pictures of
what was read can be asked for from then on.
"""

from collections.abc import Iterator
from functools import partial

from agent.access.scopes import Caller
from agent.door import Door
from agent.sessions.rows import Row, for_caller
from transport.protocol import methods
from transport.protocol.contents import ItemListParams, ItemListResult
from transport.protocol.threads import ThreadReadParams, ThreadReadResult
from transport.protocol.turns import TurnListParams, TurnListResult


def content_handlers(door: Door) -> Iterator[Row]:
    """Return the rows of what threads hold, and of files."""
    contents = door.contents
    yield for_caller(methods.THREAD_LIST, door.reading.thread_list)
    yield for_caller(methods.THREAD_READ, partial(_thread_read, door))
    yield for_caller(methods.TURN_LIST, partial(_turn_list, door))
    yield for_caller(methods.ITEM_LIST, partial(_item_list, door))
    yield for_caller(methods.ITEM_OUTPUT, contents.item_output)
    yield for_caller(methods.THREAD_DIFF, contents.thread_diff)
    yield for_caller(methods.THREAD_SEARCH, door.words.search)
    yield for_caller(methods.THREAD_FIND, door.words.find)
    yield for_caller(methods.FILE_SEARCH, door.file_search.search)
    yield for_caller(methods.BLOB_BEGIN, door.uploads.begin)
    yield for_caller(methods.BLOB_CHUNK, door.uploads.chunk)
    yield for_caller(methods.BLOB_COMMIT, door.uploads.commit)
    yield for_caller(methods.BLOB_READ, door.pictures.read)


async def _thread_read(
    door: Door, caller: Caller, params: ThreadReadParams
) -> ThreadReadResult:
    result = await door.reading.thread_read(caller, params)
    door.pictures.learn_turns(result.turns)
    return result


async def _turn_list(
    door: Door, caller: Caller, params: TurnListParams
) -> TurnListResult:
    result = await door.reading.turn_list(caller, params)
    door.pictures.learn_turns(result.turns)
    return result


async def _item_list(
    door: Door, caller: Caller, params: ItemListParams
) -> ItemListResult:
    result = await door.contents.item_list(caller, params)
    door.pictures.learn(params.thread_id, result.items)
    return result
