"""A loaded thread's settings: as they are now, and changed. Trio shell.

PROTOCOL.md section 4. Codex keeps what a turn/start names for later turns too, and tells
of it; where nothing changes it says nothing.
"""

import trio

from adapter.calls import thread_commands
from adapter.limits import SETTLE_S
from adapter.runtime.acts import Guard
from adapter.runtime.threads import EffectiveSettings, Wishes
from adapter.servers.app_server import AppServer
from adapter.shapes.settings import effective
from generated.codex import CollaborationMode
from transport.errors import UnavailableFeature


class LoadedSettings:
    """The settings of the threads of one app-server."""

    def __init__(self, server: AppServer) -> None:
        self._server = server

    def now(self, thread_id: str) -> EffectiveSettings | None:
        """Return them as Codex told them last."""
        thread = self._server.normalizer.thread(thread_id)
        if thread is None or thread.settings is None:
            return None
        return effective(thread.settings)

    async def change(
        self, thread_id: str, wishes: Wishes, *, guard: Guard
    ) -> EffectiveSettings | None:
        """Change them; return them as they are then. Raises: AdapterError."""
        command = thread_commands.update_settings(
            thread_id, wishes, collaboration=self.collaboration(thread_id, wishes)
        )
        await self._server.call(command, guard=guard)
        with trio.move_on_after(SETTLE_S):
            await self._server.wait_until(
                lambda: self._server.gone or _are(self.now(thread_id), wishes)
            )
        return self.now(thread_id)

    def collaboration(self, thread_id: str, wishes: Wishes) -> CollaborationMode | None:
        """Return what a wished mode is to Codex. Raises: UnavailableFeature."""
        if wishes.mode is None:
            return None
        now = self.now(thread_id)
        model = wishes.model or (now.model if now else None)
        if model is None:
            raise UnavailableFeature(
                "Codex does not say which model this thread has; name one together with "
                "the mode.",
                data={"feature": "planMode"},
            )
        effort = wishes.effort or (now.effort if now else None)
        return thread_commands.collaboration(wishes.mode, model=model, effort=effort)


def _are(now: EffectiveSettings | None, wishes: Wishes) -> bool:
    """Whether all that was wished is so."""
    return now is not None and all(
        wished is None or wished == got
        for wished, got in (
            (wishes.model, now.model),
            (wishes.effort, now.effort),
            (wishes.mode, now.mode),
            (wishes.cwd, now.cwd),
            (wishes.sandbox, now.sandbox),
            (wishes.approval_policy, now.approval_policy),
        )
    )
