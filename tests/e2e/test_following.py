"""Another codex's work, followed by reading its history and continued when it left.

The other program is a real codex that stands where the desktop's engine does, beside a
desktop's main process; what it runs is told to two paired devices, each item once.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import trio

from clients.cli.scripted_answers import Rule
from tests.support.agents import House, client_info, pair_device
from tests.support.codex import (
    BUNDLED,
    WITHOUT_LOCK,
    CodexHome,
    codex_binaries,
    locking_versions,
    open_codex_home,
)
from tests.support.cut_line import open_line
from tests.support.fake_desktop import APP, ENGINE, open_program, place, shell
from tests.support.foreign import ForeignCodex, open_foreign
from tests.support.real_agent import open_local, open_real_agent, send_params, status
from transport.background import open_background
from transport.client import Client, EventSeen, Resumed, open_client
from transport.protocol import threads
from transport.protocol.events import (
    EventData,
    ItemCompleted,
    ItemStarted,
    Notice,
    ThreadChanged,
    TurnCompleted,
    TurnReplaced,
    TurnStarted,
)
from transport.protocol.items import Item
from transport.protocol.methods import THREAD_READ, TURN_START
from transport.protocol.threads import ThreadMode, ThreadStatus
from transport.protocol.turns import Turn, TurnStatus

pytestmark = pytest.mark.codex
LONG = Rule(
    "Take your time.",
    [
        [
            {"msg": "First, a look.", "phase": "commentary"},
            {"call": "exec_command", "args": {"cmd": "echo one"}},
        ],
        [
            {"hold": "middle"},
            {"call": "exec_command", "args": {"cmd": "echo two"}},
        ],
        [{"partial": "It se"}, {"hold": "end"}, {"msg": "It is done."}],
    ],
)
HELLO = Rule("Hello.", [[{"msg": "Hello to you."}]])


@pytest.fixture(autouse=True)
def no_login_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Login shells have nothing to run: what they print or wait for is not ours."""
    monkeypatch.setenv("HOME", str(tmp_path))


@dataclass
class Follower:
    """What one device is told of a thread, and the picture that it makes of it."""

    thread: str
    seen: list[EventData] = field(default_factory=list[EventData])
    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])
    items: dict[str, dict[str, Item]] = field(
        default_factory=dict[str, dict[str, Item]]
    )
    verdicts: list[str] = field(default_factory=list[str])
    _news: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    async def run(self, client: Client, *, task_status: trio.TaskStatus[None]) -> None:
        """Subscribe, read what was there before, take all in that follows."""
        async with client.subscribe([self.thread]) as events:
            await self._take(client, events, task_status)

    async def _take(
        self,
        client: Client,
        events: AsyncIterator[object],
        task_status: trio.TaskStatus[None],
    ) -> None:
        async for event in events:
            match event:
                case Resumed(verdict=verdict):
                    self.verdicts.append(verdict)
                    if verdict == "new":
                        for turn in (await read(client, self.thread)).turns:
                            self._show(turn)
                        task_status.started()
                case EventSeen(data=data):
                    self._event(data)
                    self._news.unpark_all()
                case _:
                    pass

    def _event(self, data: EventData) -> None:
        self.seen.append(data)
        match data:
            case TurnStarted(turn=turn) | TurnCompleted(turn=turn):
                self.turns[turn.id] = turn
                self.items.setdefault(turn.id, {})
            case TurnReplaced(turn=turn):
                self._show(turn)
            case ItemCompleted(item=item):
                self.items.setdefault(item.turn_id, {})[item.id] = item
            case _:
                pass

    def _show(self, turn: Turn) -> None:
        self.turns[turn.id] = turn
        self.items[turn.id] = {item.id: item for item in turn.items or ()}

    def completed(self) -> list[str]:
        """Return the items that were completed, in order."""
        return [one.item.id for one in self.seen if isinstance(one, ItemCompleted)]

    def commands(self) -> list[str]:
        """Return what the completed commands have printed."""
        return [
            one.item.output.strip()
            for one in self.seen
            if isinstance(one, ItemCompleted) and one.item.kind == "command"
        ]

    def texts(self) -> list[str]:
        """Return what the model has said."""
        return [
            one.item.text
            for one in self.seen
            if isinstance(one, ItemCompleted) and one.item.kind == "agentMessage"
        ]

    def replaced(self) -> list[str]:
        """Return the turns that were told anew."""
        return [one.turn.id for one in self.seen if isinstance(one, TurnReplaced)]

    def notices(self) -> list[str]:
        return [one.code for one in self.seen if isinstance(one, Notice)]

    def modes(self) -> list[ThreadMode]:
        return [d.thread.mode for d in self.seen if isinstance(d, ThreadChanged)]

    def ended(self) -> list[TurnStatus]:
        return [one.turn.status for one in self.seen if isinstance(one, TurnCompleted)]

    async def until(self, what: object) -> None:
        """Return when `what()` is true; looked at after each event."""
        assert callable(what)
        while not what():
            await self._news.park()


