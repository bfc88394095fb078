"""Threads of a real codex behind an Agent, whose model says what the rules want, and their items."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import trio

from clients.cli.scripted_answers import Rule
from tests.support.agents import House, client_info
from tests.support.codex import (
    CodexHome,
    open_codex_home,
)
from tests.support.door import FakeWatch
from tests.support.real_agent import (
    open_local,
    open_real_agent,
)
from transport.client import Client, EventSeen, Resumed, open_client
from transport.protocol import contents, methods, threads
from transport.protocol.events import (
    EventData,
    TurnCompleted,
)
from transport.protocol.items import Item
from transport.protocol.turns import InputPart, TextInput, Turn

DEADLINE_S = 240
LINES = 100_000  # 0.6 MB, which Codex keeps
MORE_LINES = 400_000  # 2.7 MB, which it cuts


def counted(lines: int) -> bytes:
    """Return what `seq` prints."""
    return "".join(f"{number}\n" for number in range(1, lines + 1)).encode()


WHOLE = counted(LINES)
PATCH = (
    "*** Begin Patch\n*** Add File: made.txt\n+one\n+two\n"
    "*** Update File: old.txt\n@@\n-before\n+after\n*** End Patch"
)


def run(command: str) -> dict[str, Any]:
    """Return a call that runs a command to its end, and shows the model little of it."""
    args = {"cmd": command, "yield_time_ms": 30_000, "max_output_tokens": 20}
    return {"call": "exec_command", "args": args}


RULES = (
    Rule("Count.", [[run(f"seq 1 {LINES}")], [{"msg": "Counted in the harbour."}]]),
    Rule("Count on.", [[run(f"seq 1 {MORE_LINES}")], [{"msg": "Counted."}]]),
    Rule("Write.", [[{"patch": PATCH}], [{"msg": "Written."}]]),
    Rule("Wait.", [[{"partial": "Well, "}, {"hold": "never"}]]),
    Rule("Hello.", [[{"msg": "Hello to the lighthouse."}]]),
    Rule("Again.", [[{"msg": "Again."}]]),
)


@asynccontextmanager
async def house(version: str) -> AsyncGenerator[tuple[CodexHome, House, Client]]:
    """Run an Agent on a fresh home whose workspace has an `old.txt`."""
    with trio.fail_after(DEADLINE_S):
        async with (
            open_codex_home(*RULES) as home,
            open_real_agent(home, version=version, watch=FakeWatch()) as built,
            open_local(built) as client,
        ):
            (home.workspace / "old.txt").write_text("before\n")
            yield home, built, client


def key(name: str) -> str:
    """Return a request key."""
    return name.ljust(32, "-")


def said(text: str) -> list[InputPart]:
    """Return a message."""
    return [TextInput(type="text", text=text)]


async def new_thread(client: Client, home: CodexHome, text: str) -> tuple[str, Turn]:
    """Make a thread; return it when its first turn has ended."""
    params = threads.ThreadStartParams(
        cwd=str(home.workspace),
        input=said(text),
        sandbox="danger-full-access",
        approval_policy="never",
        request_key=key(f"new-{text[:5]}"),
    )
    async with client.subscribe("all", deltas=False) as events:
        async for event in events:
            if isinstance(event, Resumed):
                break
        started = await client.call(methods.THREAD_START, params, timeout_s=60)
        async for event in events:
            match event:
                case EventSeen(data=TurnCompleted(turn=turn)):
                    if turn.id == started.turn.id:
                        return started.thread.id, turn
                case _:
                    pass
    raise AssertionError("the subscription ended before the turn")


async def items(client: Client, thread_id: str, **more: Any) -> list[Item]:
    """Return all items, page by page."""
    found: list[Item] = []
    params = contents.ItemListParams(thread_id=thread_id, **more)
    while True:
        page = await client.call(methods.ITEM_LIST, params)
        found += page.items
        if page.next_cursor is None:
            return found
        params = params.model_copy(update={"cursor": page.next_cursor})


async def output(
    client: Client, thread_id: str, item: Item, field: str = "output", **more: Any
) -> tuple[bytes, contents.ItemOutputResult]:
    """Return all that is there of a text, part by part."""
    data = b""
    while True:
        params = contents.ItemOutputParams(
            thread_id=thread_id,
            item_id=item.id,
            field=field,  # type: ignore[arg-type]  # one of the three words
            offset=len(data),
            **more,
        )
        part = await client.call(methods.ITEM_OUTPUT, params)
        data += part.bytes
        if part.eof:
            return data, part


class Ear:
    """What was heard, and a way to wait for more."""

    def __init__(self) -> None:
        self.heard: list[EventData] = []
        self._news = trio.Event()

    def take(self, data: EventData) -> None:
        """Take in one event."""
        self.heard.append(data)
        self._news.set()

    async def turn_ended(self, turn_id: str) -> None:
        """Return when the turn has ended."""
        while not any(
            isinstance(d, TurnCompleted) and d.turn.id == turn_id for d in self.heard
        ):
            self._news = trio.Event()
            await self._news.wait()


@asynccontextmanager
async def listening(house: House, ear: Ear) -> AsyncGenerator[None]:
    """Collect the data of all events while the block runs."""

    async def listen(*, task_status: trio.TaskStatus[None]) -> None:
        async with (
            open_client(house.admin, client_info("ear", "e" * 32)) as client,
            client.subscribe("all", deltas=False) as events,
        ):
            async for event in events:
                match event:
                    case Resumed():
                        task_status.started()
                    case EventSeen(data=data):
                        ear.take(data)
                    case _:
                        pass

    async with trio.open_nursery() as nursery:
        await nursery.start(listen)
        yield
        nursery.cancel_scope.cancel(reason="heard enough")
