"""One read for all who ask the same at once. Trio shell.

PROTOCOL.md section 4. Ten clients that list their threads at the same time cost Codex one
list. Nobody is given what is older than the `head` that goes with the answer: who comes
when something was told since a read began waits for the next one, again with all others.
"""

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import trio

from transport.errors import Refusal

R = TypeVar("R")


@dataclass(slots=True, eq=False)
class _Read:
    """One that is under way. Without result and refusal at its end it was cancelled."""

    head: int
    done: trio.Event = field(default_factory=trio.Event)
    result: Any = None
    refusal: Refusal | None = None


class SharedReads:
    """The reads under way, by what they ask for. `head`: of the journal, now."""

    def __init__(self, head: Callable[[], int]) -> None:
        self._head = head
        self._reads: dict[Hashable, _Read] = {}

    def __len__(self) -> int:
        """How many reads are under way."""
        return len(self._reads)

    async def get(self, asked: Hashable, read: Callable[[], Awaitable[R]]) -> R:
        """Return what `read` returns, or what the same read of somebody else does.

        Raises: Refusal, of the read.
        """
        begun = self._reads.get(asked)
        if begun is not None and begun.head != self._head():
            await begun.done.wait()
            begun = self._reads.get(asked)
        while begun is not None:
            await begun.done.wait()
            if begun.refusal is not None:
                raise begun.refusal.again()
            if begun.result is not None:
                return cast("R", begun.result)
            begun = self._reads.get(asked)  # who asked went away: the next one asks
        return await self._ask(asked, read)

    async def _ask(self, asked: Hashable, read: Callable[[], Awaitable[R]]) -> R:
        mine = self._reads[asked] = _Read(self._head())
        try:
            result = await read()
        except Refusal as exc:
            mine.refusal = exc
            raise
        else:
            mine.result = result
            return result
        finally:
            del self._reads[asked]
            mine.done.set()
