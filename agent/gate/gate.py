"""The gate: whether mutations are possible now, and if not, because of whom. Sans-IO.

PROTOCOL.md section 3 (Gate). It closes at the first look that shows a reason, and opens
only when two looks, `GONE_S` apart, show none: a program that restarts itself is away
for a moment.
"""

from dataclasses import dataclass
from typing import Any, Final

from agent.gate.engines import Foreign, Look
from agent.limits import (
    GONE_RETRY_MS,
    GONE_S,
    RUNTIME_RETRY_MS,
    WRITER_RETRY_MS,
)
from transport.errors import CodexUnavailable
from transport.protocol.gateway import GatePosition, GateReason, GateState, Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the gate is decided from. `ours_lock`: our own codex takes thread locks."""

    look: Look
    runtime_up: bool
    ours_lock: bool
    read_only: bool = False
    locked: bool = False


_RETRY: Final = {
    GateReason.DESKTOP_ACTIVE: WRITER_RETRY_MS,
    GateReason.WRITER_WITHOUT_LOCK: WRITER_RETRY_MS,
    GateReason.RUNTIME_DOWN: RUNTIME_RETRY_MS,
}
_WRITERS: Final = (GateReason.DESKTOP_ACTIVE, GateReason.WRITER_WITHOUT_LOCK)


def _reason(world: World) -> tuple[GateReason | None, Foreign | None]:
    if world.locked:
        return GateReason.LOCKED, None
    if world.read_only:
        return GateReason.CONFIGURED, None
    if (desktop := world.look.desktop) is not None:
        return GateReason.DESKTOP_ACTIVE, desktop
    if (engine := world.look.lockless(ours_lock=world.ours_lock)) is not None:
        return GateReason.WRITER_WITHOUT_LOCK, engine
    if world.look.blind:
        return GateReason.WRITER_WITHOUT_LOCK, None
    if not world.runtime_up:
        return GateReason.RUNTIME_DOWN, None
    return None, None


class Gate:
    """Open or read-only. Starts closed: nobody has looked yet."""

    def __init__(self, *, at_ms: int) -> None:
        self._state = _closed(GateReason.RUNTIME_DOWN, None, at_ms)
        self._away_since: float | None = None

    @property
    def state(self) -> GateState:
        """The gate as of the last look."""
        return self._state

    @property
    def is_open(self) -> bool:
        """Whether mutations may go on, as of the last look."""
        return self._state.state is GatePosition.OPEN

    @property
    def is_settling(self) -> bool:
        """Whether the writer was away in the last look, and one more decides."""
        return self._away_since is not None

    def observe(self, world: World, *, at_ms: int, now_s: float) -> GateState | None:
        """Take one look in; return the new state where it changed.

        `at_ms` is the wall clock (for people), `now_s` a monotonic one (for us).
        """
        reason, foreign = _reason(world)
        if reason is None and self._may_be_back(world.look, now_s):
            return None
        if reason is not None or self.is_open:
            self._away_since = None
        state = _closed(reason, foreign, at_ms) if reason else _opened(at_ms)
        if _same(state, self._state):
            return None
        self._away_since = None
        self._state = state
        return state

    def _may_be_back(self, look: Look, now_s: float) -> bool:
        """Whether the writer that closed the gate is away for too short a time."""
        writer = self._state.writer
        if self._state.reason not in _WRITERS or writer is None:
            return False
        if any(
            (one.pid, one.since) == (writer.pid, writer.since) for one in look.foreign
        ):
            return False  # it is here, and turned out to be harmless
        if self._away_since is None:
            self._away_since = now_s
        return now_s - self._away_since < GONE_S

    def refusal(self, thread_id: str | None = None) -> CodexUnavailable:
        """Return what a mutation is refused with while the gate is closed."""
        state = self._state
        after = GONE_RETRY_MS if self.is_settling else state.retry_after_ms
        data: dict[str, Any] = {"gate": state.wire()}
        if thread_id is not None:
            data["threadId"] = thread_id
        return CodexUnavailable(
            _sentence(state),
            data=data,
            retryable=after is not None,
            retry_after_ms=after,
        )


def _opened(at_ms: int) -> GateState:
    return GateState(state=GatePosition.OPEN, since=at_ms)


def _closed(reason: GateReason, foreign: Foreign | None, at_ms: int) -> GateState:
    return GateState(
        state=GatePosition.READ_ONLY,
        reason=reason,
        writer=foreign.writer() if foreign else None,
        since=at_ms,
        retry_after_ms=_RETRY.get(reason),
    )


def _same(one: GateState, other: GateState) -> bool:
    return one.reason is other.reason and one.writer == other.writer


def _who(writer: Writer | None) -> str:
    if writer is None:
        return "Another program"
    return f"{writer.name[:1].upper()}{writer.name[1:]} (process {writer.pid})"


def _sentence(state: GateState) -> str:
    who = _who(state.writer)
    match state.reason:
        case GateReason.DESKTOP_ACTIVE:
            return (
                f"{who} is running on the workstation, so threads are read-only from "
                "here. Quit it there, then send again; reading goes on meanwhile."
            )
        case GateReason.WRITER_WITHOUT_LOCK if state.writer is None:
            return (
                "Which programs run on the workstation cannot be seen now, so threads "
                "are read-only from here. Try again in a moment."
            )
        case GateReason.WRITER_WITHOUT_LOCK:
            return (
                f"{who} may write to any thread and takes no locks that would keep us "
                "apart. When it has ended, send again."
            )
        case GateReason.RUNTIME_DOWN:
            return "Codex is being started on the workstation. Try again in a moment."
        case GateReason.LOCKED:
            return (
                "The owner has locked this Agent. Only `threadgate unlock` there helps."
            )
        case _:
            return "The owner's settings make this Agent read-only."
