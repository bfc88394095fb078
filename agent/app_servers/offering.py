"""What the runtime offers, and what its owner should know of it. Trio shell.

PROTOCOL.md section 4: `gateway/capabilities`, `model/list`, and the warnings of
`gateway/status`. All of it is asked of the reader; nothing is inferred.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn, TypeVar

import trio

from adapter.errors import AdapterError
from adapter.runtime.reader import Reader
from agent.app_servers.supervisor import Supervisor
from agent.gate.gatekeeper import GateKeeper
from agent.limits import WARNINGS_PAUSE_S, WARNINGS_S
from agent.mutations.refusals import failed_before
from agent.sessions.router import Call
from transport.errors import Refusal
from transport.protocol.capabilities import (
    CapabilitiesParams,
    CapabilitiesResult,
    Capability,
    ModelListParams,
    ModelListResult,
)
from transport.protocol.methods import METHODS

_LOG: Final = logging.getLogger(__name__)

T = TypeVar("T")


class Offering:
    """Asks the reader; keeps the warnings fresh in the background (`serve`).

    `has_room`: whether the disk takes what must be written before a mutation, as was seen
    last.
    """

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        keeper: GateKeeper,
        has_room: Callable[[], bool],
        now_ms: Callable[[], int],
    ) -> None:
        self._supervisor = supervisor
        self._keeper = keeper
        self._has_room = has_room
        self._now_ms = now_ms
        self._decided_alone: tuple[str, ...] = ()
        self._sandbox_fault: str | None = None
        self._sandbox_of: str | None = None  # the version whose sandbox was tried

    async def capabilities(
        self, call: Call, params: CapabilitiesParams
    ) -> CapabilitiesResult:
        """`gateway/capabilities`: features of Codex that this Agent passes on."""
        del call, params
        rows = await self._ask(lambda reader: reader.capabilities())
        return CapabilitiesResult(rows=[row for row in rows if _is_ours(row)])

    async def models(self, call: Call, params: ModelListParams) -> ModelListResult:
        """`model/list`."""
        del call, params
        models = await self._ask(lambda reader: reader.list_models())
        return ModelListResult(models=list(models))

    def warnings(self) -> list[str]:
        """Return the codes of what the owner should know now."""
        foreign = self._keeper.last_look.lockless(ours_lock=self._supervisor.ours_lock)
        found = {
            "approvalsDecidedLocally": bool(self._decided_alone),
            "sandboxBroken": self._sandbox_fault is not None,
            "writerWithoutLock": foreign is not None,
            "diskFull": not self._has_room(),
        }
        return [code for code, holds in found.items() if holds]

    async def serve(self) -> NoReturn:
        """Look at the owner's configuration every minute, at the sandbox once."""
        while True:
            if self._supervisor.is_up:
                await self._refresh()
                await trio.sleep(WARNINGS_S)
            else:
                await trio.sleep(WARNINGS_PAUSE_S)

    async def _refresh(self) -> None:
        try:
            reader = self._supervisor.reader
            self._decided_alone = await reader.decided_alone()
            if self._sandbox_of != reader.info.version:
                self._sandbox_fault = await reader.sandbox_fault()
                self._sandbox_of = reader.info.version
        except (AdapterError, Refusal) as exc:
            _LOG.info("warnings are not fresh: %s", type(exc).__name__)

    async def _ask(self, ask: Callable[[Reader], Awaitable[T]]) -> T:
        try:
            return await ask(self._supervisor.reader)
        except AdapterError as exc:
            at_ms = self._now_ms()
            raise failed_before(exc, thread_id="", at_ms=at_ms) from exc


def _is_ours(row: Capability) -> bool:
    """A feature that is named like a method is one only where this Agent has it."""
    return "/" not in row.feature or row.feature in METHODS
