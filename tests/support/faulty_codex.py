"""A whole Agent on the fake app-server: what clients see of a codex that misbehaves."""

import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import trio

from adapter.calls.versions import PINNED
from adapter.codex import CodexRuntime
from agent.app import Running, run_agent
from agent.clocks import up_ms, wall_ms
from tests.support.agents import House, client_info, make_config
from tests.support.codex import work_folder
from tests.support.door import FakeWatch
from tests.support.fake_app_server import (
    completed,
    loaded,
    place_fake,
    sent,
    started,
    thread,
    turn,
)
from tests.support.fake_runtime import FakeRuntime
from tests.support.real_agent import open_local
from transport.background import open_background
from transport.client import Client, ClientEvent, DeltaSeen, EventSeen, Resumed
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    EventData,
    ItemCompleted,
    ItemStarted,
    Notice,
    ThreadChanged,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.gateway import LeaseState
from transport.protocol.turns import TurnStartParams

THREAD: Final = "thr_1"
TURN: Final = "turn_1"
Steps = Sequence[dict[str, Any]]
DataT = TypeVar("DataT", bound=EventData)

STARTED: Final[Steps] = [{"result": {"turn": turn(TURN)}}, dict(started(TURN))]
ENDS: Final[Steps] = [dict(completed(TURN))]
COMMAND: Final[dict[str, Any]] = {
    "type": "commandExecution",
    "id": "cmd_1",
    "command": "make",
    "cwd": "/work",
    "status": "inProgress",
    "commandActions": [],
    "aggregatedOutput": None,
    "exitCode": None,
    "durationMs": None,
    "processId": None,
    "source": "agent",
}


def in_turn(**more: Any) -> dict[str, Any]:
    """Return the params of something that happens in the turn."""
    return {"threadId": THREAD, "turnId": TURN, **more}


def begun(item: dict[str, Any]) -> dict[str, Any]:
    """Return the step that says item/started."""
    return {"notify": "item/started", "params": in_turn(item=item, startedAtMs=1)}


def ended(item: dict[str, Any]) -> dict[str, Any]:
    """Return the step that says item/completed."""
    return {"notify": "item/completed", "params": in_turn(item=item, completedAtMs=2)}


def message(text: str = "") -> dict[str, Any]:
    """Return an agentMessage."""
    return {"type": "agentMessage", "id": "msg_1", "text": text}


def delta(text: str, **more: Any) -> dict[str, Any]:
    """Return the step that says a piece of that message."""
    params = in_turn(itemId="msg_1", delta=text)
    return {"notify": "item/agentMessage/delta", "params": params, **more}


def output(text: str) -> dict[str, Any]:
    """Return the step that says a piece of the command's output."""
    params = in_turn(itemId="cmd_1", delta=text)
    return {"notify": "item/commandExecution/outputDelta", "params": params}


def question(number: int = 0) -> dict[str, Any]:
    """Return the step that asks whether the command may run."""
    params = in_turn(
        itemId="cmd_1",
        startedAtMs=1,
        command="make",
        cwd="/work",
        availableDecisions=["accept", "decline", "cancel"],
    )
    method = "item/commandExecution/requestApproval"
    return {"ask": method, "id": number, "params": params}


def idle_thread(**on: Any) -> dict[str, Any]:
    """Return the plays of a codex that has one thread, idle; `on` overrides them."""
    plays: dict[str, Any] = {
        "thread/list": [[{"result": {"data": [thread(THREAD)], "nextCursor": None}}]],
        "thread/read": [[{"result": {"thread": thread("$threadId")}}]],
        "thread/turns/list": [[{"result": {"data": [], "nextCursor": None}}]],
        "thread/queue/list": [[{"result": {"data": [], "nextCursor": None}}]],
        "thread/resume": [[{"result": loaded(THREAD)}]],
    }
    return plays | {name.replace("__", "/"): play for name, play in on.items()}


