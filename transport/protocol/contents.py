"""What threads hold: items, whole outputs, diffs, and looking for words. Sans-IO.

PROTOCOL.md section 4. All of these only read.
"""

from typing import Annotated, Literal

from pydantic import Field

from transport.protocol.base import Params, WireId, WireModel
from transport.protocol.items import Item
from transport.protocol.threads import Thread
from transport.protocol.turns import Cursor, PageLimit

Query = Annotated[str, Field(min_length=1, max_length=200)]
OUTPUT_BYTES = 65_536  # of one `item/output`


class ItemListParams(Params):
    """`item/list`: the items of a thread or of one turn, oldest first by default."""

    thread_id: WireId
    turn_id: WireId | None = None
    order: Literal["asc", "desc"] = "asc"
    cursor: Cursor | None = None
    limit: PageLimit = 50


class ItemListResult(WireModel):
    """A page of items. No `next_cursor` is the only end."""

    items: list[Item]
    next_cursor: str | None = None
    head: int


class ItemOutputParams(Params):
    """`item/output`: a part of one text of an item. `offset` and `limit` in bytes.

    `path`: of the file whose diff is wanted. `turn_id` finds an old item sooner.
    """

    thread_id: WireId
    item_id: WireId
    turn_id: WireId | None = None
    field: Literal["output", "text", "diff"]
    path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    offset: Annotated[int, Field(ge=0, le=2**40)] = 0
    limit: Annotated[int, Field(ge=1, le=OUTPUT_BYTES)] = OUTPUT_BYTES


class ItemOutputResult(WireModel):
    """A part of what is there of a text. `available`, `total`: bytes of UTF-8.

    `total`: how long the text really is; absent where nobody kept that. `gap_at`: from
    this offset on bytes are missing that nobody kept. `eof`: nothing is available behind
    these bytes now (an item in progress may still grow).
    """

    bytes: bytes
    available: int
    total: int | None = None
    gap_at: int | None = None
    eof: bool


class ThreadDiffParams(Params):
    """`thread/diff`: what file changes did, in a turn or in all of the thread."""

    thread_id: WireId
    turn_id: WireId | None = None


class ChangedFile(WireModel):
    """One file, with the lines that all its changes added and removed."""

    path: str
    added: int
    removed: int


class ThreadDiffResult(WireModel):
    """The changes one after another as one text; `truncated`: more was changed."""

    diff: str
    files: list[ChangedFile]
    truncated: bool
    head: int


class ThreadSearchParams(Params):
    """`thread/search`: threads in which these words occur."""

    query: Query
    archived: bool = False
    cursor: Cursor | None = None
    limit: PageLimit = 50


class ThreadHit(WireModel):
    """A thread, and a line of it with the words."""

    thread: Thread
    snippet: str


class ThreadSearchResult(WireModel):
    """A page of threads. No `next_cursor` is the only end."""

    hits: list[ThreadHit]
    next_cursor: str | None = None
    head: int


class ThreadFindParams(Params):
    """`thread/find`: where in one thread these words occur."""

    thread_id: WireId
    query: Query
    cursor: Cursor | None = None
    limit: PageLimit = 50


class ItemHit(WireModel):
    """An item, and a line of it with the words."""

    turn_id: str
    item_id: str
    snippet: str


class ThreadFindResult(WireModel):
    """A page of items. No `next_cursor` is the only end."""

    hits: list[ItemHit]
    next_cursor: str | None = None
    head: int
