"""What a shell offers for the word that is being typed. Trio shell.

A shell waits for it: whatever does not come within a moment, or goes wrong, is not
offered, and nothing is said.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final

import trio

from clients.cli.doors import open_door
from clients.cli.find import list_threads, pending_approvals
from clients.cli.folders import host_book_file
from clients.cli.hosts import LOCAL, load_book
from clients.cli.lines.threads import thread_name
from clients.cli.plain import one_line
from transport.protocol.methods import QUEUE_LIST
from transport.protocol.queue import QueueListParams
from transport.protocol.threads import ThreadListParams

MOMENT_S: Final = 0.9
_MOST: Final = 100  # threads, those that changed last
_MEANS: Final = 60  # characters of what a word means

Offer = tuple[str, str]
"""A word, and what it means."""


def hosts(incomplete: str) -> list[Offer]:
    """Return the names of paired hosts."""
    found: list[Offer] = [(LOCAL, "the Agent of this machine")]
    with suppress(Exception):  # a book that cannot be read offers nothing
        book = load_book(host_book_file())
        found += [(host.name, host.urls[0]) for host in book.hosts]
    return _fitting(found, incomplete)


def threads(host: str | None, incomplete: str) -> list[Offer]:
    """Return the threads that changed last, by their whole ids."""
    return _asked(partial(_threads, host), incomplete)


def approvals(host: str | None, incomplete: str) -> list[Offer]:
    """Return what waits for an answer."""
    return _asked(partial(_approvals, host), incomplete)


def queued(host: str | None, incomplete: str) -> list[Offer]:
    """Return the messages that wait."""
    return _asked(partial(_queued, host), incomplete)


def _asked(ask: Callable[[], Awaitable[list[Offer]]], incomplete: str) -> list[Offer]:
    found: list[Offer] = []

    async def briefly() -> None:
        with trio.move_on_after(MOMENT_S):
            found.extend(await ask())

    with suppress(Exception):  # a shell has no place for an error
        trio.run(briefly)
    return _fitting(found, incomplete)


def _fitting(found: list[Offer], incomplete: str) -> list[Offer]:
    return [offer for offer in found if offer[0].startswith(incomplete)]


async def _threads(host: str | None) -> list[Offer]:
    async with open_door(host) as client:
        rows = await list_threads(client, ThreadListParams(), count=_MOST)
    return [(row.id, one_line(thread_name(row), _MEANS)) for row in rows]


async def _approvals(host: str | None) -> list[Offer]:
    async with open_door(host) as client:
        rows = await pending_approvals(client)
    return [(row.id, one_line(row.detail.command or row.title, _MEANS)) for row in rows]


async def _queued(host: str | None) -> list[Offer]:
    async with open_door(host) as client:
        rows = (await client.call(QUEUE_LIST, QueueListParams())).queue
    return [(row.queue_id, one_line(row.preview, _MEANS)) for row in rows]
