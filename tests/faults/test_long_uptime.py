"""Weeks of use in a minute: thousands of threads come and go, and nothing of them stays."""

import gc
import tempfile
from collections import Counter, OrderedDict, deque
from collections.abc import Generator, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import pytest
import trio

from agent.edge_limits import JOURNAL_EVENTS
from agent.limits import OURS_KEPT
from tests.support.agents import House, open_agent, open_owner
from tests.support.fake_runtime import FakeRuntime
from transport.client import Client
from transport.protocol import methods, threads
from transport.protocol.items import AgentMessage, ItemStatus
from transport.protocol.thread_acts import ThreadArchiveParams, ThreadDeleteParams
from transport.protocol.turns import TextInput

SLACK: Final = 10  # what is just under way

BOUNDED: Final = {
    "agent.events.entries:Told": JOURNAL_EVENTS,
    "agent.events.entries:Said": JOURNAL_EVENTS,
    "agent.events.journal:Journal._entries": JOURNAL_EVENTS,
    "agent.access.sight:Sight._cwds": 10_000,  # who hears that a thread is gone
    "agent.mutations.way:Way._starters": OURS_KEPT,
}
"""Tables that may go on growing, and how far."""


def table_sizes() -> Counter[str]:
    """Return how long every table of our own objects is: class and attribute → length.

    Whatever table somebody adds is counted, too.
    """
    gc.collect()
    found: Counter[str] = Counter()
    for one in cast("list[object]", gc.get_objects()):
        kind = type(one)
        module = getattr(kind, "__module__", None)
        if not isinstance(module, str) or not module.startswith(("agent.", "adapter.")):
            continue
        for name in _names(one):
            value = getattr(one, name, None)
            if isinstance(value, dict | set | list | deque | OrderedDict):
                size = len(cast("Sized", value))
                found[f"{module}:{kind.__name__}.{name}"] += size
        found[f"{module}:{kind.__name__}"] += 1
    return found


def _names(one: object) -> list[str]:
    slots = [
        name
        for kind in type(one).__mro__
        for name in cast("Any", getattr(kind, "__slots__", ()))
    ]
    return [*vars(one), *slots] if hasattr(one, "__dict__") else slots


@contextmanager
def memory_folder() -> Generator[Path]:
    """A folder on no disk: thousands of durable writes are not what is tested here."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        yield Path(name)


class Life:
    """Threads that are started, worked in, renamed, archived or deleted."""

    def __init__(self, house: House, client: Client) -> None:
        self._house = house
        self._client = client
        self._count = 0

    async def pass_by(self, count: int) -> None:
        for _ in range(count):
            self._count += 1
            await self._one(self._count)

    async def _one(self, number: int) -> None:
        key = f"{number:032d}"
        started = await self._client.call(
            methods.THREAD_START,
            threads.ThreadStartParams(
                cwd=str(self._house.config.state_dir),
                input=[TextInput(type="text", text=f"Do {number}.")],
                request_key=f"start-{key}",
            ),
        )
        thread_id = started.thread.id
        writer = self._house.runtime.writers[-1]
        message = AgentMessage(
            id=f"m{number}",
            turn_id=started.turn.id,
            status=ItemStatus.IN_PROGRESS,
            text="",
        )
        writer.begin_item(message)
        writer.delta(message.id, "Well.")
        done = {"text": "Well.", "status": ItemStatus.COMPLETED}
        writer.end_item(message.model_copy(update=done))
        writer.finish_turn()
        if number % 2:
            gone = ThreadDeleteParams(thread_id=thread_id, request_key=f"leave-{key}")
            await self._client.call(methods.THREAD_DELETE, gone)
        else:
            away = ThreadArchiveParams(thread_id=thread_id, request_key=f"leave-{key}")
            await self._client.call(methods.THREAD_ARCHIVE, away)
        self._house.runtime.threads.pop(thread_id, None)
        self._house.runtime.writers.clear()
        self._house.runtime.log.clear()


@pytest.mark.parametrize(
    "count", [100, pytest.param(1_500, marks=pytest.mark.long)], ids=str
)
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "alone"])
async def test_nothing_is_kept_of_threads_that_are_archived_or_deleted(
    count: int, watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.app_servers.settling.NEXT_TURN_S", 0.0)
    with trio.fail_after(300), memory_folder() as folder:
        async with (
            open_agent(folder, runtime=FakeRuntime()) as house,
            open_owner(house) as client,
            trio.open_nursery() as nursery,
        ):
            if watched:
                nursery.start_soon(_watch, client)
            life = Life(house, client)
            await life.pass_by(20)
            before = table_sizes()
            await life.pass_by(count)
            after = table_sizes()
            grown = {
                name: (before[name], size)
                for name, size in after.items()
                if size > max(before[name] + SLACK, BOUNDED.get(name, 0))
            }
            assert not grown
            nursery.cancel_scope.cancel()


async def _watch(client: Client) -> None:
    async with client.subscribe("all") as events:
        async for _ in events:
            pass
