"""A small v2 Agent that says what a test tells it to; admin.sock is its one door.

Answers come from a table of functions, events from `tell` and `say`. It keeps a journal,
so that a client that comes back gets what it missed. It checks nothing: what the real
Agent refuses is tested with the real one.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import trio

from tests.support import cli_samples as samples
from transport.background import open_background
from transport.carriers import unix
from transport.channel import PlainChannel
from transport.codec import pack
from transport.errors import NotFound, Refusal, TransportError
from transport.limits import SESSION_LIMITS
from transport.protocol.admin import DeviceListResult
from transport.protocol.approvals import ApprovalListResult
from transport.protocol.base import WireModel
from transport.protocol.events import DeltaChannel, EventData, Open
from transport.protocol.gateway import AgentInfo, DeviceInfo, GateState
from transport.protocol.queue import QueueListResult
from transport.protocol.session import SessionOpenResult, SubscribeResult
from transport.protocol.threads import ThreadListResult, ThreadReadResult

Frame = dict[str, Any]
Answer = Callable[[Frame], WireModel]


@dataclass(eq=False, slots=True)
class _Session:
    channel: PlainChannel
    cursor: int | None = None
    news: trio.Event = field(default_factory=trio.Event)


@dataclass(slots=True)
class FakeAgent:
    """`calls`: (method, params) in order. `lost`: events older than this are forgotten.
    `silent`: methods that are never answered."""

    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    gate: GateState = field(default_factory=samples.open_gate)
    calls: list[tuple[str, Frame]] = field(default_factory=list[tuple[str, Frame]])
    journal: list[Frame] = field(default_factory=list[Frame])
    open_items: list[Open] = field(default_factory=list[Open])
    lost: int = 0
    silent: set[str] = field(default_factory=set[str])
    scopes: list[str] = field(default_factory=lambda: ["read", "write"])
    subscribed: trio.Event = field(default_factory=trio.Event)
    _called: trio.Event = field(default_factory=trio.Event)
    _sessions: list[_Session] = field(default_factory=list[_Session])

    def __post_init__(self) -> None:
        self.answers = {
            "session/open": self._open,
            "gateway/status": lambda _: samples.status(self.gate),
            "thread/list": lambda _: ThreadListResult(
                threads=[samples.thread()], head=1
            ),
            "thread/read": lambda _: ThreadReadResult(
                thread=samples.thread(), turns=[samples.turn("turn-0")], head=1
            ),
            "approval/list": lambda _: ApprovalListResult(approvals=[], head=1),
            "queue/list": lambda _: QueueListResult(queue=[], head=1),
            "device/list": lambda _: DeviceListResult(devices=[samples.device()]),
            **self.answers,
        }

    def called(self, method: str) -> list[Frame]:
        """Return the params of every call of a method."""
        return [params for name, params in self.calls if name == method]

    async def wait_called(self, method: str) -> Frame:
        """Return the params of the first call of a method, once there is one."""
        while not self.called(method):
            self._called = trio.Event()
            await self._called.wait()
        return self.called(method)[0]

    def tell(self, data: EventData, thread_id: str | None = samples.SHOP) -> None:
        """Put an event into the journal; every subscriber gets it."""
        self._append(
            {
                "event": data.event,
                "at": samples.NOON,
                "threadId": thread_id,
                "data": data.wire(),
            }
        )

    def say(self, ref: int, text: str) -> None:
        """Put a piece of an open message into the journal."""
        seq = len(self.journal) + 1
        self._append({"d": [seq, ref, int(DeltaChannel.TEXT), 0, text]})

    async def cut(self) -> None:
        """Drop every connection without a word."""
        self.subscribed = trio.Event()
        for session in self._sessions:
            await session.channel.aclose()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection to its end."""
        session = _Session(PlainChannel(stream))
        self._sessions.append(session)
        try:
            async with open_background(partial(self._write, session)):
                while True:
                    await self._handle(session, await session.channel.receive())
        except TransportError:
            return
        finally:
            self._sessions.remove(session)
            await session.channel.aclose()

    def _append(self, frame: Frame) -> None:
        seq = len(self.journal) + 1
        self.journal.append(frame if "d" in frame else {"seq": seq, **frame})
        for session in self._sessions:
            session.news.set()

    async def _write(
        self, session: _Session, *, task_status: trio.TaskStatus[None]
    ) -> None:
        task_status.started()
        while True:
            await session.news.wait()
            session.news = trio.Event()
            if session.cursor is None:
                continue
            frames = [pack(frame) for frame in self.journal[session.cursor :]]
            session.cursor = len(self.journal)
            if frames:
                await session.channel.send(frames)

    async def _handle(self, session: _Session, frame: Frame) -> None:
        if "ping" in frame:
            await session.channel.send([pack({"pong": frame["ping"]})])
        elif "id" in frame:
            answer = pack(self._answer(session, frame))
            if frame["method"] not in self.silent:
                await session.channel.send([answer])

    def _answer(self, session: _Session, frame: Frame) -> Frame:
        method, params = frame["method"], frame["params"]
        self.calls.append((method, params))
        self._called.set()
        try:
            if method == "events/subscribe":
                return {"id": frame["id"], "result": self._subscribe(session, params)}
            if method not in self.answers:
                raise NotFound(f"{method} is not played")
            return {"id": frame["id"], "result": self.answers[method](params).wire()}
        except Refusal as refusal:
            return {"id": frame["id"], "error": refusal.wire()}

    def _subscribe(self, session: _Session, params: Frame) -> Frame:
        resume: Frame = params.get("resume") or {}
        known = bool(resume) and resume["seq"] >= self.lost
        session.cursor = resume["seq"] if known else len(self.journal)
        session.news.set()
        if params["threads"]:
            self.subscribed.set()
        return SubscribeResult(
            epoch="e1",
            head=len(self.journal),
            verdict="new" if not resume else "ok" if known else "gap",
            open=self.open_items,
        ).wire()

    def _open(self, params: Frame) -> WireModel:
        del params
        return SessionOpenResult(
            protocol="2.0",
            agent=AgentInfo(id="a" * 32, name="ann-desk", version="0.1.0"),
            device=DeviceInfo(id="local", name="local", scopes=self.scopes),
            runtime=samples.runtime(),
            gate=self.gate,
            epoch="e1",
            head=len(self.journal),
            now=samples.NOON,
            limits=SESSION_LIMITS,
        )


@asynccontextmanager
async def open_fake_agent(path: Path, agent: FakeAgent) -> AsyncGenerator[FakeAgent]:
    """Serve `agent` at the admin socket of `path` for the length of the block."""

    async def serve(*, task_status: trio.TaskStatus[None]) -> None:
        listeners = list(await unix.listen(path))
        task_status.started()
        await trio.serve_listeners(agent.serve, listeners)

    async with open_background(serve):
        yield agent


@asynccontextmanager
async def fake(
    state: Path, answers: Mapping[str, Answer] | None = None, /, **named: Answer
) -> AsyncGenerator[FakeAgent]:
    """Serve an Agent for commands on `state`; `turn_start=f` answers turn/start by `f`."""
    agent = FakeAgent()
    agent.answers.update(answers or {})
    for name, answer in named.items():
        agent.answers[name.replace("_", "/", 1)] = answer
    with trio.fail_after(240):
        async with open_fake_agent(state / "run" / "admin.sock", agent):
            yield agent
