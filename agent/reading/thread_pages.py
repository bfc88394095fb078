"""A page of the threads that exist for a caller. Trio shell over the store.

PROTOCOL.md sections 2 and 4. Who may see all is given the store's own pages, shortened to
what fits a frame; for others they are put together by `fenced_list`.
"""

from functools import partial

from agent.access.scopes import Caller
from agent.access.sight import Sight, is_fenced
from agent.reading.fenced_list import Ask, P, fenced_page
from agent.reading.pages import fitting
from transport.protocol.threads import Thread


async def thread_page(
    sight: Sight, caller: Caller, ask: Ask[P], *, cursor: str | None, limit: int
) -> tuple[list[Thread], str | None]:
    """Return at most `limit` threads and the store's cursor behind the last of them.

    `ask` gets one of the store's pages.
    """
    if is_fenced(caller):
        show = partial(sight.visible, caller)
        return await fenced_page(ask, show, cursor=cursor, limit=limit)
    page = await ask(cursor, limit)
    sight.learn(list(page.threads))
    while (fits := fitting(page.threads)) < len(page.threads):
        # Fewer rows of the store's, so that its own cursor goes on behind them.
        page = await ask(cursor, fits)
    return list(page.threads), page.next_cursor
