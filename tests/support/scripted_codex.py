"""A runtime of ours on an app-server that plays a script (`fake_app_server`)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.support.fake_app_server import (
    loaded,
    place_fake,
    sent,
    started,
    thread,
    turn,
)
from tests.support.runtimes import Running, open_codex_runtime

THREAD = "thr_1"
LOCKED: Any = {
    "code": -32600,
    "message": f"thread {THREAD} already has an active writer",
}
RESUMED: list[Any] = [{"result": loaded(THREAD)}]
NO_TURNS: list[Any] = [[{"result": {"data": [], "nextCursor": None}}]]
ROWS: list[Any] = [{"result": {"data": [thread(THREAD)], "nextCursor": None}}]
STARTED: list[Any] = [{"result": {"turn": turn("turn_1")}}, started("turn_1")]


@asynccontextmanager
async def open_fake(
    folder: Path, *, start: object = (), answers: object = None, **on: object
) -> AsyncGenerator[Running]:
    """Run a runtime on a fake; `on`: thread__list for thread/list, and so on."""
    plays = {name.replace("__", "/"): play for name, play in on.items()}
    script = {"on": plays, "start": start, "answers": answers or {}}
    codex = place_fake(folder / "bin", script)
    (folder / "home").mkdir(exist_ok=True)
    with trio.fail_after(240):
        async with open_codex_runtime(codex, folder / "home") as run:
            yield run


@asynccontextmanager
async def open_loaded(
    folder: Path, **on: object
) -> AsyncGenerator[tuple[Running, Any]]:
    """A fake with a writer in which THREAD is loaded."""
    plays: dict[str, Any] = {
        "thread__resume": [RESUMED],
        "thread__turns__list": NO_TURNS,
        **on,
    }
    async with open_fake(folder, **plays) as run, run.writer(THREAD) as writer:
        yield run, writer


def sent_methods(folder: Path) -> list[str]:
    """Return the methods of all that was sent to the fake, in order."""
    return [str(message.get("method")) for message in sent(folder / "bin")]
