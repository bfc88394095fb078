"""Keeps the reader alive. Trio shell around `restart`. PROTOCOL.md section 3.

Who needs the reader takes `reader`: there, or a retryable refusal. The gate hears of
every change through `on_change`.
"""

import logging
import random
from collections.abc import Callable
from typing import Final, NoReturn

import trio

from adapter.errors import AdapterError, told_at_start, told_to_all
from adapter.runtime.events import Emit, Emitted, RuntimeEvent
from adapter.runtime.program import RuntimeInfo
from adapter.runtime.reader import Reader
from adapter.runtime.runtime import Runtime
from agent.app_servers.restart import RestartPolicy
from agent.faults import fault_of
from transport.errors import CodexUnavailable
from transport.protocol.events import RuntimeChanged
from transport.protocol.gateway import (
    GatePosition,
    GateReason,
    GateState,
    RuntimePhase,
    RuntimeState,
)

_LOG: Final = logging.getLogger(__name__)
NAME: Final = "codex"
_ERROR: Final = 300  # characters of a runtime's last words that the owner is told


class Supervisor:
    """The reader under its restart policy; its state as clients see it.

    `hold_s`: how long to wait before a start, asked again until it says 0 (a desktop
    that starts in this moment goes first: codex <= 0.163 can kill both).
    """

    def __init__(
        self,
        *,
        runtime: Runtime,
        emit: Emit,
        now_ms: Callable[[], int],
        on_change: Callable[[], None] | None = None,
        hold_s: Callable[[], float] | None = None,
    ) -> None:
        self._runtime = runtime
        self._emit = emit
        self._listener: Emit | None = None
        self._now_ms = now_ms
        self.on_change = on_change
        self.hold_s = hold_s
        self.tried = trio.Event()  # the first start has ended, well or not
        self._reader: Reader | None = None
        self._info: RuntimeInfo | None = None
        self._error: str | None = None  # in full; it may name paths
        self._state = RuntimeState(
            state=RuntimePhase.STARTING, name=NAME, since=now_ms()
        )

    @property
    def state(self) -> RuntimeState:
        """The runtime's life, as clients see it."""
        return self._state

    @property
    def owner_state(self) -> RuntimeState:
        """The same for who sits at the workstation: what is wrong, word for word."""
        return self._state.model_copy(update={"error": self._error})

    @property
    def is_up(self) -> bool:
        """Whether the reader can be asked now."""
        return self._reader is not None

    @property
    def info(self) -> RuntimeInfo | None:
        """What the last reader said about itself."""
        return self._info

    @property
    def ours_lock(self) -> bool:
        """Whether our codex takes thread locks; no before anybody knows.

        Each of our writers has to: one may be older than an update.
        """
        ours = (self._info, *self._runtime.writer_programs())
        return all(one is not None and one.locks_threads for one in ours)

    def is_current(self, program: RuntimeInfo) -> bool:
        """Whether a writer of ours is what the reader is: no update came since."""
        return self._info is not None and program.agrees_with(self._info)

    @property
    def reader(self) -> Reader:
        """The living reader. Raises: CodexUnavailable (runtimeDown)."""
        if self._reader is None:
            raise runtime_down(self._state, at_ms=self._now_ms())
        return self._reader

    def listen(self, listener: Emit) -> None:
        """Call `listener` with all that is told of the store, after it was emitted."""
        self._listener = listener

    def tell(self, event: RuntimeEvent) -> None:
        """Emit what has become of a thread in the store, or of the runtime."""
        self._emit(event)
        if self._listener is not None:
            self._listener(event)

    async def serve(self) -> None:
        """Run the reader until cancelled. See `tried`: an Agent without a runtime still
        says what is wrong."""
        policy = RestartPolicy()
        while True:
            await self._hold()
            served = False
            try:
                async with self._runtime.open_reader(self.tell) as reader:
                    self._ready(reader)
                    served = True
                    await self._serve_until_left()
            except Exception as exc:  # noqa: BLE001 - no fault of it may end the Agent
                jitter = random.random()  # noqa: S311 - no secret
                pause = policy.failed(now_s=trio.current_time(), jitter=jitter)
                self._error = _why(exc, served=served)[:_ERROR]
                self._down(told_to_all(exc), pause, failing=policy.is_failing)
            await trio.sleep(pause)

    async def _serve_until_left(self) -> NoReturn:
        try:
            await trio.sleep_forever()
        finally:
            self._reader = None  # nobody begins anything with it while it ends

    async def _hold(self) -> None:
        while self.hold_s is not None and (pause := self.hold_s()) > 0:  # noqa: ASYNC110 - nothing tells when a process has grown old enough
            await trio.sleep(pause)

    def _ready(self, reader: Reader) -> None:
        self._reader = reader
        self._info = reader.info
        self._error = None
        self._tell(RuntimePhase.READY)

    def _down(self, error: str, pause: float, *, failing: bool) -> None:
        self._reader = None
        phase = RuntimePhase.FAILED if failing else RuntimePhase.RESTARTING
        next_try = self._now_ms() + round(pause * 1_000)
        self._tell(phase, next_try_at=next_try, error=error)

    def _tell(
        self,
        phase: RuntimePhase,
        *,
        next_try_at: int | None = None,
        error: str | None = None,
    ) -> None:
        at = self._now_ms()
        self._state = RuntimeState(
            state=phase,
            name=self._info.name if self._info else NAME,
            version=self._info.version if self._info else None,
            since=at,
            next_try_at=next_try_at,
            error=error,
        )
        self.tried.set()
        data = RuntimeChanged(runtime=self._state)
        self.tell(Emitted(at=at, thread_id=None, data=data))
        if self.on_change is not None:
            self.on_change()


def _why(exc: Exception, *, served: bool) -> str:
    """Return what the owner is told: codex's own words only of a start that failed."""
    if not isinstance(exc, AdapterError | OSError):
        _LOG.error("the reader failed: %s", fault_of(exc))
        return "the Agent has a fault; its log says where"
    return str(exc) if served else told_at_start(exc)


def runtime_down(state: RuntimeState, *, at_ms: int) -> CodexUnavailable:
    """Return the refusal while no app-server answers."""
    wait = max(1_000, (state.next_try_at or 0) - at_ms)
    gate = GateState(
        state=GatePosition.READ_ONLY,
        reason=GateReason.RUNTIME_DOWN,
        since=state.since,
        retry_after_ms=wait,
    )
    return CodexUnavailable(
        "Codex is being started on the workstation. Try again in a moment; if that does "
        "not help, `threadgate status` shows why it does not run.",
        data={"gate": gate.wire()},
        retry_after_ms=wait,
    )
