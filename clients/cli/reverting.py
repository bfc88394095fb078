"""`revert`: turns taken back, once a person has seen which. Trio shell. PROTOCOL.md 4."""

from collections.abc import Sequence
from typing import Final

from clients.cli.asking import confirm_for_good
from clients.cli.choose import pick
from clients.cli.doors import open_door
from clients.cli.exits import ExitCode
from clients.cli.find import find_thread
from clients.cli.lines.threads import turn_choice
from clients.cli.message import request_key
from clients.cli.paging import list_rows
from clients.cli.screen import Screen
from clients.cli.style import Span, line
from transport.client import Client
from transport.protocol.methods import THREAD_REVERT, TURN_LIST
from transport.protocol.thread_acts import ThreadRevertParams
from transport.protocol.turns import Turn, TurnListParams

LOOKED: Final = 5_000  # turns, newest first, among which it must be
SHOWN: Final = 20  # of those that go: the oldest; more are counted


async def revert(
    screen: Screen,
    *,
    host: str | None,
    thread: str,
    before: str,
    yes: bool,
    wait_ms: int,
) -> ExitCode:
    """Show what goes, ask, and take exactly that back."""
    async with open_door(host) as client:
        thread_id = await find_thread(client, thread)
        going = await _going(client, thread_id, before)
        if not screen.as_json:
            _show(screen, going)
        what = "it" if len(going) == 1 else "them"
        question = f"Take {what} back for good? Files stay as they are."
        if not yes and not await confirm_for_good(question):
            screen.note("Nothing was taken back.")
            return ExitCode.FAILED
        params = ThreadRevertParams(
            thread_id=thread_id,
            before_turn_id=going[-1].id,
            expected_last_turn_id=going[0].id,
            request_key=request_key(),
            wait_ms=wait_ms,
        )
        result = await client.call(THREAD_REVERT, params)
    if screen.as_json:
        screen.json(result.wire())
    last = result.thread.last_turn_id
    screen.say(Span(thread_id, "name"), f" ends with turn {last} now")
    return ExitCode.OK


async def _going(client: Client, thread_id: str, word: str) -> Sequence[Turn]:
    """Return the turn that is meant and those behind it, newest first."""
    turns = await list_rows(
        client,
        TURN_LIST,
        TurnListParams(thread_id=thread_id, items="summary"),
        lambda page: (page.turns, page.next_cursor),
        count=LOOKED,
    )
    first = pick(
        word,
        turns,
        key=lambda turn: turn.id,
        show=turn_choice,
        kind="turn",
        how=f"`threadgate read {thread_id}`",
    )
    return turns[: turns.index(first) + 1]


def _show(screen: Screen, going: Sequence[Turn]) -> None:
    what = "This turn goes:" if len(going) == 1 else f"These {len(going)} turns go:"
    rows = [line(what), *map(turn_choice, [*reversed(going)][:SHOWN])]
    if len(going) > SHOWN:
        rows.append(line(f"  … and {len(going) - SHOWN} behind them"))
    screen.lines(rows)
