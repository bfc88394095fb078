"""Threads that another program has, and somebody who follows them, in shell tests."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from adapter.runtime.events import Emitted
from tests.support.door import HOLDER, House, wall_ms
from tests.support.fake_threads import Stored, make_turn
from transport.background import open_background
from transport.protocol.turns import Turn, TurnStatus


@asynccontextmanager
async def following(house: House, *threads: str) -> AsyncGenerator[None]:
    """Somebody is subscribed to these threads, or to all."""
    follower = house.door.follower
    async with open_background(follower.serve):
        await follower.prepare(threads or None)
        follower.want(house, frozenset(threads) if threads else None)
        yield
        follower.forget(house)


def held(house: House, thread_id: str = "thr", *turns: str) -> Stored:
    """A thread that another program has."""
    stored = house.runtime.add(thread_id, *turns)
    house.watch.locks[thread_id] = HOLDER
    return stored


def append(stored: Stored, turn: Turn) -> None:
    """The other program has added a turn, or goes on with its last one."""
    if stored.turns and stored.turns[-1].id == turn.id:
        stored.turns[-1] = turn
    else:
        stored.turns.append(turn)
    stored.thread = stored.thread.model_copy(update={"updated_at": wall_ms()})


def foreign_turn(turn_id: str, status: TurnStatus = TurnStatus.INTERRUPTED) -> Turn:
    """A turn as history tells it while it runs elsewhere, or its end."""
    return make_turn(turn_id, "thr", status).model_copy(
        update={"started_at": wall_ms()}
    )


def names(house: House) -> list[str]:
    """Return the events of threads so far; items by their id."""
    return [
        event.data.event if isinstance(event, Emitted) else event.item.id  # type: ignore[union-attr]  # no deltas here
        for event in house.events
        if event.thread_id is not None
    ]


def reads(house: House) -> int:
    """Return how often turns were read."""
    return house.runtime.log.count("list_turns")
