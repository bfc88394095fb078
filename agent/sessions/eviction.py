"""What ends with a device's rights: sessions, messages that wait, acts, turns. Trio shell.

PROTOCOL.md sections 1 and 3, SECURITY.md (Revocation). All of it ends in memory before
the first checkpoint; what is waited for then is that it has ended, and nobody who stops
waiting can stop that.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import trio

from agent.edge_limits import REVOKING_S, STOPPING_S
from agent.offload import in_thread
from agent.queue.queue_book import Waiting
from agent.records.audit import Audit
from agent.sessions.acts import Acts, Carried
from agent.sessions.session_table import SessionTable
from agent.sessions.sessions import Session
from transport.errors import CloseCode

Stops = Mapping[str, Callable[[], Awaitable[None]]]
"""Turns that run, and goals that would begin further ones, each with what ends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted:
    """Devices that are out, and what of theirs may still be on its way to its end.

    `stops`: what is being ended; `turns`: of what runs their turns, too.
    """

    device_ids: tuple[str, ...]
    sessions: tuple[Session, ...]
    dropped: Mapping[str, int]
    acts: tuple[Callable[[], Awaitable[None]], ...]
    stops: dict[str, Carried[None]]
    turns: bool


class Eviction:
    """Puts devices out.

    `withdraw` takes a device's waiting messages out of the memory, `forget` writes that
    down, and says whether the disk took it. `goals_of`: the goals of a
    device; `stops_of`: its turns as well.
    """

    def __init__(
        self,
        *,
        table: SessionTable[Session],
        acts: Acts,
        audit: Audit,
        withdraw: Callable[[str], list[Waiting]],
        forget: Callable[[], Awaitable[bool]],
        goals_of: Callable[[str], Stops],
        stops_of: Callable[[str], Stops],
    ) -> None:
        self._table = table
        self._acts = acts
        self._audit = audit
        self._withdraw = withdraw
        self._forget = forget
        self._goals_of = goals_of
        self._stops_of = stops_of

    def begin(
        self, device_ids: Iterable[str], code: CloseCode, *, stop: bool
    ) -> Evicted:
        """End it all in memory; they must have lost their rights. No checkpoint."""
        ids = tuple(device_ids)
        return Evicted(
            device_ids=ids,
            # Sessions first: a device does not hear of what follows.
            sessions=tuple(
                one for each in ids for one in hang_up(self._table, each, code)
            ),
            dropped=self.drop_queues(ids),
            acts=tuple(self._acts.cut(one) for one in ids),
            stops=self._stop(ids, turns=stop, but={}),
            turns=stop,
        )

    def drop_queues(self, device_ids: Iterable[str]) -> dict[str, int]:
        """Drop what waits of these devices in memory; return how many. No checkpoint."""
        counts = {one: len(self._withdraw(one)) for one in device_ids}
        return {one: count for one, count in counts.items() if count}

    async def finish(self, gone: Evicted) -> None:
        """Return when nothing of these devices happens any more."""
        with trio.move_on_after(REVOKING_S):
            await self.write_down(gone.dropped)
            for session in gone.sessions:
                await session.wait_gone()
            for ended in gone.acts:
                await ended()
        # What one of these acts has started on its way to its end is stopped as well.
        late = self._stop(gone.device_ids, turns=gone.turns, but=gone.stops)
        with trio.move_on_after(STOPPING_S):
            for stopping in (*gone.stops.values(), *late.values()):
                await stopping.wait()

    async def write_down(self, dropped: Mapping[str, int]) -> bool:
        """Forget on the disk too what was dropped; return whether the disk did."""
        await in_thread(partial(note_dropped, self._audit, dropped))
        return await self._forget()

    def _stop(
        self, device_ids: Iterable[str], *, turns: bool, but: Mapping[str, object]
    ) -> dict[str, Carried[None]]:
        """Begin to end what these devices have begun, all at once."""
        stops_of = self._stops_of if turns else self._goals_of
        return {
            name: self._acts.carry(stop)
            for device_id in device_ids
            for name, stop in stops_of(device_id).items()
            if name not in but
        }


def note_dropped(audit: Audit, dropped: Mapping[str, int]) -> None:
    """Write down how many messages of which devices were dropped. Blocking."""
    for device_id, count in dropped.items():
        audit.note("queue/dropped", device=device_id, count=count)


def hang_up(
    table: SessionTable[Session], device_id: str, code: CloseCode = CloseCode.REVOKED
) -> list[Session]:
    """End every session of a device; return them."""
    sessions = table.of(device_id)
    for session in sessions:
        session.end(code)
    return sessions
