"""All turns, items or threads, as a client reads them: page by page."""

from transport.client import Client
from transport.protocol import contents, methods, threads, turns


async def every_turn(client: Client, thread_id: str) -> list[str]:
    """Return the ids of all turns, oldest first."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        params = turns.TurnListParams(
            thread_id=thread_id, order="asc", items="none", limit=100, cursor=cursor
        )
        page = await client.call(methods.TURN_LIST, params, timeout_s=60)
        found += [turn.id for turn in page.turns]
        cursor = page.next_cursor
        if cursor is None:
            return found


async def every_item(client: Client, thread_id: str) -> list[str]:
    """Return the ids of all items of a thread, oldest first."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        params = contents.ItemListParams(
            thread_id=thread_id, limit=100, cursor=cursor, order="asc"
        )
        page = await client.call(methods.ITEM_LIST, params, timeout_s=60)
        found += [item.id for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


async def every_thread(client: Client) -> set[str]:
    """Return the ids of all threads that this client may see."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        params = threads.ThreadListParams(limit=100, cursor=cursor)
        page = await client.call(methods.THREAD_LIST, params)
        found += [thread.id for thread in page.threads]
        cursor = page.next_cursor
        if cursor is None:
            assert len(found) == len(set(found)), "none is listed twice"
            return set(found)
