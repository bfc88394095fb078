"""How a thread's history is kept, and whether it is a sub-agent's. Trio shell.

PROTOCOL.md section 5. Neither ever changes, so what is read or listed of a thread is
remembered; the first question about any other reads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapter.calls import reading_commands
from adapter.limits import KNOWN_MODES
from adapter.servers.reads import Read
from adapter.shapes.shapes import Shape, mapping
from adapter.shapes.threads import is_legacy, parent_from


@dataclass(frozen=True, slots=True)
class Kind:
    """`legacy`: an old codex has written it; ids of its items are not the live ones."""

    legacy: bool
    is_child: bool


class ThreadKinds:
    """The kinds of threads, as far as they are known."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._kinds: dict[str, Kind] = {}

    async def of(self, thread_id: str) -> Kind:
        """Return the kind of a thread. Raises: AdapterError."""
        if thread_id not in self._kinds:
            await self.read_thread(thread_id)
        return self._kinds[thread_id]

    async def is_child(self, thread_id: str) -> bool:
        """Whether it is a sub-agent's: all its turns work for its parent's."""
        return (await self.of(thread_id)).is_child

    async def read_thread(self, thread_id: str) -> Mapping[str, Any]:
        """Return a thread as Codex has it, without its turns. Raises: AdapterError."""
        answer = await self._read(reading_commands.read_thread(thread_id))
        with Shape("thread/read"):
            raw = mapping(answer["thread"])
            self.note({**raw, "id": thread_id})
        return raw

    def note(self, raw: Mapping[str, Any]) -> None:
        """Remember what a thread is.

        Raises one of `MISFITS`.
        """
        if len(self._kinds) >= KNOWN_MODES:
            self._kinds.clear()
        if isinstance(thread_id := raw.get("id"), str):
            self._kinds[thread_id] = Kind(
                legacy=is_legacy(raw),
                is_child=parent_from(raw) is not None,
            )
