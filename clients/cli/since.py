"""`threads --since`: what happened lately, and through which device. Trio shell.

Who began a turn is in the audit log alone, and so is told at the workstation: the key of
a device's request comes back with the message that it sent.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from clients.cli.doors import open_door
from clients.cli.exits import ExitCode
from clients.cli.find import device_names, find_folder, list_threads
from clients.cli.hosts import LOCAL
from clients.cli.lines.since import Begun, since_lines
from clients.cli.lines.waiting import dropped_lines
from clients.cli.paging import list_rows
from clients.cli.screen import Screen
from clients.cli.style import BLANK, line
from transport.client import Client
from transport.protocol.admin import AuditListParams
from transport.protocol.items import UserMessage
from transport.protocol.methods import AUDIT_LIST, QUEUE_LIST, TURN_LIST
from transport.protocol.queue import QueueListParams
from transport.protocol.threads import Thread, ThreadListParams
from transport.protocol.turns import Turn, TurnListParams

_BEGINS = frozenset({"turn/start", "thread/start", "thread/fork"})


@dataclass(frozen=True, slots=True)
class Starters:
    """Who asked, by the key of the request; and what devices are called."""

    devices: dict[str, str]
    names: dict[str, str]

    def of(self, turn: Turn) -> str | None:
        """Return the id of the device that began a turn; `None`: another program."""
        key = next((item.client_key for item in _messages(turn)), None)
        return None if key is None else self.devices.get(key)


async def threads_since(
    screen: Screen,
    *,
    host: str | None,
    since: int,
    archived: bool,
    query: str | None,
    cwd: str | None,
    count: int,
) -> ExitCode:
    """Show which threads changed since then (ms), with the turns that began since, and
    which queued messages were not sent."""
    async with open_door(host) as client:
        folder = find_folder(client, cwd) if cwd is not None else None
        params = ThreadListParams(archived=archived, query=query, cwd=folder)
        changed = await list_threads(
            client, params, count=count, stop=lambda one: one.updated_at < since
        )
        told = [(one, await _turns(client, one, since)) for one in changed]
        starters = await _starters(client, since)
        queue = await client.call(QUEUE_LIST, QueueListParams())
    dropped = [one for one in queue.dropped if one.at >= since]
    if screen.as_json:
        rows = [_as_json(thread, turns, starters) for thread, turns in told]
        lost = [one.wire() for one in dropped]
        screen.json({"threads": rows, "dropped": lost})
    begun = [
        (thread, [_begun(turn, starters) for turn in turns]) for thread, turns in told
    ]
    screen.lines(since_lines(begun, screen.clock(), width=screen.width))
    if dropped:
        screen.lines([BLANK, line("Queued messages that were not sent:")])
        screen.lines(dropped_lines(dropped, screen.clock()))
    if starters is None and told:
        screen.note("Which device began a turn is known at the workstation only.")
    return ExitCode.OK


async def _turns(client: Client, thread: Thread, since: int) -> list[Turn]:
    """Return the turns that began since then, oldest first."""
    found = await list_rows(
        client,
        TURN_LIST,
        TurnListParams(thread_id=thread.id),
        lambda page: (page.turns, page.next_cursor),
        stop=lambda turn: turn.started_at is not None and turn.started_at < since,
    )
    return found[::-1]


async def _starters(client: Client, since: int) -> Starters | None:
    """Return what the audit log tells; `None` where only its owner may read it."""
    if client.opened.device.id != LOCAL:
        return None
    entries = await list_rows(
        client,
        AUDIT_LIST,
        AuditListParams(),
        lambda page: (page.entries, page.next_cursor),
        stop=lambda entry: entry.at < since,
    )
    devices = {
        str(entry.fields.get("key")): str(entry.fields.get("device"))
        for entry in entries
        if entry.event in _BEGINS
    }
    return Starters(devices, await device_names(client))


def _messages(turn: Turn) -> Iterator[UserMessage]:
    return (item for item in turn.items or () if isinstance(item, UserMessage))


def _begun(turn: Turn, starters: Starters | None) -> Begun:
    if starters is None:
        return Begun(turn, None)
    device = starters.of(turn)
    if not any(_messages(turn)):
        return Begun(turn, "Codex itself")
    if device is None:
        return Begun(turn, "not through threadgate")
    if device == LOCAL:
        return Begun(turn, "the workstation")
    return Begun(turn, starters.names.get(device, device))


def _as_json(
    thread: Thread, turns: list[Turn], starters: Starters | None
) -> dict[str, object]:
    rows = [
        turn.wire() if starters is None else {**turn.wire(), "from": starters.of(turn)}
        for turn in turns
    ]
    return {**thread.wire(), "turns": rows}
