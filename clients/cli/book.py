"""`hosts`: the book of paired Agents, seen and kept in order. Trio shell (one question)."""

from collections.abc import Callable

from clients.cli.asking import at_terminal, confirm
from clients.cli.clock import Clock
from clients.cli.columns import table
from clients.cli.exits import ExitCode, FailedError, UsageProblemError
from clients.cli.folders import host_book_file
from clients.cli.hosts import (
    HostBook,
    HostRecord,
    load_book,
    named_host,
    save_book,
)
from clients.cli.plain import one_line
from clients.cli.screen import Screen
from clients.cli.style import Line, Span, line


def list_all(screen: Screen) -> ExitCode:
    """List the hosts; no secret of theirs is shown."""
    book = load_book(host_book_file())
    if screen.as_json:
        screen.json({"hosts": [_row(book, host) for host in book.hosts]})
    screen.lines(host_table(book, screen.clock()))
    return ExitCode.OK


def rename(screen: Screen, *, host: str, name: str) -> ExitCode:
    """Give a host another name on this device."""
    _change(lambda book: book.renamed(named_host(book, host), name))
    screen.say(f"It is called {one_line(name, 60)} now.")
    return ExitCode.OK


async def forget(screen: Screen, *, host: str, yes: bool) -> ExitCode:
    """Throw a host's record away, after a question."""
    record = named_host(load_book(host_book_file()), host)
    if not yes:
        if not at_terminal():
            raise UsageProblemError("there is no terminal to ask on: add --yes")
        if not await confirm(f"Forget {record.name} ({record.agent_id[:8]})?"):
            raise FailedError("nothing was changed")
    _change(lambda book: book.without(record))
    screen.say(f"Forgotten: {record.name}. This device still has its place there:")
    screen.say(f"revoke it at that workstation (`devices revoke {record.device_id}`).")
    return ExitCode.OK


def set_default(screen: Screen, *, host: str | None, none: bool) -> ExitCode:
    """Choose which host is meant where none is named; without words, say which."""
    if none and host is not None:
        raise UsageProblemError("say a host or --none, not both")
    if host is None and not none:
        return list_all(screen)
    book = _change(
        lambda book: book.with_default(None if none else named_host(book, host or ""))
    )
    chosen = [record.name for record in book.hosts if book.is_default(record)]
    meant = chosen[0] if chosen else "no host: every command has to name one"
    screen.say(f"Commands that name no host mean {meant}.")
    return ExitCode.OK


def host_table(book: HostBook, clock: Clock) -> list[Line]:
    """Return the book as a table; the default has a mark."""
    if not book.hosts:
        return [line("No hosts. Pair with one: `threadgate connect`.")]
    rows = [
        [
            Span("*" if book.is_default(host) else " ", "good"),
            Span(host.agent_id[:8], "name"),
            Span(host.name),
            Span(clock.ago(host.paired_at)),
            Span(host.device_name),
            Span(", ".join(host.urls)),
        ]
        for host in book.hosts
    ]
    return table(("", "HOST", "NAME", "PAIRED", "AS", "WHERE"), rows, width=None)


def _row(book: HostBook, host: HostRecord) -> dict[str, object]:
    return {
        "id": host.agent_id,
        "name": host.name,
        "urls": host.urls,
        "deviceId": host.device_id,
        "deviceName": host.device_name,
        "pairedAt": host.paired_at,
        "default": book.is_default(host),
    }


def _change(change: Callable[[HostBook], HostBook]) -> HostBook:
    book = change(load_book(host_book_file()))
    save_book(host_book_file(), book)
    return book
