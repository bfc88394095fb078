"""An app-server without a process: each request has its answer at once."""

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import trio

from adapter.calls.commands import Command
from adapter.calls.versions import traits_of
from tests.support.codex_says import Raw

Say = Callable[[Command], Raw]


class Server:
    """An app-server that answers at once; `asked`: what it was asked, in order."""

    def __init__(self, say: Say) -> None:
        self.info = None
        self.traits = traits_of("0.171.0")
        self.asked: list[Command] = []
        self.watches: list[Any] = []
        self.normalizer = self
        self._say = say

    async def call(self, command: Command, *, guard: Any = None) -> Raw:
        self.asked.append(command)
        await trio.lowlevel.checkpoint()
        return self._say(command)

    @contextmanager
    def watching(self, watch: Any) -> Any:
        self.watches.append(watch)
        yield

    def tree(self, thread_id: str) -> frozenset[str]:
        return frozenset({thread_id})

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        assert condition()

    def item(self, _thread_id: str, _item_id: str) -> None:
        return None
