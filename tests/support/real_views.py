"""Threads of a real codex that are compacted, reviewed and taken back, and who only listens to them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import trio

from clients.cli.scripted_answers import Rule
from tests.support.codex import (
    CodexHome,
    open_codex_home,
)
from tests.support.door import FakeWatch
from tests.support.real_agent import (
    open_local,
    open_real_agent,
    send_params,
)
from transport.background import open_background
from transport.client import Client, EventSeen, Resumed
from transport.protocol import events as told
from transport.protocol import methods, reviews, thread_acts, threads, turns
from transport.protocol.items import Item
from transport.protocol.turns import TextInput, Turn, TurnStatus

SUMMING = "CONTEXT CHECKPOINT COMPACTION"  # how Codex asks for a summary
NOBODY = FakeWatch()
OUTSIDE = {"cmd": "touch inside; touch ../outside", "yield_time_ms": 30_000}
ASKING = {
    "cmd": "touch ../asked",
    "sandbox_permissions": "require_escalated",
    "justification": "to see whether anybody is asked",
}
RULES = (
    Rule(SUMMING, [[{"hold": "summary"}, {"msg": "They spoke of three harbours."}]]),
    Rule("Look slowly.", [[{"hold": "slowly"}, {"msg": "Nothing."}]]),
    Rule(
        "Look with commands.",
        [
            [{"call": "exec_command", "args": OUTSIDE}],
            [{"call": "exec_command", "args": ASKING}],
            [{"msg": "Looked."}],
        ],
    ),
    Rule("current code changes", [[{"msg": "The new file is empty."}]]),
    Rule(
        "left behind",
        [
            [
                {
                    "call": "exec_command",
                    "args": {"cmd": "sleep 600", "yield_time_ms": 500},
                }
            ],
            [{"msg": "it runs on"}],
        ],
    ),
)


def key(name: str) -> str:
    return name.ljust(32, "-")


@dataclass
class View:
    """What a client shows of a thread that it only listens to, from the first turn on."""

    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])
    items: dict[str, dict[str, Item]] = field(
        default_factory=dict[str, dict[str, Item]]
    )
    reverted: list[str] = field(default_factory=list[str])
    notices: list[str] = field(default_factory=list[str])
    _news: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    async def run(self, client: Client, *, task_status: trio.TaskStatus[None]) -> None:
        async with client.subscribe("all", deltas=False) as events:
            async for event in events:
                match event:
                    case Resumed():
                        task_status.started()
                    case EventSeen(data=data):
                        self._take(data)
                        self._news.unpark_all()
                    case _:
                        pass

    def _take(self, data: told.EventData) -> None:
        match data:
            case told.TurnStarted(turn=turn) | told.TurnCompleted(turn=turn):
                self.turns[turn.id] = turn
                self.items.setdefault(turn.id, {})
            case told.ItemCompleted(item=item):
                self.items[item.turn_id][item.id] = item
            case told.ThreadReverted(last_turn_id=last):
                self.reverted.append(last)
                shown = list(self.turns)
                for gone in shown[shown.index(last) + 1 :]:
                    del self.turns[gone], self.items[gone]
            case told.Notice(code=code):
                self.notices.append(code)
            case _:
                pass

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._news.park()

    async def until_begun(self, turn_id: str) -> None:
        await self.until(lambda: turn_id in self.turns)

    async def until_ended(self, turn_id: str) -> Turn:
        await self.until_begun(turn_id)
        running = TurnStatus.IN_PROGRESS
        await self.until(lambda: self.turns[turn_id].status is not running)
        return self.turns[turn_id]

    async def until_reverted(self) -> None:
        await self.until(lambda: bool(self.reverted))

    def picture(self) -> list[tuple[str, str, list[tuple[str, str]]]]:
        return [
            (turn.id, turn.status.value, shape(list(self.items[turn.id].values())))
            for turn in self.turns.values()
        ]


def shape(items: list[Item]) -> list[tuple[str, str]]:
    """Return what of items is the same live and stored: Codex keeps no open message."""
    return [(item.kind, item.id) for item in items if item.status.value == "completed"]


@dataclass
class Stage:
    home: CodexHome
    client: Client
    view: View

    async def stored(
        self, thread_id: str
    ) -> list[tuple[str, str, list[tuple[str, str]]]]:
        params = turns.TurnListParams(thread_id=thread_id, order="asc", items="full")
        page = await self.client.call(methods.TURN_LIST, params)
        return [
            (turn.id, turn.status.value, shape(turn.items or [])) for turn in page.turns
        ]

    async def new_thread(self, *texts: str) -> tuple[str, list[str]]:
        params = threads.ThreadStartParams(
            cwd=str(self.home.workspace),
            input=[TextInput(type="text", text=texts[0])],
            request_key=key("new"),
            sandbox="workspace-write",
            wait_ms=20_000,
        )
        started = await self.client.call(methods.THREAD_START, params, timeout_s=60)
        ids = [started.turn.id]
        await self.view.until_ended(started.turn.id)
        ids += [await self.send(started.thread.id, text) for text in texts[1:]]
        return started.thread.id, ids

    async def send(self, thread_id: str, text: str) -> str:
        params = send_params(thread_id, text, key=text.replace(" ", "-"))
        turn = (await self.client.call(methods.TURN_START, params, timeout_s=60)).sent
        await self.view.until_ended(turn.id)
        return turn.id

    async def review(
        self, thread_id: str, target: Any, *, name: str = "review"
    ) -> Turn:
        params = reviews.ReviewStartParams(
            thread_id=thread_id, target=target, request_key=key(name)
        )
        result = await self.client.call(methods.REVIEW_START, params, timeout_s=60)
        again = await self.client.call(methods.REVIEW_START, params, timeout_s=60)
        assert again.turn.id == result.turn.id  # one review for one key
        return result.turn

    async def compact(self, thread_id: str) -> Turn:
        params = thread_acts.ThreadCompactParams(
            thread_id=thread_id, request_key=key("compact")
        )
        result = await self.client.call(methods.THREAD_COMPACT, params, timeout_s=60)
        again = await self.client.call(methods.THREAD_COMPACT, params, timeout_s=60)
        assert again.turn.id == result.turn.id
        return result.turn

    async def revert(self, thread_id: str, before: str, **more: Any) -> threads.Thread:
        params = thread_acts.ThreadRevertParams(
            thread_id=thread_id,
            before_turn_id=before,
            request_key=key(f"revert-{before[-20:]}"),
            **more,
        )
        result = await self.client.call(methods.THREAD_REVERT, params, timeout_s=60)
        again = await self.client.call(methods.THREAD_REVERT, params, timeout_s=60)
        assert again.thread.id == result.thread.id  # nothing more is taken back
        return result.thread

    async def interrupt(self, thread_id: str, turn_id: str) -> Turn:
        params = turns.TurnInterruptParams(
            thread_id=thread_id, turn_id=turn_id, request_key=key("interrupt")
        )
        return (await self.client.call(methods.TURN_INTERRUPT, params)).turn


@asynccontextmanager
async def stage(
    version: str, *, watch: FakeWatch | None = NOBODY, **settings: Any
) -> AsyncGenerator[Stage]:
    """Run an Agent; `watch`: `None` looks at this machine's processes."""
    with trio.fail_after(240):
        async with (
            open_codex_home(*RULES) as home,
            open_real_agent(home, version=version, watch=watch, **settings) as house,
            open_local(house) as client,
        ):
            view = View()
            async with open_background(partial(view.run, client)):
                yield Stage(home, client, view)
