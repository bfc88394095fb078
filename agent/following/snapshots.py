"""Takes snapshots of threads for `follow`. Trio shell over the reader.

PROTOCOL.md section 3 (Modes). Who holds a thread is asked before and after the read: a
program that ends in between had it, and what it left reads as cut short.
"""

from agent.access.sight import Sight
from agent.app_servers.supervisor import Supervisor
from agent.following.follow import Told
from agent.following.history_view import Snapshot
from agent.gate.gatekeeper import GateKeeper
from agent.gate.writers import Watch
from agent.limits import TURNS_A_PAGE, TURNS_REACHED, TURNS_READ
from agent.reading.standing import Others
from transport.protocol.turns import Turn


class Snapshots:
    """The store as it is now, and who else is at work in it."""

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        keeper: GateKeeper,
        watch: Watch,
        sight: Sight,
    ) -> None:
        self._supervisor = supervisor
        self._keeper = keeper
        self._watch = watch
        self._sight = sight

    @property
    def crowded(self) -> bool:
        """Whether somebody may be at work in a thread whose lock nobody has."""
        return self._keeper.last_look.is_crowded

    async def take(self, thread_id: str, told: Told, since: int | None) -> Snapshot:
        """Read a thread, back to what was told of it. Raises: AdapterError, Refusal."""
        before, crowded = self._watch.holders([thread_id]), self.crowded
        thread = await self._supervisor.reader.read_thread(thread_id)
        turns = await self._turns(thread_id, told, since)
        after = self._watch.holders([thread_id])
        self._sight.learn([thread])
        if told.root is None:
            told.root = thread.parent_id
        holder = after.get(thread_id) or before.get(thread_id)
        others = Others(holder=holder, lockless=crowded or self.crowded)
        return Snapshot(thread=thread, turns=turns, others=others)

    async def _turns(self, thread_id: str, told: Told, since: int | None) -> list[Turn]:
        turns: list[Turn] = []
        cursor: str | None = None
        while not turns or (
            cursor is not None
            and len(turns) < TURNS_REACHED
            and told.turns.lacks(turns, since=since)
        ):
            page = await self._supervisor.reader.list_turns(
                thread_id,
                cursor=cursor,
                limit=TURNS_A_PAGE if turns else TURNS_READ,
                order="desc",
                items="full",
            )
            turns += page.turns
            cursor = page.next_cursor
            if not page.turns:
                break
        return turns
