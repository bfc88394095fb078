"""Is a thread where its client, its reader and its writer believe? Trio shell.

PROTOCOL.md section 3 (expectedLastTurnId). The reader is fresh after a clean end; after a
crash of ours it can miss a turn that loading the thread brings back. That one is no
conflict: it is ours.
"""

from collections.abc import Callable

from adapter.calls.refusals import not_offered
from adapter.errors import AdapterError, CodexRefusedError
from adapter.runtime.reader import PendingWork
from adapter.runtime.threads import Loaded
from agent.app_servers.lease import Lease
from agent.app_servers.lease_registry import LeaseRegistry
from agent.app_servers.supervisor import Supervisor
from agent.mutations.refusals import failed_before, other_last_turn, running
from agent.records.ledger import Ledger
from transport.errors import Conflict
from transport.protocol.turns import Turn, TurnStatus


def check_idle(lease: Lease) -> None:
    """Raise `Conflict` (running) while the writer's thread has a turn."""
    turn = running_turn(lease)
    if turn is None:
        return
    raise running(
        turn,
        "A turn is running in this thread; nothing was sent. Wait for its end, or "
        "interrupt it.",
    )


def running_turn(lease: Lease) -> Turn | None:
    """Return the turn that runs in the lease's own thread."""
    writer = lease.writer
    if writer is None or writer.running_turn_id is None:
        return None
    turn_id = writer.running_turn_id
    return writer.live_turn(turn_id) or Turn(
        id=turn_id, thread_id=lease.key, status=TurnStatus.IN_PROGRESS
    )


def check_expected(
    expected: str | None, newest: Turn | None, *known: str | None
) -> None:
    """Raise `Conflict` (lastTurn) unless the expected turn is one of the newest known."""
    if expected is not None and expected not in known:
        raise other_last_turn(newest)


def check_pending(pending: PendingWork, *, allowed: bool) -> None:
    """Raise `Conflict` (queue, goal) where loading the thread would start turns."""
    if not pending or allowed:
        return
    raise Conflict(
        "Loading this thread would start work that somebody else left in it (a queued "
        "message or a goal). Send with allowPending if that is wanted.",
        data={
            "what": "queue" if pending.queue else "goal",
            "queue": list(pending.queue),
            "goal": pending.goal,
        },
    )


def check_no_goal(lease: Lease, *, allowed: bool) -> None:
    """Raise `Conflict` (goal) while an active goal may start a turn at any moment."""
    if not lease.has_goal or allowed:
        return
    raise Conflict(
        "This thread pursues a goal, and a turn of it may begin at any moment. Pause the "
        "goal (`threadgate goal THREAD --pause`), then try again.",
        data={"what": "goal"},
    )


class NewestTurns:
    """Asks for the newest turn, and knows which turns are our own."""

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        leases: LeaseRegistry,
        ledger: Ledger,
        now_ms: Callable[[], int],
    ) -> None:
        self._supervisor = supervisor
        self._leases = leases
        self._ledger = ledger
        self._now_ms = now_ms

    async def read(self, thread_id: str) -> Turn | None:
        """Return the newest turn on the disk. Raises: Refusal."""
        try:
            page = await self._supervisor.reader.list_turns(
                thread_id, cursor=None, limit=1, order="desc", items="none"
            )
        except AdapterError as exc:
            if isinstance(exc, CodexRefusedError) and not_offered(exc):
                return None  # a thread that has no turn yet
            raise self._refusal(exc, thread_id) from exc
        return page.turns[0] if page.turns else None

    async def hidden(self, thread_id: str, expected: str | None) -> str | None:
        """Return the expected turn where a crash of ours may hide it from the reader."""
        if expected is None or not self._leases.ended_unclean(thread_id):
            return None
        return expected if await self._ledger.is_ours(thread_id, expected) else None

    async def pending(self, thread_id: str) -> PendingWork:
        """Return what loading the thread would start. Raises: Refusal."""
        try:
            return await self._supervisor.reader.pending_work(thread_id)
        except AdapterError as exc:
            raise self._refusal(exc, thread_id) from exc

    def _refusal(self, exc: AdapterError, thread_id: str) -> Exception:
        return failed_before(exc, thread_id=thread_id, at_ms=self._now_ms())

    async def check_loaded(
        self, thread_id: str, loaded: Loaded, told: Turn | None, expected: str | None
    ) -> bool:
        """Compare a fresh writer's newest turn with what the reader had told.

        Return whether a turn of ours has come back. Raises: Conflict (lastTurn) where
        somebody else's has come in between.
        """
        last = loaded.last_turn
        if _id(last) == _id(told):
            check_expected(expected, told, _id(told))
            return False
        if last is not None and await self._is_ours(thread_id, last):
            return True
        again = await self.read(thread_id)
        if expected is None and _id(again) == _id(last):
            return False
        raise other_last_turn(last)

    async def _is_ours(self, thread_id: str, turn: Turn) -> bool:
        if await self._ledger.is_ours(thread_id, turn.id):
            return True
        cut_short = turn.status is TurnStatus.INTERRUPTED and turn.completed_at is None
        if not cut_short or turn.items:
            return False
        # Its id was never told: an empty turn behind the last known one, in a thread
        # whose last writer of ours did not end by itself.
        died = self._leases.ended_unclean(thread_id)
        return died or await self._ledger.has_unknown(thread_id)


def _id(turn: Turn | None) -> str | None:
    return turn.id if turn else None
