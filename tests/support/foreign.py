"""Another program that drives codex on the same CODEX_HOME: what the desktop would do.

It speaks to a real `codex app-server` over stdio, plainly, with none of our own code,
so that a test's other side cannot share a fault with the code under test.
"""

import json
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import trio

from transport.background import open_background

Json = dict[str, Any]


class ForeignRefusedError(Exception):
    """The app-server answered with an error; `args` are code and message."""


class ForeignCodex:
    """One app-server of somebody else. `log`: every notification, in order."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.log: list[Json] = []
        self._answers: dict[int, Json] = {}
        self._news = trio.Condition()
        self._next_id = 0

    @property
    def pid(self) -> int:
        """The process that holds what this one loads."""
        return self.process.pid

    async def read(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Take in all that the app-server says."""
        task_status.started()
        assert self.process.stdout is not None
        buffer = bytearray()
        async for chunk in self.process.stdout:
            buffer += chunk
            if b"\n" not in chunk:
                continue
            *lines, rest = bytes(buffer).split(b"\n")
            buffer[:] = rest
            async with self._news:
                for line in lines:
                    self._take(cast("Json", json.loads(line)))
                self._news.notify_all()

    def _take(self, message: Json) -> None:
        if "method" in message:
            self.log.append(message)
        else:
            self._answers[int(message["id"])] = message

    async def send(self, message: Mapping[str, Any]) -> None:
        """Write one raw message."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(json.dumps(message).encode() + b"\n")

    async def request(self, method: str, params: Mapping[str, Any]) -> Json:
        """Return the result. Raises ForeignRefusedError."""
        self._next_id += 1
        number = self._next_id
        await self.send({"id": number, "method": method, "params": params})
        async with self._news:
            while number not in self._answers:
                await self._news.wait()
        answer = self._answers.pop(number)
        if "error" in answer:
            error = answer["error"]
            raise ForeignRefusedError(error["code"], error["message"])
        return cast("Json", answer["result"])

    async def wait_for(self, method: str, **match: object) -> Json:
        """Return the params of the first notification (or request) that matches."""
        async with self._news:
            while True:
                for message in self.log:
                    params = cast("Json", message.get("params") or {})
                    if message["method"] == method and match.items() <= params.items():
                        return params
                await self._news.wait()

    async def next_of(self, method: str, *, known: set[str]) -> Json:
        """Return the params of a turn's notification whose turn is not among `known`."""
        async with self._news:
            while True:
                for message in self.log:
                    params = cast("Json", message.get("params") or {})
                    if (
                        message["method"] == method
                        and params["turn"]["id"] not in known
                    ):
                        return params
                await self._news.wait()

    async def start_thread(self, cwd: Path, text: str) -> str:
        """Make a thread with one completed turn; return its id."""
        started = await self.request("thread/start", {"cwd": str(cwd)})
        thread_id = str(started["thread"]["id"])
        await self.turn(thread_id, text)
        return thread_id

    async def turn(self, thread_id: str, text: str) -> Json:
        """Run one turn to its end; return the completed turn."""
        turn = await self.begin_turn(thread_id, text)
        async with self._news:
            while True:
                for message in self.log:
                    params = cast("Json", message.get("params") or {})
                    if message["method"] != "turn/completed":
                        continue
                    if params["turn"]["id"] == turn["id"]:
                        return cast("Json", params["turn"])
                await self._news.wait()

    async def begin_turn(self, thread_id: str, text: str) -> Json:
        """Start a turn and do not wait for its end."""
        given = [{"type": "text", "text": text}]
        answer = await self.request(
            "turn/start", {"threadId": thread_id, "input": given}
        )
        return cast("Json", answer["turn"])

    async def resume(self, thread_id: str) -> Json:
        """Load a thread, taking its lock where this codex has one."""
        return await self.request("thread/resume", {"threadId": thread_id})


@asynccontextmanager
async def open_foreign(
    codex: Path, environ: Mapping[str, str], *, cwd: Path | None = None
) -> AsyncGenerator[ForeignCodex]:
    """Run a foreign app-server beside the block; leaving ends it and awaits its exit."""
    run = partial(
        trio.run_process,
        [str(codex), "app-server", "--stdio"],
        env=dict(environ),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    async with open_background(run) as process:
        foreign = ForeignCodex(process)
        async with open_background(foreign.read):
            info = {"clientInfo": {"name": "foreign", "version": "1"}}
            caps = {"capabilities": {"experimentalApi": True}}
            await foreign.request("initialize", {**info, **caps})
            await foreign.send({"method": "initialized"})
            yield foreign
            assert process.stdin is not None
            await process.stdin.aclose()
            with trio.move_on_after(5):
                await process.wait()
