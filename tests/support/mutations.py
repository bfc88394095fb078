"""Mutations for the one door in shell tests, and what must be left of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import trio

from agent.records.key_row import RowState
from agent.records.store import Store
from tests.support.door import LOCAL, House, send
from tests.support.fake_writer import FakeWriter
from transport.errors import Refusal
from transport.protocol.threads import ThreadStartParams
from transport.protocol.turns import TextInput, TurnInterruptParams

KEY: Final = "key-0123456789abcdef"  # what `send` sends by itself
OTHER_KEY: Final = "key-fedcba9876543210"
STEPS: Final = [
    "read_thread",
    "list_turns",
    "pending_work",
    "writer.open",
    "writer.open:done",
    "resume",
    "resume:done",
    "start_turn",
]
"""What the runtime is asked, in order, until a message is handed over."""


def at_the_desk(refusal: Refusal) -> str:
    """Return what the workstation is told of a refusal: Codex's words, too."""
    assert refusal.whole is not None
    return refusal.whole.message


def new_thread(cwd: str, *, key: str = KEY, **more: object) -> ThreadStartParams:
    """Return the params of a thread/start."""
    return ThreadStartParams.model_validate(
        {
            "cwd": cwd,
            "input": [TextInput(type="text", text="begin")],
            "request_key": key,
            **more,
        }
    )


def stop(
    turn_id: str, *, thread_id: str = "thr", key: str = OTHER_KEY
) -> TurnInterruptParams:
    """Return the params of a turn/interrupt."""
    return TurnInterruptParams(thread_id=thread_id, turn_id=turn_id, request_key=key)


def raiser(error: Exception) -> Callable[[], None]:
    """Return what raises this at a step of the fake runtime."""

    def action() -> None:
        raise error

    return action


async def run_one(house: House) -> tuple[FakeWriter, str]:
    """Start a turn of the thread `thr`; return its writer and its id."""
    house.runtime.add("thr", "t1")
    result = await house.door.admission.start_turn(LOCAL, send())
    return house.runtime.writers[-1], result.sent.id


def row_state(path: Path, key: str = KEY) -> RowState | None:
    """Return how far the key has come in the ledger."""
    store = Store.open(path / "ledger.sqlite")
    try:
        row = store.find("local", key)
    finally:
        store.close()
    return row.state if row else None


async def nothing_is_left(house: House, path: Path, key: str = KEY) -> None:
    """No writer, no lease and no row."""
    with trio.fail_after(60):
        while house.runtime.live:  # noqa: ASYNC110 - the mock clock is what is advanced
            await trio.sleep(1)
    assert house.door.leases.rows() == []
    assert row_state(path, key) is None
