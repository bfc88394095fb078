"""Commands that outlived their turn, in one writer. Trio shell. PROTOCOL.md section 4.

Codex counts them by process; clients know their items.
"""

from dataclasses import dataclass

import trio

from adapter.calls import background_commands
from adapter.errors import CodexRefusedError, ThreadUnknownError
from adapter.limits import BACKGROUND_SHOWN, COMMAND_BYTES, PATH_BYTES, TURN_END_S
from adapter.servers.app_server import AppServer
from adapter.shapes.shapes import Shape, mapping, sequence, text, wire_id
from adapter.shapes.texts import prefix
from transport.errors import NotFound
from transport.protocol.background import BackgroundCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """One of them, as Codex lists it."""

    item_id: str
    process_id: str
    command: str
    cwd: str


class Background:
    """The background commands of one app-server's threads."""

    def __init__(self, server: AppServer) -> None:
        self._server = server

    async def list_below(self, thread_id: str) -> list[BackgroundCommand]:
        """Return those of a thread and its sub-agents, up to a bound. Raises: AdapterError."""
        found: list[BackgroundCommand] = []
        for one in sorted(self._server.normalizer.tree(thread_id)):
            rows = await self._rows_below(thread_id, one)
            found += [self._shown(one, row) for row in rows]
            if len(found) >= BACKGROUND_SHOWN:
                break
        return found[:BACKGROUND_SHOWN]

    async def stop(self, thread_id: str, item_id: str) -> None:
        """End one, and wait until its item has ended. Raises: NotFound, AdapterError."""
        for one in sorted(self._server.normalizer.tree(thread_id)):
            for row in await self._rows_below(thread_id, one):
                if row.item_id == item_id:
                    await self._end(one, item_id, row.process_id)
                    return
        raise _not_there(item_id)

    async def stop_all(self, threads: frozenset[str]) -> None:
        """End all of these threads; what has none, or is gone, is no error."""
        for one in sorted(threads):
            try:
                await self._server.call(background_commands.stop_all_background(one))
            except CodexRefusedError:
                continue

    async def _end(self, thread_id: str, item_id: str, process_id: str) -> None:
        answer = await self._server.call(
            background_commands.stop_background(thread_id, process_id)
        )
        if answer.get("terminated") is not True:
            raise _not_there(item_id)
        known = self._server.normalizer
        with trio.move_on_after(TURN_END_S):
            await self._server.wait_until(
                lambda: known.item(thread_id, item_id) is None
            )

    async def _rows_below(self, thread_id: str, one: str) -> list[_Running]:
        """Return those of the thread, or of a sub-agent of it: one that is gone has none."""
        try:
            return await self._rows(one)
        except ThreadUnknownError:
            if one == thread_id:
                raise
            return []

    async def _rows(self, thread_id: str) -> list[_Running]:
        answer = await self._server.call(background_commands.list_background(thread_id))
        with Shape("thread/backgroundTerminals/list"):
            rows = [mapping(row) for row in sequence(answer["data"])]
            return [
                _Running(
                    item_id=wire_id(row["itemId"]),
                    process_id=text(row["processId"]),
                    command=prefix(text(row["command"]), COMMAND_BYTES),
                    cwd=prefix(text(row["cwd"]), PATH_BYTES),
                )
                for row in rows
            ]

    def _shown(self, thread_id: str, row: _Running) -> BackgroundCommand:
        item = self._server.normalizer.item(thread_id, row.item_id)
        return BackgroundCommand(
            item_id=row.item_id,
            thread_id=thread_id,
            command=row.command,
            cwd=row.cwd,
            started_at=item.started_at if item else None,
        )


def _not_there(item_id: str) -> NotFound:
    return NotFound(
        "This command does not run in the background (any more).",
        data={"kind": "command", "id": item_id},
    )
