"""A turn of ours, held at each of its stages until the test lets it go on."""

import array
import fcntl
import os
import signal
import termios
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import trio

from clients.cli.scripted_model import Rule
from tests.support.codex import CodexHome
from tests.support.real_agent import send_params, send_to_end
from tests.support.served_agent import app_servers
from transport.background import open_background
from transport.client import Client, ClientEvent, DeltaSeen, EventSeen, Resumed
from transport.errors import CodexUnavailable
from transport.protocol.approvals import ApprovalAnswerParams
from transport.protocol.events import (
    ApprovalRequested,
    ItemCompleted,
    ItemStarted,
    TurnCompleted,
)
from transport.protocol.items import AgentMessage, Command
from transport.protocol.methods import APPROVAL_ANSWER, TURN_START
from transport.protocol.turns import Turn

_ASK: Final = {
    "cmd": "echo allowed > allowed.txt",
    "sandbox_permissions": "require_escalated",
    "justification": "why",
}
_RUN: Final = {
    "cmd": "until test -e go; do sleep 0.02; done; echo went > went.txt",
    "yield_time_ms": 30_000,
}
RULES: Final = (
    Rule("hardly begun", [[{"hold": "begun"}, {"msg": "done"}]]),
    Rule("in the middle", [[{"partial": "some words"}, {"hold": "middle"}]]),
    Rule("needs a yes", [[{"call": "exec_command", "args": _ASK}], [{"msg": "done"}]]),
    Rule("runs long", [[{"call": "exec_command", "args": _RUN}], [{"msg": "done"}]]),
    Rule("nearly done", [[{"msg": "all said"}, {"hold": "nearly"}]]),
)
"""What the model says at the stages; for `open_codex_home`."""

GoOn = Callable[[], Awaitable[None]]


@dataclass(kw_only=True)
class Course:
    """One turn on its way: sent by `client` into `thread` under `key`."""

    home: CodexHome
    client: Client
    thread: str
    others: frozenset[int]  # app-servers that are no writers of ours
    key: str = "course"

    def writer_pid(self) -> int:
        """Our one writer: the app-server that was not there before."""
        (pid,) = set(app_servers(os.getpid())) - self.others
        return pid

    async def send(self, text: str) -> None:
        """Start the turn; a gate that is about to open is waited for."""
        params = send_params(self.thread, text, key=self.key)
        await self.client.call(TURN_START, params, timeout_s=60)


@dataclass(kw_only=True)
class Running:
    """A turn that stands at its stage. `text`: what was sent."""

    text: str
    go_on: GoOn
    ended: Callable[[], Awaitable[Turn]]


Stage = Callable[[Course], AbstractAsyncContextManager[Running]]