async def read(client: Client, thread_id: str) -> threads.ThreadReadResult:
    params = threads.ThreadReadParams(thread_id=thread_id, turns=20)
    return await client.call(THREAD_READ, params)


@asynccontextmanager
async def open_follower(
    house: House, thread_id: str, name: str
) -> AsyncGenerator[tuple[Client, Follower]]:
    """A paired device that watches the thread."""
    device = await pair_device(house, scopes=("read", "write"), name=name)
    info = client_info(name, name[0] * 32)
    async with open_client(house.target(device), info) as client:
        follower = Follower(thread_id)

        async def run(*, task_status: trio.TaskStatus[None]) -> None:
            await follower.run(client, task_status=task_status)

        async with open_background(run):
            yield client, follower


def engine_of(home: CodexHome, version: str) -> Path:
    """Put a codex where the desktop has its own, with what belongs to it."""
    codex, engine = codex_binaries()[version], home.home.parent / ENGINE
    engine.parent.mkdir(parents=True)
    (engine.parent / "codex-resources").symlink_to(codex.parents[1] / "codex-resources")
    try:
        os.link(codex, engine)
    except OSError:  # another file system
        return place(home.home.parent, ENGINE, codex)
    return engine


@asynccontextmanager
async def open_desktop(home: CodexHome, version: str) -> AsyncGenerator[ForeignCodex]:
    """A desktop's main process and its engine, the latter a real codex."""
    app = place(home.home.parent, APP)
    async with (
        open_program(shell(app), home.environ),
        open_foreign(engine_of(home, version), home.environ) as engine,
    ):
        yield engine


def alike(client_side: Follower, stored: threads.ThreadReadResult) -> None:
    """Events alone must have made the picture that the store shows."""
    for turn in stored.turns:
        mine = client_side.turns[turn.id]
        assert (mine.id, mine.status) == (turn.id, turn.status)
        shown = {item.id: item.status for item in turn.items or ()}
        told = {item.id: item.status for item in client_side.items[turn.id].values()}
        assert shown.items() <= told.items(), turn.id


def in_order(follower: Follower) -> None:
    """turn/started, its items, turn/completed; no item twice."""
    running: set[str] = set()
    over: set[str] = set()
    for data in follower.seen:
        match data:
            case TurnStarted(turn=turn):
                assert turn.id not in running | over, "a turn began twice"
                running.add(turn.id)
            case TurnCompleted(turn=turn):
                assert turn.id in running, "an end without a beginning"
                running.discard(turn.id)
                over.add(turn.id)
            case ItemCompleted(item=item) | ItemStarted(item=item):
                assert item.turn_id in running, item
            case _:
                pass
    done = follower.completed()
    assert len(done) == len(set(done)), "an item twice"
    assert not running


