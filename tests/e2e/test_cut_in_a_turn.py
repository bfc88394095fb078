"""A turn of ours followed by two devices, one of which is cut off while text streams.

Both must end with the same thread, letter by letter, and with what the store has.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import trio

from clients.cli.scripted_answers import Rule
from tests.support.agents import client_info, pair_device
from tests.support.codex import codex_binaries, open_codex_home
from tests.support.cut_line import open_line
from tests.support.foreign import open_foreign
from tests.support.real_agent import open_real_agent, send_params
from transport.background import open_background
from transport.client import (
    Client,
    ClientEvent,
    DeltaSeen,
    EventSeen,
    Resumed,
    Target,
    open_client,
)
from transport.protocol.events import (
    DeltaChannel,
    ItemCompleted,
    ItemStarted,
    ThreadChanged,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.items import AgentMessage, Item
from transport.protocol.methods import THREAD_READ, TURN_START
from transport.protocol.threads import ThreadReadParams

pytestmark = pytest.mark.codex
VERSIONS = [one for one in ("0.163.0", "0.171.0") if one in codex_binaries()]
FIRST = " ".join(f"one{n}" for n in range(200))
SECOND = " ".join(f"two{n}" for n in range(200))
RULES = (
    Rule(
        "Tell it all.",
        [
            [
                {"reasoning": ["Thinking about it."]},
                {"msg": FIRST, "halfway": "first", "phase": "commentary"},
                {"call": "exec_command", "args": {"cmd": "seq 500"}},
            ],
            [{"msg": SECOND, "halfway": "second"}],
        ],
    ),
)


@dataclass
class Screen:
    """What a device shows of one thread, from events alone. `grown`: by deltas."""

    thread: dict[str, Any] = field(default_factory=dict[str, Any])
    turns: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    items: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    grown: dict[str, str] = field(default_factory=dict[str, str])
    verdicts: list[str] = field(default_factory=list[str])
    done: list[str] = field(default_factory=list[str])
    _names: dict[int, str] = field(default_factory=dict[int, str])
    _news: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    async def run(
        self, client: Client, thread: str, *, task_status: trio.TaskStatus[None]
    ) -> None:
        async with client.subscribe([thread]) as events:
            async for event in events:
                self.take(event)
                if isinstance(event, Resumed) and event.verdict == "new":
                    task_status.started()
                self._news.unpark_all()

    def take(self, event: ClientEvent) -> None:
        match event:
            case Resumed(verdict=verdict, open=rows):
                self.verdicts.append(verdict)
                for row in rows:
                    self._open(row.ref, row.item)
            case DeltaSeen(ref=ref, channel=DeltaChannel.TEXT, text=text):
                self.grown[self._names[ref]] += text
            case EventSeen(data=ItemStarted(ref=ref, item=item)):
                self._open(ref, item)
            case EventSeen(data=ItemCompleted(item=item)):
                self.items[item.id] = item.wire()
                self.done.append(item.id)
            case EventSeen(data=TurnStarted(turn=turn) | TurnCompleted(turn=turn)):
                self.turns[turn.id] = turn.wire()
            case EventSeen(data=ThreadChanged(thread=thread)):
                self.thread = thread.wire()
            case _:
                pass

    def _open(self, ref: int, item: Item) -> None:
        self._names[ref] = item.id
        self.items[item.id] = item.wire()
        self.grown[item.id] = item.text if isinstance(item, AgentMessage) else ""

    async def until(self, what: Callable[[], bool]) -> None:
        """Return when that is so; looked at after each event."""
        while not what():
            await self._news.park()

    def shows(self, text: str) -> bool:
        """Whether some message has grown so far."""
        return any(text in said for said in self.grown.values())

    def is_over(self) -> bool:
        """Whether the turn has ended."""
        return any(turn["status"] == "completed" for turn in self.turns.values())


@asynccontextmanager
async def open_screen(
    target: Target, thread: str, name: str
) -> AsyncGenerator[tuple[Client, Screen]]:
    screen = Screen()
    info = client_info(name, name[0] * 32)
    async with (
        open_client(target, info) as client,
        open_background(partial(screen.run, client, thread)),
    ):
        yield client, screen


@pytest.mark.parametrize("version", VERSIONS)
async def test_two_devices_end_with_the_same_thread_though_one_was_cut_off_midway(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            async with open_foreign(codex_binaries()[version], home.environ) as other:
                thread = await other.start_thread(home.workspace, "hello")
            async with open_real_agent(home, version=version) as house:
                phone = await pair_device(house, scopes=("read",), name="phone")
                tablet = await pair_device(
                    house, scopes=("read", "write"), name="tablet"
                )
                async with (
                    open_line(house.target(phone)) as (line, cut),
                    open_screen(cut, thread, "phone") as (_, one),
                    open_screen(house.target(tablet), thread, "tablet") as (
                        client,
                        two,
                    ),
                ):
                    model = home.model
                    send = send_params(
                        thread, "Tell it all.", key="tell", wait_ms=60_000
                    )
                    started = await client.call(TURN_START, send, timeout_s=90)
                    await one.until(lambda: one.shows("one80 "))
                    line.cut()
                    model.release("first")
                    await model.wait_held("second")
                    await two.until(lambda: two.shows("two80 "))
                    assert not one.shows("one120 "), "it was cut off"
                    line.up = True
                    await one.until(lambda: one.shows("two80 "))
                    assert not one.is_over()
                    model.release("second")
                    for screen in (one, two):
                        await screen.until(screen.is_over)
                    assert (one.verdicts, two.verdicts) == (["new", "ok"], ["new"])
                    assert one.items == two.items
                    assert one.turns == two.turns
                    assert one.done == two.done
                    assert len(set(one.done)) == len(one.done), "an item twice"
                    texts = [one.items[item].get("text") for item in one.done]
                    assert FIRST in texts
                    assert SECOND in texts
                    last = one.done[-1]
                    assert one.grown[last] == two.grown[last] == SECOND
                    read = await client.call(
                        THREAD_READ, ThreadReadParams(thread_id=thread)
                    )
                    stored = read.turns[0]
                    assert stored.id == started.sent.id
                    shown = [
                        (item.id, item.kind, item.wire().get("text"))
                        for item in stored.items or ()
                    ]
                    assert shown == [
                        (row["id"], row["kind"], row.get("text"))
                        for row in map(one.items.__getitem__, one.done)
                    ]