class Seen:
    """All events of a client's subscription, kept; who comes late misses none."""

    def __init__(self) -> None:
        self.events: list[ClientEvent] = []
        self._news = trio.lowlevel.ParkingLot()

    async def serve(
        self, client: Client, *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Listen until cancelled; started when everything from now on is seen."""
        async with client.subscribe("all") as events:
            async for event in events:
                if isinstance(event, Resumed):
                    task_status.started()
                    break
            async for event in events:
                self.events.append(event)
                self._news.unpark_all()

    async def first(self, fits: Callable[[ClientEvent], bool]) -> ClientEvent:
        """Return the first event that fits."""
        done = 0
        while True:
            for event in self.events[done:]:
                if fits(event):
                    return event
            done = len(self.events)
            await self._news.park()


def is_delta(event: ClientEvent) -> bool:
    return isinstance(event, DeltaSeen)


def is_question(event: ClientEvent) -> bool:
    return isinstance(event, EventSeen) and isinstance(event.data, ApprovalRequested)


def is_command(event: ClientEvent) -> bool:
    return (
        isinstance(event, EventSeen)
        and isinstance(event.data, ItemStarted)
        and isinstance(event.data.item, Command)
    )


def is_said(event: ClientEvent) -> bool:
    return (
        isinstance(event, EventSeen)
        and isinstance(event.data, ItemCompleted)
        and isinstance(event.data.item, AgentMessage)
    )


async def freeze(pid: int) -> None:
    """Stop a process, and return when it stands still (that takes a moment)."""
    os.kill(pid, signal.SIGSTOP)
    stat = Path(f"/proc/{pid}/stat")
    while stat.read_text().rpartition(")")[2].split()[0] != "T":
        await trio.lowlevel.checkpoint()


async def thaw(pid: int) -> None:
    """Let a stopped process go on."""
    await trio.lowlevel.checkpoint()
    os.kill(pid, signal.SIGCONT)


async def wait_unread(pid: int) -> None:
    """Return when something waits in the input of a process that stands still."""
    count = array.array("i", [0])
    while not count[0]:
        await trio.lowlevel.checkpoint()
        fd = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NONBLOCK)
        try:
            fcntl.ioctl(fd, termios.FIONREAD, count)
        finally:
            os.close(fd)


@asynccontextmanager
async def _seen(client: Client) -> AsyncGenerator[Seen]:
    seen = Seen()

    async def serve(*, task_status: trio.TaskStatus[None]) -> None:
        await seen.serve(client, task_status=task_status)

    async with open_background(serve):
        yield seen


async def _end_of(seen: Seen) -> Turn:
    event = await seen.first(
        lambda one: isinstance(one, EventSeen) and isinstance(one.data, TurnCompleted)
    )
    assert isinstance(event, EventSeen)
    assert isinstance(event.data, TurnCompleted)
    return event.data.turn


def _held(text: str, name: str, fits: Callable[[ClientEvent], bool] | None) -> Stage:
    """Return a stage at which the model holds; `fits`: what must have been seen."""

    @asynccontextmanager
    async def stage(course: Course) -> AsyncGenerator[Running]:
        async def go_on() -> None:
            await trio.lowlevel.checkpoint()
            course.home.model.release(name)

        async with _seen(course.client) as seen:
            await course.send(text)
            await course.home.model.wait_held(name)
            if fits is not None:
                await seen.first(fits)
            yield Running(text=text, go_on=go_on, ended=lambda: _end_of(seen))

    return stage


@asynccontextmanager
async def before_the_response(course: Course) -> AsyncGenerator[Running]:
    """The act's bytes are in the pipe of a writer that does not read them yet."""
    text = "all at once"
    await send_to_end(course.client, course.thread, "a warm writer", key="warm")
    pid = course.writer_pid()
    async with _seen(course.client) as seen, trio.open_nursery() as nursery:
        await freeze(pid)
        nursery.start_soon(course.send, text)
        await wait_unread(pid)

        async def go_on() -> None:
            await thaw(pid)

        yield Running(text=text, go_on=go_on, ended=lambda: _end_of(seen))


async def _answer(course: Course, asked: ClientEvent, choice: str) -> None:
    assert isinstance(asked, EventSeen)
    assert isinstance(asked.data, ApprovalRequested)
    approval = asked.data.approval
    params = ApprovalAnswerParams(
        approval_id=approval.id, digest=approval.digest, choice=choice
    )
    await course.client.call(APPROVAL_ANSWER, params)


@asynccontextmanager
async def approval_pending(course: Course) -> AsyncGenerator[Running]:
    """Nobody has answered yet. To go on: a yes, and where that is refused, a no."""
    text = "needs a yes"
    async with _seen(course.client) as seen:
        await course.send(text)
        asked = await seen.first(is_question)

        async def go_on() -> None:
            with pytest.raises(CodexUnavailable):
                await _answer(course, asked, "allow")
            await _answer(course, asked, "deny")

        yield Running(text=text, go_on=go_on, ended=lambda: _end_of(seen))
    assert not (course.home.workspace / "allowed.txt").exists()


@asynccontextmanager
async def approval_unanswered(course: Course) -> AsyncGenerator[Running]:
    """Nobody will answer: it goes on at the deadline."""
    text = "needs a yes"
    async with _seen(course.client) as seen:
        await course.send(text)
        await seen.first(is_question)
        yield Running(
            text=text, go_on=trio.lowlevel.checkpoint, ended=lambda: _end_of(seen)
        )
    assert not (course.home.workspace / "allowed.txt").exists()


@asynccontextmanager
async def approval_answering(course: Course) -> AsyncGenerator[Running]:
    """The yes is in the pipe of a writer that does not read it yet."""
    text = "needs a yes"
    async with _seen(course.client) as seen, trio.open_nursery() as nursery:
        await course.send(text)
        asked = await seen.first(is_question)
        pid = course.writer_pid()
        await freeze(pid)
        nursery.start_soon(_answer, course, asked, "allow")
        await wait_unread(pid)

        async def go_on() -> None:
            await thaw(pid)

        yield Running(text=text, go_on=go_on, ended=lambda: _end_of(seen))
    assert (course.home.workspace / "allowed.txt").exists(), "it was allowed before"


@asynccontextmanager
async def command_running(course: Course) -> AsyncGenerator[Running]:
    """A command runs until a file appears."""
    text = "runs long"
    async with _seen(course.client) as seen:
        await course.send(text)
        await seen.first(is_command)

        async def go_on() -> None:
            await trio.Path(course.home.workspace / "go").touch()

        yield Running(text=text, go_on=go_on, ended=lambda: _end_of(seen))
    assert (course.home.workspace / "went.txt").exists(), "it was not cut short"


STAGES: Final[dict[str, Stage]] = {
    "before the response": before_the_response,
    "after turn/started": _held("hardly begun", "begun", None),
    "mid-delta": _held("in the middle", "middle", is_delta),
    "approval pending": approval_pending,
    "approval answering": approval_answering,
    "command running": command_running,
    "before turn/completed": _held("nearly done", "nearly", is_said),
}
