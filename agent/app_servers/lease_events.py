"""What a writer tells, with our side of its thread put in. Sans-IO.

PROTOCOL.md sections 5 and 6: mode, lease and status of a thread that we hold are ours to
say; a runtime does not know them.
"""

from collections.abc import Callable

from adapter.runtime.events import Emit, Emitted, RuntimeEvent
from agent.app_servers.lease import Lease
from transport.protocol.events import (
    GoalChanged,
    ThreadChanged,
    ThreadReverted,
    ThreadStarted,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.gateway import LeaseState
from transport.protocol.goals import GoalStatus
from transport.protocol.threads import Thread, ThreadMode, ThreadStatus

ModeOf = Callable[[str], ThreadMode]
"""The mode of a thread that no writer of ours has."""

Listener = Callable[[RuntimeEvent], None]


class LeaseEvents:
    """The way of every writer's events. `state`: of the lease with this key."""

    def __init__(
        self,
        *,
        emit: Emit,
        state: Callable[[str], LeaseState],
        now_ms: Callable[[], int],
        mode_of: ModeOf,
    ) -> None:
        self._mode_of = mode_of
        self._emit = emit
        self._state = state
        self._now_ms = now_ms
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every event of every writer, after it was emitted."""
        self._listeners.append(listener)

    def tell(self, lease: Lease, event: RuntimeEvent) -> None:
        """Pass on what the lease's writer tells."""
        if event.root_thread_id is not None and event.thread_id is not None:
            lease.meet(event.thread_id)
        if isinstance(event, Emitted):
            event = self._with_ours(lease, event)
        self._emit(event)
        for listener in self._listeners:
            listener(event)

    def _with_ours(self, lease: Lease, event: Emitted) -> Emitted:
        """Put our side of a thread (mode, lease) into what the runtime tells of it."""
        data = event.data
        if isinstance(data, TurnStarted) and data.turn.thread_id != lease.thread_id:
            lease.child_began(data.turn.thread_id)
        if isinstance(data, TurnStarted) and data.turn.thread_id == lease.thread_id:
            self._went_on(lease, data.turn.id)
            if not lease.has_goal:
                lease.goal_by = None  # its last turn may have run on without it
        if isinstance(data, ThreadReverted) and data.thread_id == lease.thread_id:
            self._went_on(lease, data.last_turn_id)
        if isinstance(data, TurnCompleted) and data.turn.thread_id == lease.thread_id:
            lease.turn_ended()
        if isinstance(data, GoalChanged) and event.thread_id == lease.thread_id:
            goal = data.goal
            lease.has_goal = goal is not None and goal.status is GoalStatus.ACTIVE
            lease.changes.ring()
        if not isinstance(data, ThreadStarted | ThreadChanged):
            return event
        if data.thread.id == lease.thread_id:
            lease.thread = data.thread
        thread = self.dressed(lease, data.thread)
        return Emitted(
            at=event.at,
            thread_id=event.thread_id,
            root_thread_id=event.root_thread_id,
            data=data.model_copy(update={"thread": thread}),
        )

    def _went_on(self, lease: Lease, turn_id: str) -> None:
        if lease.thread is not None:
            last = {"last_turn_id": turn_id}
            lease.thread = lease.thread.model_copy(update=last)

    def dressed(self, lease: Lease, thread: Thread) -> Thread:
        """Return the thread with what our lease knows better than any store."""
        state = self._state(lease.key)
        ours = state in (LeaseState.LOADING, LeaseState.HELD, LeaseState.RELEASING)
        mode = ThreadMode.LIVE if ours else self._mode_of(thread.id)
        update: dict[str, object] = {"lease": state, "mode": mode}
        if thread.id == lease.thread_id and lease.renamed is not None:
            update["title"] = lease.renamed
        if lease.writer is not None:
            status = lease.writer.status_of(thread.id) if ours else ThreadStatus.IDLE
            known = thread.id == lease.thread_id or status is not ThreadStatus.UNKNOWN
            kept = status is ThreadStatus.IDLE and thread.status is ThreadStatus.FAILED
            if known and not kept:
                update["status"] = status
        return thread.model_copy(update=update)

    def announce(self, lease: Lease) -> None:
        """Tell everybody that our side of the lease's thread has changed."""
        if lease.thread is None:
            return
        thread = self.dressed(lease, lease.thread)
        data = ThreadChanged(thread=thread)
        event = Emitted(at=self._now_ms(), thread_id=thread.id, data=data)
        self._emit(event)
        for listener in self._listeners:
            listener(event)
