"""Threads and turns of the store as they stand, now. Trio shell around `standing`.

PROTOCOL.md section 5. What a writer of ours runs is told by that writer; of all others it
is asked who has them. There is no checkpoint in this module.
"""

from collections.abc import Collection

from adapter.shapes.settings import settings_shown
from agent.app_servers.lease import Lease
from agent.app_servers.lease_registry import LeaseRegistry
from agent.gate.gatekeeper import GateKeeper
from agent.gate.writers import Watch
from agent.reading.standing import Others, is_open_ended, judged_thread, judged_turn
from transport.protocol.gateway import LeaseState, Writer
from transport.protocol.threads import Thread, ThreadStatus
from transport.protocol.turns import Turn, TurnStatus


class Judge:
    """Knows whose a thread is, and so what it does."""

    def __init__(
        self, *, keeper: GateKeeper, leases: LeaseRegistry, watch: Watch
    ) -> None:
        self._keeper = keeper
        self._leases = leases
        self._watch = watch

    def threads(self, rows: Collection[Thread]) -> list[Thread]:
        """Return threads of the store as they stand: whose they are, what they do."""
        holders = self._watch.holders([row.id for row in rows])
        return [self._stands(row, holders.get(row.id)) for row in rows]

    def thread(self, row: Thread) -> Thread:
        """Return one thread of the store as it stands."""
        return self.threads([row])[0]

    def thread_with(self, row: Thread, newest: Turn | None) -> Thread:
        """The same where its newest turn is known, as it stands; `None`: it has none."""
        lease = self._leases.lease_of(row.id)
        if lease is not None:
            return self._live(lease, row, newest)
        others = self._others(row.id, self.holder(row.id))
        return judged_thread(row, others, newest=newest, turns_known=True)

    def turns(
        self,
        thread_id: str,
        turns: list[Turn],
        *,
        newest: str | None,
        before: Writer | None,
    ) -> list[Turn]:
        """Judge turns that history cannot tell from running ones. `before`: who had the
        thread when they were read; it may have let go since, its turn well ended."""
        lease = self._leases.lease_of(thread_id)
        if lease is not None:
            return [
                _begun(lease, turn) if turn.id == newest else turn for turn in turns
            ]
        others = self._others(thread_id, self.holder(thread_id) or before)
        return [judged_turn(turn, others, newest=turn.id == newest) for turn in turns]

    def holder(self, thread_id: str) -> Writer | None:
        """Return the other program that has the thread, if one is known."""
        return self._watch.holders([thread_id]).get(thread_id)

    def _stands(self, thread: Thread, holder: Writer | None) -> Thread:
        lease = self._leases.lease_of(thread.id)
        if lease is not None:
            return self._live(lease, thread)
        state = self._leases.state(thread.id)
        if state in (LeaseState.LOADING, LeaseState.RELEASING):
            return thread.model_copy(
                update={"lease": state, "status": ThreadStatus.IDLE}
            )
        others = self._others(thread.id, holder)
        return judged_thread(thread, others, turns_known=False)

    def _live(self, lease: Lease, thread: Thread, newest: Turn | None = None) -> Thread:
        thread = self._leases.dressed(lease, thread)
        update: dict[str, object] = {}
        if lease.key == thread.id and lease.writer is not None:
            update["last_turn_id"] = lease.writer.last_turn_id
            if lease.loaded is not None:
                update["settings"] = settings_shown(lease.settings)
            if newest is not None and newest.status is TurnStatus.IN_PROGRESS:
                update["last_turn_id"] = newest.id
                if lease.writer.running_turn_id is None:
                    update["status"] = ThreadStatus.RUNNING
        else:
            update["root_id"] = lease.key
            if newest is not None:
                update["last_turn_id"] = newest.id
        return thread.model_copy(update=update)

    def _others(self, thread_id: str, holder: Writer | None) -> Others:
        if holder is None:
            self._leases.forget_elsewhere(thread_id)
        look = self._keeper.last_look
        lockless = look.lockless(ours_lock=True) or look.desktop
        return Others(holder=holder, lockless=lockless is not None)


def _begun(lease: Lease, newest: Turn) -> Turn:
    """Return the newest turn of a thread that we have: nobody else can run one in it.

    Codex writes a turn down before it tells the turn's writer of it.
    """
    writer = lease.writer
    if writer is None or lease.key != newest.thread_id or not is_open_ended(newest):
        return newest
    if newest.id == writer.last_turn_id or writer.knows_turn(newest.id):
        return newest
    return newest.model_copy(update={"status": TurnStatus.IN_PROGRESS})