@pytest.mark.parametrize("version", sorted({BUNDLED, locking_versions()[-1]}))
async def test_a_desktop_s_long_turn_is_followed_by_two_devices_and_continued(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with (
            open_codex_home(LONG, HELLO) as home,
            open_real_agent(home, version=version) as house,
            open_local(house) as local,
        ):
            async with open_foreign(codex_binaries()[version], home.environ) as first:
                thread = await first.start_thread(home.workspace, "Hello.")
            async with (
                open_follower(house, thread, "phone") as (phone, one),
                open_follower(house, thread, "tablet") as (tablet, two),
            ):
                async with open_desktop(home, version) as desktop:
                    await desktop.resume(thread)
                    turn = await desktop.begin_turn(thread, "Take your time.")
                    await one.until(lambda: one.commands() == ["one"])
                    await is_followed(phone, one, turn["id"])
                    following = (await status(local)).following
                    assert [row.thread_id for row in following] == [thread]
                    assert following[0].writer is not None
                    assert following[0].writer.pid == desktop.pid
                    home.model.release("middle")
                    await one.until(lambda: one.commands() == ["one", "two"])
                    await home.model.wait_held("end")
                    assert one.ended() == [], "nobody says that it was interrupted"
                    home.model.release("end")
                    await desktop.wait_for("turn/completed", threadId=thread)
                    for device in (one, two):
                        await device.until(lambda d=device: bool(d.ended()))
                    assert one.ended() == [TurnStatus.COMPLETED]
                    assert one.texts() == ["First, a look.", "It is done."]
                    assert one.notices().count("followedTurn") == 1
                params = send_params(thread, "Hello.", key="on", wait_ms=60_000)
                started = await phone.call(TURN_START, params, timeout_s=90)
                for device in (one, two):
                    await device.until(lambda d=device: len(d.ended()) == 2)
                assert ThreadMode.LIVE in one.modes()
                assert one.turns[started.sent.id].status is TurnStatus.COMPLETED
                stored = await read(tablet, thread)
                for device in (one, two):
                    in_order(device)
                    alike(device, stored)
                assert one.completed() == two.completed()


async def is_followed(client: Client, follower: Follower, turn_id: str) -> None:
    """The turn of another program runs, as far as one can know, and that is said."""
    shown = await read(client, follower.thread)
    assert shown.thread.mode is ThreadMode.FOLLOW
    assert shown.thread.status is ThreadStatus.RUNNING
    for turn in (shown.turns[0], follower.turns[turn_id]):
        assert turn.id == turn_id
        assert turn.status is TurnStatus.IN_PROGRESS
        assert turn.inferred
    await follower.until(lambda: "followedTurn" in follower.notices())


OLDER = [one for one in (WITHOUT_LOCK, "0.147.0") if one in codex_binaries()]


@pytest.mark.parametrize("older", OLDER)
async def test_a_thread_of_an_older_codex_is_followed_then_continued_and_replaced(
    older: str,
) -> None:
    """History of a legacy thread has ids of its own, and no commands."""
    with trio.fail_after(240):
        async with (
            open_codex_home(LONG, HELLO) as home,
            open_real_agent(home, idle_s=1) as house,
        ):
            codex = codex_binaries()[older]
            async with open_foreign(codex, home.environ) as foreign:
                thread = await foreign.start_thread(home.workspace, "Hello.")
                async with open_follower(house, thread, "phone") as (phone, one):
                    turn = await foreign.begin_turn(thread, "Take your time.")
                    await one.until(lambda: "First, a look." in one.texts())
                    locks = older != WITHOUT_LOCK
                    status = TurnStatus.IN_PROGRESS if locks else TurnStatus.UNKNOWN
                    assert one.turns[turn["id"]].status is status
                    home.model.release("middle")
                    home.model.release("end")
                    await one.until(lambda: one.ended() == [TurnStatus.COMPLETED])
                    assert one.texts() == ["First, a look.", "It is done."]
                    await foreign.request("thread/unsubscribe", {"threadId": thread})
                    foreign.process.terminate()
                    await foreign.process.wait()

                    params = send_params(thread, "Hello.", key="on", wait_ms=60_000)
                    ours = (await phone.call(TURN_START, params, timeout_s=90)).turn
                    assert ours is not None
                    await one.until(lambda: one.replaced() == [ours.id])
                    live = [d for d in one.seen if isinstance(d, ItemCompleted)]
                    live = [d for d in live if d.item.turn_id == ours.id]
                    assert all(d.item.stable_id is False for d in live)
                    in_order(one)
                    alike(one, await read(phone, thread))


async def test_a_device_that_was_cut_off_is_told_what_it_missed_and_nothing_twice() -> (
    None
):
    """Nobody is subscribed while the other program works on."""
    with trio.fail_after(240):
        async with (
            open_codex_home(LONG, HELLO) as home,
            open_real_agent(home) as house,
            open_foreign(codex_binaries()[BUNDLED], home.environ) as foreign,
        ):
            thread = await foreign.start_thread(home.workspace, "Hello.")
            before = {
                message["params"]["turn"]["id"]
                for message in foreign.log
                if message["method"] == "turn/completed"
            }
            device = await pair_device(house, scopes=("read",), name="phone")
            one = Follower(thread)
            async with (
                open_line(house.target(device)) as (relay, line),
                open_client(line, client_info()) as client,
                open_background(partial(one.run, client)),
            ):
                await foreign.begin_turn(thread, "Take your time.")
                await one.until(lambda: one.commands() == ["one"])
                relay.cut()
                home.model.release("middle")
                home.model.release("end")
                await foreign.next_of("turn/completed", known=before)
                await foreign.turn(thread, "Hello.")
                relay.up = True
                await one.until(lambda: len(one.ended()) == 2)
                assert one.verdicts == ["new", "ok"]
                assert one.commands() == ["one", "two"]
                assert one.texts() == [
                    "First, a look.",
                    "It is done.",
                    "Hello to you.",
                ]
                in_order(one)
                alike(one, await read(client, thread))