@dataclass
class Ear:
    """All that one client was told, and what it waits for."""

    told: list[ClientEvent] = field(default_factory=list[ClientEvent])
    _news: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    async def listen(
        self, client: Client, *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Hear everything, until cancelled."""
        async with client.subscribe("all") as events:
            async for event in events:
                if isinstance(event, Resumed):
                    task_status.started()
                self.told.append(event)
                self._news.unpark_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when the condition holds; looked at after each event."""
        while not condition():
            await self._news.park()

    def data(self, kind: type[DataT]) -> list[DataT]:
        """Return the data of all events of one kind so far."""
        return [
            one.data
            for one in self.told
            if isinstance(one, EventSeen) and isinstance(one.data, kind)
        ]

    async def first(self, kind: type[DataT]) -> DataT:
        """Return the first event of a kind, when it has come."""
        await self.until(lambda: bool(self.data(kind)))
        return self.data(kind)[0]

    async def wait_free(self) -> None:
        """Return when our last writer of the thread is reaped."""

        def free() -> bool:
            told = self.data(ThreadChanged)
            return bool(told) and told[-1].thread.lease is LeaseState.NONE

        await self.until(free)

    def notices(self) -> list[str]:
        """Return the codes of all notices."""
        return [one.code for one in self.data(Notice)]

    @property
    def text(self) -> str:
        """All deltas, joined."""
        return "".join(one.text for one in self.told if isinstance(one, DeltaSeen))

    def check_ends(self) -> None:
        """Whatever began has ended, once, and in order."""
        turns = [one.turn.id for one in self.data(TurnStarted)]
        assert [one.turn.id for one in self.data(TurnCompleted)] == turns
        items = Counter(one.item.id for one in self.data(ItemStarted))
        over = Counter(one.item.id for one in self.data(ItemCompleted))
        assert over == items  # a script may use an id again in a later turn
        asked = [one.approval.id for one in self.data(ApprovalRequested)]
        assert [one.approval.id for one in self.data(ApprovalResolved)] == asked


@dataclass(frozen=True, kw_only=True)
class Faulty:
    """A running Agent whose codex plays a script, and a client that hears all."""

    house: House
    client: Client
    ear: Ear
    folder: Path

    def play(self, *, start: Steps = (), answers: object = None, **on: Any) -> None:
        """From the next process on codex plays this (see `idle_thread`); `version`: as
        which it says that it runs."""
        play_next(self.folder, start=start, answers=answers, **on)

    def sent(self, method: str) -> int:
        """Return how often codex was sent that method."""
        return sum(one.get("method") == method for one in sent(self.folder))


def play_next(
    folder: Path,
    *,
    start: Steps = (),
    answers: object = None,
    version: str = PINNED,
    **on: Any,
) -> None:
    """Write the script that the next process plays, in one step."""
    staged = folder.with_name("staged")
    script = {
        "version": version,
        "on": idle_thread(**on),
        "start": start,
        "answers": answers or {},
    }
    place_fake(staged, script)
    os.replace(staged / "script.json", folder / "script.json")


@asynccontextmanager
async def open_faulty(
    *,
    start: Steps = (),
    answers: object = None,
    clock: Callable[[], int] = up_ms,
    **on: Any,
) -> AsyncGenerator[Faulty]:
    """Run an Agent on the fake, with a client that is subscribed to all.

    `clock`: the one that goes on while the computer sleeps, in ms.
    """
    with work_folder("faulty") as folder:
        program = folder / "bin"
        codex = place_fake(program, {})
        play_next(program, start=start, answers=answers, **on)
        (folder / "codex").mkdir()
        config = make_config(folder, roots=["/work"], idle_s=1)
        runtime = CodexRuntime(
            codex=codex,
            home=folder / "codex",
            records=folder / "state" / "processes",
            now_ms=wall_ms,
            up_ms=clock,
        )

        async def run(*, task_status: trio.TaskStatus[Running]) -> None:
            await run_agent(
                config,
                runtime=runtime,
                watch=FakeWatch(),
                harden=False,
                task_status=task_status,
            )

        async with open_background(run) as running:
            house = House(
                running=running, runtime=FakeRuntime(), watch=FakeWatch(), config=config
            )
            ear = Ear()
            async with open_local(house) as client, trio.open_nursery() as nursery:
                await nursery.start(ear.listen, client)
                yield Faulty(house=house, client=client, ear=ear, folder=program)
                nursery.cancel_scope.cancel()


def send(key: str = "first", text: str = "hello") -> TurnStartParams:
    """Return a `turn/start` on the thread."""
    return TurnStartParams.model_validate(
        {
            "threadId": THREAD,
            "input": [{"type": "text", "text": text}],
            "requestKey": key.ljust(32, "-"),
        }
    )


__all__ = [
    "COMMAND",
    "ENDS",
    "STARTED",
    "THREAD",
    "TURN",
    "Ear",
    "Faulty",
    "begun",
    "client_info",
    "delta",
    "ended",
    "idle_thread",
    "in_turn",
    "message",
    "open_faulty",
    "output",
    "question",
    "send",
]
