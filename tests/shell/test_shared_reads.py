"""Ten clients that ask the same at once cost one read, and nobody is shown the past."""

from dataclasses import dataclass, field

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from agent.reading.shared_reads import SharedReads
from transport.errors import Overloaded


@dataclass(slots=True)
class Store:
    """Answers when it is let: `go` answers the read that is under way."""

    head: int = 1
    asked: int = 0
    refusal: Overloaded | None = None
    _go: trio.Event = field(default_factory=trio.Event)

    async def read(self) -> str:
        self.asked += 1
        number = self.asked
        await self._go.wait()
        if self.refusal is not None:
            raise self.refusal
        return f"read {number}"

    def go(self) -> None:
        self._go.set()
        self._go = trio.Event()


class Crowd:
    """Many who ask; what each was answered."""

    def __init__(self, nursery: trio.Nursery, store: Store) -> None:
        self.shared = SharedReads(lambda: store.head)
        self.answers: list[str] = []
        self._nursery = nursery
        self._store = store

    async def come(self, count: int, asked: str = "list") -> None:
        for _ in range(count):
            self._nursery.start_soon(self._ask, asked)
        await wait_all_tasks_blocked()

    async def _ask(self, asked: str) -> None:
        try:
            self.answers.append(await self.shared.get(asked, self._store.read))
        except Overloaded:
            self.answers.append("refused")


@pytest.fixture
async def store() -> Store:
    return Store()


@pytest.fixture
async def crowd(nursery: trio.Nursery, store: Store) -> Crowd:
    return Crowd(nursery, store)


async def test_who_asks_the_same_meanwhile_gets_the_same_answer(
    crowd: Crowd, store: Store
) -> None:
    await crowd.come(10)
    await crowd.come(1, "another list")
    assert store.asked == 2
    store.go()
    await wait_all_tasks_blocked()
    assert sorted(crowd.answers) == ["read 1"] * 10 + ["read 2"]


async def test_who_comes_later_is_read_for_anew(crowd: Crowd, store: Store) -> None:
    for number in (1, 2):
        await crowd.come(1)
        store.go()
        await wait_all_tasks_blocked()
        assert crowd.answers[-1] == f"read {number}"


async def test_nobody_is_answered_by_a_read_that_began_before_what_was_told(
    crowd: Crowd, store: Store
) -> None:
    """Whose own rename was just acknowledged must see it in the list."""
    await crowd.come(2)
    store.head += 1
    await crowd.come(8)
    assert store.asked == 1, "they wait, and ask together then"
    store.go()
    await wait_all_tasks_blocked()
    assert crowd.answers == ["read 1"] * 2
    assert store.asked == 2
    store.go()
    await wait_all_tasks_blocked()
    assert crowd.answers == ["read 1"] * 2 + ["read 2"] * 8


async def test_who_asked_first_may_go_away(
    crowd: Crowd, store: Store, nursery: trio.Nursery
) -> None:
    first = trio.CancelScope()

    async def ask_and_leave() -> None:
        with first:
            await crowd.shared.get("list", store.read)

    nursery.start_soon(ask_and_leave)
    await wait_all_tasks_blocked()
    await crowd.come(3)
    first.cancel()
    await wait_all_tasks_blocked()
    assert store.asked == 2, "the next one asks for them all"
    store.go()
    await wait_all_tasks_blocked()
    assert crowd.answers == ["read 2"] * 3
    assert not len(crowd.shared)


async def test_a_refusal_is_everybodys_and_is_not_kept(
    crowd: Crowd, store: Store
) -> None:
    store.refusal = Overloaded("Too much to do.")
    await crowd.come(3)
    store.go()
    await wait_all_tasks_blocked()
    assert crowd.answers == ["refused"] * 3
    store.refusal = None
    await crowd.come(1)
    store.go()
    await wait_all_tasks_blocked()
    assert crowd.answers[-1] == "read 2"
