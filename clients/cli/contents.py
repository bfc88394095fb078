"""`output`, `diff`, `search`, `find`, `files`: what threads hold. Trio shell. PROTOCOL.md section 4."""

from typing import Final, Literal

from clients.cli.choose import pick
from clients.cli.doors import open_door
from clients.cli.exits import ExitCode, FailedError
from clients.cli.find import find_folder, find_thread
from clients.cli.lines.contents import (
    diff_lines,
    file_lines,
    found_lines,
    hit_table,
    item_choice,
    missing_note,
    text_lines,
)
from clients.cli.paging import list_rows
from clients.cli.screen import Screen
from transport.client import Client
from transport.protocol.contents import (
    ItemListParams,
    ItemOutputParams,
    ItemOutputResult,
    ThreadDiffParams,
    ThreadFindParams,
    ThreadSearchParams,
)
from transport.protocol.files import FileSearchParams
from transport.protocol.items import Command, Item
from transport.protocol.methods import (
    FILE_SEARCH,
    ITEM_LIST,
    ITEM_OUTPUT,
    THREAD_DIFF,
    THREAD_FIND,
    THREAD_SEARCH,
)

Field = Literal["output", "text", "diff"]
ITEMS: Final = 1_000  # the newest that are looked through for the beginning of an id


async def output(
    screen: Screen,
    *,
    host: str | None,
    thread: str,
    item: str | None,
    field: Field,
    path: str | None,
) -> ExitCode:
    """Print one text of an item, whole, as far as it is there."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread)
        found = await _find_item(client, thread_id, item)
        params = ItemOutputParams(
            thread_id=thread_id,
            item_id=found.id,
            turn_id=found.turn_id,
            field=field,
            path=path,
        )
        data, last = await _whole(client, params)
    if screen.as_json:
        told = {key: value for key, value in last.wire().items() if key != "bytes"}
        text = data.decode("utf-8", "replace")
        screen.json({**told, "itemId": found.id, "text": text})
    elif not screen.raw(data):
        screen.lines(text_lines(data.decode("utf-8", "replace")))
    if note := missing_note(last):
        screen.note(note)
    return ExitCode.OK


async def diff(
    screen: Screen, *, host: str | None, thread: str, turn: str | None
) -> ExitCode:
    """Show what file changes did, in the thread or in one turn."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread)
        params = ThreadDiffParams(thread_id=thread_id, turn_id=turn)
        told = await client.call(THREAD_DIFF, params)
    if screen.as_json:
        screen.json(told.wire())
    screen.lines(diff_lines(told))
    if told.truncated:
        screen.note(
            "That is not all: older changes, or parts of long ones, are not here."
        )
    return ExitCode.OK


async def search(
    screen: Screen, text: str, *, host: str | None, archived: bool, count: int
) -> ExitCode:
    """Find threads by words in them."""
    async with open_door(host) as client:
        hits = await list_rows(
            client,
            THREAD_SEARCH,
            ThreadSearchParams(query=text, archived=archived),
            lambda page: (page.hits, page.next_cursor),
            count=count,
        )
    if screen.as_json:
        screen.json({"hits": [hit.wire() for hit in hits]})
    screen.lines(hit_table(hits, screen.clock(), width=screen.width))
    return ExitCode.OK


async def find(
    screen: Screen, text: str, *, host: str | None, thread: str, count: int
) -> ExitCode:
    """Find places in one thread by words in them."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread)
        hits = await list_rows(
            client,
            THREAD_FIND,
            ThreadFindParams(thread_id=thread_id, query=text),
            lambda page: (page.hits, page.next_cursor),
            count=count,
        )
    if screen.as_json:
        screen.json({"hits": [hit.wire() for hit in hits]})
    screen.lines(found_lines(hits))
    return ExitCode.OK


async def files(
    screen: Screen, text: str, *, host: str | None, thread: str | None, cwd: str | None
) -> ExitCode:
    """Find files of a thread's folder, or of another, by letters of their paths."""
    async with open_door(host) as client:
        thread_id = None if thread is None else await find_thread(client, thread)
        folder = None if cwd is None else find_folder(client, cwd)
        params = FileSearchParams(thread_id=thread_id, cwd=folder, query=text)
        found = await client.call(FILE_SEARCH, params)
    if screen.as_json:
        screen.json(found.wire())
    screen.lines(file_lines(found.paths))
    if found.truncated:
        screen.note("There may be more: other words, or more of them, find them.")
    return ExitCode.OK


async def _find_item(client: Client, thread_id: str, word: str | None) -> Item:
    """Return the item that is meant; the newest command where none is named."""
    meant: list[Item] = []

    def is_meant(one: Item) -> bool:
        fits = isinstance(one, Command) if word is None else one.id == word
        meant.extend([one] if fits else [])
        return fits

    items = await list_rows(
        client,
        ITEM_LIST,
        ItemListParams(thread_id=thread_id, order="desc"),
        lambda page: (page.items, page.next_cursor),
        count=ITEMS,
        stop=is_meant,
    )
    if meant:
        return meant[0]
    if word is None:
        raise FailedError("no command ran in this thread (lately)")
    return pick(
        word,
        items,
        key=lambda one: one.id,
        show=item_choice,
        kind="item",
        how="`threadgate find` and `threadgate read --json`",
    )


async def _whole(
    client: Client, params: ItemOutputParams
) -> tuple[bytes, ItemOutputResult]:
    data = b""
    while True:
        part = await client.call(
            ITEM_OUTPUT, params.model_copy(update={"offset": len(data)})
        )
        data += part.bytes
        if part.eof or not part.bytes:
            return data, part
