"""What the reader's Codex is asked: again where it errs, less where it is much. Trio shell.

PROTOCOL.md section 3. While another process moves a thread, Codex refuses what is right a
moment later; and a line of an answer can be longer than we take.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio

from adapter.calls.commands import Command
from adapter.calls.portions import Portions
from adapter.calls.refusals import passes
from adapter.errors import AnswerTooLongError, CodexRefusedError
from adapter.limits import RETRY_PAUSES_S
from adapter.servers.app_server import AppServer
from adapter.shapes.shapes import Shape, mapping, maybe_text, sequence

Read = Callable[[Command], Awaitable[dict[str, Any]]]


async def read_patiently(server: AppServer, command: Command) -> dict[str, Any]:
    """Ask again while the answer may be one of a moment. Raises: AdapterError."""
    unsure = False
    for pause in RETRY_PAUSES_S:
        try:
            return await server.call(command)
        except CodexRefusedError as exc:
            if not passes(exc, again=unsure):
                raise
            unsure = not passes(exc, again=True)
        await trio.sleep(pause)
    return await server.call(command)


async def read_fitting(
    read: Read, limit: int, command: Callable[[int], Command]
) -> dict[str, Any]:
    """Return the answer to `command(limit)`, or to fewer rows that fit an answer."""
    portions = Portions(limit, first=limit)
    while True:
        try:
            return await read(command(portions.wanted()))
        except AnswerTooLongError:
            if not portions.too_long():
                raise


def rows_of(
    answer: Mapping[str, Any], method: str
) -> tuple[list[Mapping[str, Any]], str | None]:
    """Return the rows of a page and its cursor. Raises: AnswerShapeError."""
    with Shape(method):
        rows = [mapping(row) for row in sequence(answer["data"])]
        return rows, maybe_text(answer.get("nextCursor"))
