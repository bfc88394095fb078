"""Everything that can go wrong does, at random, for a while; then nothing is wrong.

A real Agent with a real codex, devices behind lines that stall and break, and beside them
somebody who kills, stops and locks, opens desktops and works in the same threads. Which
things happen when comes from a seed; how they meet does not: a run is a search, and what
it finds deserves a small test of its own.
"""

import os
import random
import signal
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal

import pytest
import trio

from tests.support.agents import client_info, pair_device
from tests.support.codex import (
    CodexHome,
    codex_binaries,
    locking_versions,
    open_codex_home,
)
from tests.support.fake_desktop import APP, open_program, place, shell
from tests.support.foreign import ForeignRefusedError, open_foreign
from tests.support.other_codexes import resume_when_free
from tests.support.served_agent import ServedAgent, open_served_agent
from transport.client import Client, EventSeen, Resumed, Target, open_client
from transport.errors import OutcomeUnknown, Refusal, TransportError, UnreachableError
from transport.keys import load_identity
from transport.protocol import admin, approvals, turns
from transport.protocol.events import (
    ApprovalRequested,
    TurnCompleted,
    TurnReplaced,
    TurnStarted,
)
from transport.protocol.gateway import GatewayStatusParams
from transport.protocol.items import UserMessage
from transport.protocol.methods import (
    APPROVAL_ANSWER,
    APPROVAL_LIST,
    GATEWAY_LOCK,
    GATEWAY_STATUS,
    GATEWAY_UNLOCK,
    QUEUE_DELETE,
    QUEUE_LIST,
    TURN_INTERRUPT,
    TURN_LIST,
    TURN_START,
)
from transport.protocol.queue import QueueDeleteParams, QueueListParams
from transport.protocol.turns import TextInput, Turn, TurnStartParams

pytestmark = [pytest.mark.codex, pytest.mark.long]
SECONDS: Final = float(os.environ.get("THREADGATE_SOAK_S", "30"))
SEEDS: Final = [
    int(one) for one in os.environ.get("THREADGATE_SOAK_SEEDS", "1").split()
]
VERSION: Final = os.environ.get("THREADGATE_SOAK_CODEX") or locking_versions()[-1]
THREADS: Final = 3
SENDERS: Final = 4
DEVICES: Final = 2
Point = tuple[str, str]  # thread, turn

ASKED: Final = '"sandbox_permissions": "require_escalated", "justification": "why"'
RUN: Final = '"cmd": "echo x >> NAME.ran"'
SCRIPTS: Final = (
    '[[{"msg": "short"}]]',
    '[[{"msg": "one two three four five six", "delay": 0.05}]]',
    '[[{"sleep": 0.5}, {"msg": "late"}]]',
    '[[{"flood": 3000, "size": 20}]]',
    f'[[{{"call": "exec_command", "args": {{{RUN}}}}}], [{{"msg": "ok"}}]]',
    f'[[{{"call": "exec_command", "args": {{{RUN}, {ASKED}}}}}], [{{"msg": "ok"}}]]',
)


class Line:
    """A line from a device to agent.sock: it stalls, is slow, and breaks."""

    def __init__(self, socket: Path, rng: random.Random) -> None:
        self._socket = socket
        self._rng = rng
        self._calls: set[trio.CancelScope] = set()
        self._stalled = trio.Event()
        self._stalled.set()
        self.calm = False

    def cut(self) -> None:
        for scope in self._calls:
            scope.cancel()

    async def stall(self, seconds: float) -> None:
        self._stalled = trio.Event()
        await trio.sleep(seconds)
        self._stalled.set()

    async def carry(self, near: trio.SocketStream) -> None:
        async with near:
            try:
                far = await trio.open_unix_socket(str(self._socket))
            except OSError:
                return
            async with far, trio.open_nursery() as nursery:
                scope = nursery.cancel_scope
                self._calls.add(scope)
                nursery.start_soon(self._copy, near, far, scope)
                nursery.start_soon(self._copy, far, near, scope)
            self._calls.discard(scope)

    async def _copy(
        self,
        source: trio.SocketStream,
        sink: trio.SocketStream,
        scope: trio.CancelScope,
    ) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while True:
                chunk = await source.receive_some(self._rng.choice([1, 700, 65_536]))
                if not chunk:
                    break
                await self._stalled.wait()
                if not self.calm and self._rng.random() < 0.05:
                    await trio.sleep(self._rng.random() * 0.05)
                await sink.send_all(chunk)
        scope.cancel()


