"""A turn is started in a loaded thread. Trio shell. PROTOCOL.md section 4, turn/start."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter.calls import store_commands, turn_commands
from adapter.calls.proof import TurnProof
from adapter.errors import AdapterError
from adapter.runtime.acts import Guard, InputPart
from adapter.runtime.threads import Wishes
from adapter.servers.app_server import AppServer
from adapter.servers.running import see_running, seen_turn
from adapter.servers.thread_settings import LoadedSettings
from transport.protocol.turns import Turn


class Starting:
    """Starts turns in one app-server.

    A new thread's name waits here for the first turn: naming it before would store a
    thread without a turn, which a refused turn would leave behind.
    """

    def __init__(self, server: AppServer, settings: LoadedSettings) -> None:
        self._server = server
        self._settings = settings
        self.name: str | None = None

    async def run(
        self,
        thread_id: str,
        parts: Sequence[InputPart],
        *,
        client_key: str,
        guard: Guard,
        wishes: Wishes,
        output_schema: Mapping[str, Any] | None,
    ) -> Turn:
        """Start a turn, and wait until it is seen to run. Raises: AdapterError."""
        proof = TurnProof(thread_id, client_key)
        command = turn_commands.start_turn(
            thread_id,
            parts,
            client_key,
            wishes=wishes,
            collaboration=self._settings.collaboration(thread_id, wishes),
            output_schema=output_schema,
        )
        turn_id = await see_running(self._server, command, proof, guard=guard)
        await self._give_name(thread_id)
        return seen_turn(self._server, thread_id, turn_id)

    async def _give_name(self, thread_id: str) -> None:
        name, self.name = self.name, None
        if name is None:
            return
        try:
            await self._server.call(store_commands.rename(thread_id, name))
        except AdapterError as exc:  # the turn runs: that is what was asked for
            self._server.notice("notNamed", f"The thread has no name: {exc}", thread_id)
