"""Stands at the gate: looks, tells everybody, refuses. Trio shell around `gate`.

PROTOCOL.md section 3. `check()` has no checkpoint, so a look and the act behind it are
one step for everybody else in this process.
"""

from collections.abc import Callable

import trio

from adapter.runtime.events import Emit, Emitted
from agent.app_servers.supervisor import Supervisor
from agent.changes import Changes
from agent.gate.engines import Look
from agent.gate.gate import Gate, World
from agent.gate.writers import Watch
from transport.protocol.events import GateChanged
from transport.protocol.gateway import GateState


class GateKeeper:
    """The gate with its eyes. `changed` rings whenever it opens or closes."""

    def __init__(
        self,
        *,
        watch: Watch,
        supervisor: Supervisor,
        emit: Emit,
        now_ms: Callable[[], int],
        read_only: bool = False,
    ) -> None:
        self._watch = watch
        self._supervisor = supervisor
        self._emit = emit
        self._now_ms = now_ms
        self._read_only = read_only
        self._locked = False
        self._gate = Gate(at_ms=now_ms())
        self._look = Look()
        self.changed = Changes()
        self.on_change: Callable[[], None] | None = None

    @property
    def state(self) -> GateState:
        """The gate as of the last look."""
        return self._gate.state

    @property
    def is_open(self) -> bool:
        """Whether mutations may go on, as of the last look."""
        return self._gate.is_open

    @property
    def last_look(self) -> Look:
        """Who else could write when somebody last looked."""
        return self._look

    def look(self) -> GateState:
        """Look at the world now. No checkpoint."""
        self.saw(self._watch.look())
        return self._gate.state

    def saw(self, look: Look) -> None:
        """Take in what the watch saw."""
        self._look = look
        self._decide()

    def runtime_changed(self) -> None:
        """The runtime came or went. A gate never opens on nobody's look."""
        self.look()

    def set_locked(self, *, locked: bool) -> None:
        """The owner said lock, or unlock."""
        self._locked = locked
        self._decide()

    def check(self, thread_id: str | None = None) -> None:
        """Look, and refuse while the gate is closed. No checkpoint.

        Raises: CodexUnavailable that names the writer.
        """
        self.look()
        if not self._gate.is_open:
            raise self._gate.refusal(thread_id)

    async def wait_open(self) -> None:
        """Return when the gate is open; it may close again at once."""
        while not self._gate.is_open:
            await self.changed.wait()

    def _decide(self) -> None:
        world = World(
            look=self._look,
            runtime_up=self._supervisor.is_up,
            ours_lock=self._supervisor.ours_lock,
            read_only=self._read_only,
            locked=self._locked,
        )
        at = self._now_ms()
        state = self._gate.observe(world, at_ms=at, now_s=trio.current_time())
        if state is not None:
            data = GateChanged(gate=state)
            self._emit(Emitted(at=at, thread_id=None, data=data))
            self.changed.ring()
            if self.on_change is not None:
                self.on_change()