@dataclass(kw_only=True)
class Message:
    """One message under its key, and what was said of it, in order."""

    name: str
    device: int
    params: TurnStartParams
    said: list[str] = field(default_factory=list[str])
    taken_back: bool = False

    @property
    def queue_id(self) -> str | None:
        return next(
            (o.removeprefix("queued ") for o in self.said if o.startswith("queued ")),
            None,
        )

    @property
    def turn(self) -> str | None:
        return next((one for one in self.said if one.startswith("turn ")), None)

    def heard(self, outcome: str) -> None:
        """Take an outcome. What is certain stays."""
        self.said.append(outcome)
        certain = {one for one in self.said if one.startswith(("turn ", "queued "))}
        assert len(certain) <= 1, (self.name, self.said)
        if certain:
            after = self.said[self.said.index(next(iter(certain))) :]
            wrong = [one for one in after if one.startswith("unknown")]
            assert not wrong, (self.name, self.said)


class View:
    """What one client would show: the state of each turn."""

    def __init__(self) -> None:
        self.turns: dict[Point, str] = {}
        self.resumed: Counter[str] = Counter()


class World:
    """The Agent, its threads, and all that is said and done."""

    def __init__(self, home: CodexHome, version: str, seed: int) -> None:
        self.home = home
        self.version = version
        self.rng = random.Random(seed)  # noqa: S311 - a search, no secret
        self.agent: ServedAgent | None = None
        self.threads: list[str] = []
        self.targets: list[Target] = []
        self.lines: list[Line] = []
        self.messages: list[Message] = []
        self.views: dict[int, View] = {}
        self.up = trio.Event()
        self.over = False
        self.calm = False
        self.ending = False
        self.done: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()

    @property
    def foreign_codex(self) -> Path:
        return codex_binaries()[self.version]

    async def prepare(self) -> None:
        """Threads that somebody else has made; settings under which leases end soon."""
        settings = (
            f'roots = ["{self.home.workspace}"]\nlisten = ["127.0.0.1:0"]\nidle_s = 2\n'
        )
        (self.home.home.parent / "threadgate.toml").write_text(settings)
        async with open_foreign(self.foreign_codex, self.home.environ) as first:
            for number in range(THREADS):
                text = f"thread {number}"
                thread = await first.start_thread(self.home.workspace, text)
                self.threads.append(thread)

    async def add_device(self, number: int, nursery: trio.Nursery) -> None:
        """Pair one, and lay its line."""
        assert self.agent is not None
        device = await pair_device(
            self.agent, scopes=("read", "write", "approve"), name=f"d{number}"
        )
        state = self.agent.state
        line = Line(state / "run" / "agent.sock", self.rng)
        serve = partial(trio.serve_tcp, line.carry, 0, host="127.0.0.1")
        listeners = await nursery.start(serve)
        port = listeners[0].socket.getsockname()[1]
        target = Target(
            url=f"tcp://127.0.0.1:{port}",
            agent_key=load_identity(state / "identity.key", create=False).public,
            identity=device.identity,
            psk=device.paired.psk,
        )
        self.targets.append(target)
        self.lines.append(line)

    # the Agent, again and again

    async def keep_agent(self) -> None:
        while not self.over:
            async with open_served_agent(self.home, version=self.version) as agent:
                self.agent = agent
                self.up.set()
                await agent.wait()
                self.up = trio.Event()

    # clients

    @asynccontextmanager
    async def client(self, device: int) -> AsyncGenerator[Client]:
        info = client_info(f"soak{device}", f"{self.rng.getrandbits(128):032x}")
        async with open_client(self.targets[device], info) as client:
            yield client

    async def forever(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it again whenever its connection is over for good."""
        while not self.over:
            with suppress(TransportError, UnreachableError, Refusal):
                await work()
            await trio.sleep(0.2)

    async def forever_sending(self, work: Callable[[], Awaitable[None]]) -> None:
        while not self.calm:
            with suppress(TransportError, UnreachableError, Refusal):
                await work()
            await trio.sleep(0.05)

    async def watch(self, device: int) -> None:
        async with self.client(device) as client, client.subscribe("all") as events:
            view = self.views[device] = View()
            async for event in events:
                match event:
                    case Resumed(verdict=verdict):
                        view.resumed[verdict] += 1
                        if verdict != "ok":
                            await self.read_all(client, view)
                    case EventSeen(
                        thread_id=str(thread),
                        data=TurnStarted(turn=turn)
                        | TurnCompleted(turn=turn)
                        | TurnReplaced(turn=turn),
                    ):
                        view.turns[thread, turn.id] = turn.status.value
                    case EventSeen(data=ApprovalRequested(approval=approval)):
                        await self.decide(client, approval)
                    case _:
                        pass

    async def read_all(self, client: Client, view: View) -> None:
        shown: dict[Point, str] = {}
        for thread in self.threads:
            for turn in await history(client, thread, items="none"):
                shown[thread, turn.id] = turn.status.value
        view.turns = shown

    async def decide(self, client: Client, approval: approvals.Approval) -> None:
        choice = self.rng.choice(["allow", "deny", "", "allow"])
        if not choice:
            return
        params = approvals.ApprovalAnswerParams(
            approval_id=approval.id, digest=approval.digest, choice=choice
        )
        with suppress(Refusal):
            await client.call(APPROVAL_ANSWER, params, timeout_s=5)

    async def send(self, device: int) -> None:
        """Send until this client is killed, which may be in the middle of a call."""
        async with self.client(device) as client:
            with trio.move_on_after(self.rng.uniform(0.5, 20)):
                while not self.calm:
                    await self.send_one(client, device)
                    await trio.sleep(self.rng.uniform(0, 0.6))

    async def send_one(self, client: Client, device: int) -> None:
        old = [one for one in self.messages if one.device == device]
        if old and self.rng.random() < 0.35:
            message = self.rng.choice(old[-6:])
        else:
            message = self.new_message(device)
        await self.ask(client, message)

    def new_message(self, device: int) -> Message:
        name = f"m{len(self.messages)}m"
        script = self.rng.choice(SCRIPTS).replace("NAME", name)
        params = TurnStartParams(
            thread_id=self.rng.choice(self.threads),
            input=[TextInput(type="text", text=f"{name} SCRIPT:{script}")],
            request_key=f"{name}-{self.rng.getrandbits(96):024x}",
            wait_ms=self.rng.choice([0, 0, 500, 3_000]),
            delivery=self.rng.choice(["start", "start", "queue", "steer"]),
        )
        message = Message(name=name, device=device, params=params)
        self.messages.append(message)
        return message

    async def ask(self, client: Client, message: Message) -> str:
        try:
            result = await client.call(TURN_START, message.params, timeout_s=25)
        except OutcomeUnknown as refusal:
            # Ours gives up by itself; then nothing was said about it.
            given_up = "no answer came" in refusal.message
            outcome = "given up" if given_up else "unknown"
        except Refusal as refusal:
            outcome = f"no {type(refusal).__name__} {refusal.data.get('what', '')}"
        else:
            if result.queued is not None:
                outcome = f"queued {result.queued.queue_id}"
            else:
                outcome = f"turn {result.sent.id}"
        told = outcome if outcome.startswith("no ") else outcome.split()[0]
        self.outcomes[told] += 1
        message.heard(outcome)
        return outcome

    async def take_back(self) -> None:
        """One of the messages that wait, by the device that queued it."""
        queued = [one for one in self.messages if one.queue_id is not None]
        if not queued:
            return
        message = self.rng.choice(queued[-4:])
        assert message.queue_id is not None
        params = QueueDeleteParams(
            queue_id=message.queue_id, request_key=f"back-{message.name}".ljust(32, "-")
        )
        with suppress(TransportError, Refusal):
            async with self.client(message.device) as client:
                await client.call(QUEUE_DELETE, params, timeout_s=10)
                message.taken_back = True

    async def interrupt(self) -> None:
        device = self.rng.randrange(len(self.targets))
        view = self.views.get(device)
        running = [p for p, s in (view.turns if view else {}).items() if s == "running"]
        if not running:
            return
        thread, turn = self.rng.choice(running)
        params = turns.TurnInterruptParams(
            thread_id=thread,
            turn_id=turn,
            request_key=f"{self.rng.getrandbits(128):x}".ljust(32, "x"),
        )
        with suppress(TransportError, Refusal):
            async with self.client(device) as client:
                await client.call(TURN_INTERRUPT, params, timeout_s=10)

    # what happens to them

    async def harm(self, folder: Path) -> None:
        acts: list[tuple[int, str, Callable[[], Awaitable[None]]]] = [
            (2, "kill agent", partial(self.end_agent, signal.SIGKILL)),
            (1, "end agent", partial(self.end_agent, signal.SIGTERM)),
            (2, "stop agent", self.stop_agent),
            (8, "kill codex", self.kill_codex),
            (4, "stop codex", self.stop_codex),
            (6, "desktop", partial(self.desktop, folder)),
            (4, "other", self.other),
            (8, "cut", self.cut),
            (6, "stall", self.stall),
            (2, "lock", self.lock),
            (5, "interrupt", self.interrupt),
            (6, "take back", self.take_back),
        ]
        if only := os.environ.get("THREADGATE_SOAK_ONLY"):
            acts = [one for one in acts if one[1] in only.split(",")]
        async with trio.open_nursery() as nursery:
            while not self.calm:
                weights = [one[0] for one in acts]
                _, name, act = self.rng.choices(acts, weights)[0]
                self.done[name] += 1
                nursery.start_soon(act)
                if self.rng.random() < 0.7:
                    await trio.sleep(self.rng.uniform(0, 1.6))
                else:
                    await trio.sleep(self.rng.uniform(0, 0.01))

    async def end_agent(self, number: signal.Signals) -> None:
        await self.up.wait()
        if self.ending:
            return
        self.ending = True
        await trio.sleep(self.rng.uniform(0, 8))  # some life first
        if self.agent is not None and self.agent.process.returncode is None:
            self.agent.signal(number)
        self.ending = False

    async def stop_agent(self) -> None:
        agent = self.agent
        if agent is not None and agent.process.returncode is None:
            agent.signal(signal.SIGSTOP)
            await trio.sleep(self.rng.uniform(0, 1.0))
            with suppress(ProcessLookupError):
                agent.signal(signal.SIGCONT)

    def a_codex(self) -> int | None:
        agent = self.agent
        if agent is None or agent.process.returncode is not None:
            return None
        found = agent.app_servers()
        return self.rng.choice(found) if found else None

    async def kill_codex(self) -> None:
        await trio.sleep(self.rng.uniform(0, 0.3))
        pid = self.a_codex()
        number = self.rng.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
        with suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, number)

    async def stop_codex(self) -> None:
        pid = self.a_codex()
        with suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, signal.SIGSTOP)
                try:
                    await trio.sleep(self.rng.uniform(0, 3.0))
                finally:
                    os.kill(pid, signal.SIGCONT)

    async def desktop(self, folder: Path) -> None:
        path = place(folder / f"{self.rng.randrange(3)}", APP)
        for _ in range(self.rng.choice([1, 1, 3])):
            async with open_program(shell(path), self.home.environ):
                await trio.sleep(self.rng.choice([0, 0.005, 0.05, 0.3, 1.0]))
            await trio.sleep(self.rng.choice([0, 0.02, 0.2]))

    async def other(self) -> None:
        """Another codex wants a thread: it has it for a moment, or is refused."""
        thread = self.rng.choice(self.threads)
        with suppress(ForeignRefusedError):
            async with open_foreign(self.foreign_codex, self.home.environ) as other:
                await trio.sleep(self.rng.choice([0, 0.002, 0.1]))
                await other.resume(thread)
                if self.rng.random() < 0.6:
                    self.done["foreign turn"] += 1
                    with trio.move_on_after(10):
                        await other.turn(thread, f"f{self.done['foreign turn']}f said")
                if self.rng.random() < 0.3:
                    other.process.kill()

    async def cut(self) -> None:
        await trio.sleep(self.rng.uniform(0, 0.1))
        self.rng.choice(self.lines).cut()

    async def stall(self) -> None:
        await self.rng.choice(self.lines).stall(self.rng.uniform(0, 2.5))

    async def lock(self) -> None:
        with suppress(TransportError, Refusal):
            async with self.owner() as owner:
                stop = self.rng.random() < 0.5
                await owner.call(
                    GATEWAY_LOCK, admin.GatewayLockParams(stop=stop), timeout_s=5
                )
        await trio.sleep(self.rng.uniform(0, 1))
        await self.unlock()

    async def unlock(self) -> None:
        with suppress(TransportError, Refusal):
            async with self.owner() as owner:
                await owner.call(
                    GATEWAY_UNLOCK, admin.GatewayUnlockParams(), timeout_s=5
                )

    @asynccontextmanager
    async def owner(self) -> AsyncGenerator[Client]:
        await self.up.wait()
        assert self.agent is not None
        async with open_client(
            self.agent.admin, client_info("owner", "o" * 32)
        ) as owner:
            yield owner


async def history(
    client: Client, thread: str, *, items: Literal["none", "full"] = "full"
) -> list[Turn]:
    """All turns of a thread, oldest first."""
    found: list[Turn] = []
    cursor: str | None = None
    while True:
        params = turns.TurnListParams(
            thread_id=thread, order="asc", items=items, limit=50, cursor=cursor
        )
        page = await client.call(TURN_LIST, params, timeout_s=30)
        found += page.turns
        if (cursor := page.next_cursor) is None:
            return found


# afterwards


async def wait_quiet(owner: Client) -> None:
    """Nothing asks, runs or waits any more."""
    while True:
        asked = await owner.call(APPROVAL_LIST, approvals.ApprovalListParams())
        for approval in asked.approvals:
            params = approvals.ApprovalAnswerParams(
                approval_id=approval.id, digest=approval.digest, choice="deny"
            )
            with suppress(Refusal):
                await owner.call(APPROVAL_ANSWER, params)
        waiting = await owner.call(QUEUE_LIST, QueueListParams())
        now = await owner.call(GATEWAY_STATUS, GatewayStatusParams())
        if not waiting.queue and not now.leases:
            return
        await trio.sleep(0.25)


async def check(world: World) -> None:
    """All that must be true whatever happened."""
    async with world.owner() as owner:
        with trio.fail_after(120):
            await wait_quiet(owner)
        async with open_foreign(world.foreign_codex, world.home.environ) as other:
            for thread in world.threads:
                await resume_when_free(other, thread)
                await other.turn(thread, f"last in {thread}")
        stored = {thread: await history(owner, thread) for thread in world.threads}
        texts = texts_of(stored)
        check_sent_once(world, texts)
        await check_outcomes(world, texts)
        await check_views(world, stored)
    for path in world.home.workspace.glob("*.ran"):
        assert path.read_text() == "x\n", f"{path.name} was run twice"


def texts_of(stored: dict[str, list[Turn]]) -> dict[str, list[Point]]:
    """Each text that a person has said: in which turns it is."""
    found: dict[str, list[Point]] = {}
    for thread, its in stored.items():
        for turn in its:
            for item in turn.items or ():
                if isinstance(item, UserMessage):
                    name = item.text.split(" ")[0]
                    found.setdefault(name, []).append((thread, turn.id))
    return found


def check_sent_once(world: World, texts: dict[str, list[Point]]) -> None:
    names = {one.name for one in world.messages}
    twice = {n: p for n, p in texts.items() if n in names and len(p) > 1}
    assert not twice, twice
    backed = [one for one in world.messages if one.taken_back and one.name in texts]
    assert not backed, backed
    for request in world.home.model.requests:
        said = Counter(text.split(" ")[0] for text in request.user_texts)
        assert not {n: c for n, c in said.items() if n in names and c > 1}


async def check_outcomes(world: World, texts: dict[str, list[Point]]) -> None:
    """Each key has its one outcome for ever, and history bears it out."""
    async with trio.open_nursery() as nursery:
        for device in range(DEVICES):
            nursery.start_soon(repeat_all, world, device, texts)
    for one in world.messages:
        if one.turn is not None:
            point = (one.params.thread_id, one.turn.removeprefix("turn "))
            assert point in texts.get(one.name, []), one


async def repeat_all(world: World, device: int, texts: dict[str, list[Point]]) -> None:
    async with world.client(device) as client:
        for message in world.messages:
            sure = any(one.startswith(("turn ", "queued ")) for one in message.said)
            if message.device == device and (sure or message.name in texts):
                with trio.fail_after(60):
                    outcome = await world.ask(client, message)
                if not sure:  # it is there: never again, and perhaps known
                    assert outcome.startswith(("turn ", "unknown", "queued ")), message


async def check_views(world: World, stored: dict[str, list[Turn]]) -> None:
    """Who followed all the time shows what who comes now reads."""
    real = {
        (thread, turn.id): turn.status.value
        for thread, its in stored.items()
        for turn in its
    }
    for device in world.views:
        with trio.move_on_after(20):
            while world.views[device].turns != real:  # noqa: ASYNC110 - bounded
                await trio.sleep(0.1)
        assert world.views[device].turns == real, device


async def play(world: World, folder: Path) -> None:
    """Let everybody do their worst, and then let it be calm."""
    async with trio.open_nursery() as players:
        for number in range(SENDERS):
            send = partial(world.send, number % DEVICES)
            players.start_soon(world.forever_sending, send)
        players.start_soon(world.harm, folder)
        await trio.sleep(SECONDS)
        world.calm = True
        for line in world.lines:
            line.calm = True
    await world.up.wait()
    await world.unlock()


async def check_ended(agent: ServedAgent) -> None:
    """It ends when told, and nothing is half done in its ledger."""
    agent.signal(signal.SIGTERM)
    with trio.fail_after(15):
        await agent.wait()
    with closing(sqlite3.connect(agent.state / "ledger.sqlite")) as ledger:
        half = ledger.execute("SELECT * FROM keys WHERE state = 'handed'").fetchall()
    assert half == []


@pytest.mark.parametrize("seed", SEEDS)
async def test_after_everything_at_once_nothing_is_lost_doubled_or_stuck(
    seed: int, tmp_path: Path
) -> None:
    with trio.fail_after(SECONDS + 400):
        async with open_codex_home() as home:
            world = World(home, VERSION, seed)
            await world.prepare()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(world.keep_agent)
                await world.up.wait()
                for number in range(DEVICES):
                    await world.add_device(number, nursery)
                    nursery.start_soon(world.forever, partial(world.watch, number))
                await play(world, tmp_path)
                await check(world)
                print(f"done {dict(world.done)}; told {dict(world.outcomes)}")
                world.over = True
                assert world.agent is not None
                await check_ended(world.agent)
                nursery.cancel_scope.cancel(reason="the test is over")
