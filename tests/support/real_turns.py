"""One turn on a real codex: what was told of it live, and how history has it."""

from dataclasses import dataclass
from typing import Any, TypeVar

from adapter.events.normalize import Normalizer
from adapter.runtime.events import Emitted, ItemClosed, ItemDelta, RuntimeEvent
from adapter.runtime.threads import NewThread
from clients.cli.scripted_answers import Rule
from tests.support.foreign import ForeignCodex, open_foreign
from tests.support.runtimes import FIRST, Running, Stage, open_gate, open_stage
from transport.protocol.events import (
    DeltaChannel,
    TurnCompleted,
)
from transport.protocol.items import (
    Item,
)
from transport.protocol.turns import Turn

KindT = TypeVar("KindT", bound=Item)


@dataclass
class Told:
    """One turn: what was told of it live, and how history has it."""

    thread_id: str
    events: list[RuntimeEvent]
    turn: Turn
    stored: Turn

    @property
    def items(self) -> list[Item]:
        """Every item of the thread itself, as it ended live."""
        return [
            event.item
            for event in self.events
            if isinstance(event, ItemClosed) and event.thread_id == self.thread_id
        ]

    def of(self, kind: type[KindT]) -> list[KindT]:
        """Return its items of one kind."""
        return [item for item in self.items if isinstance(item, kind)]

    def data(self, kind: type[Any]) -> list[Any]:
        """Return the data of its events of one kind."""
        return [
            event.data
            for event in self.events
            if isinstance(event, Emitted) and isinstance(event.data, kind)
        ]

    def grew(self, channel: DeltaChannel) -> str:
        """Return what its deltas of one channel make together."""
        deltas = (e for e in self.events if isinstance(e, ItemDelta))
        return "".join(one.text for one in deltas if one.channel is channel)

    def check_history(self, *kinds: str) -> None:
        """History has the same items of these kinds, but for where they were seen."""
        live = [plain(item) for item in self.items if item.kind in kinds]
        assert live
        kept = [plain(item) for item in self.stored.items or () if item.kind in kinds]
        assert kept == live


def plain(item: Item) -> dict[str, Any]:
    """Return the item without where and when it was seen."""
    leave = {"provenance", "startedAt", "completedAt"}
    return {key: value for key, value in item.wire().items() if key not in leave}


async def told_of(
    version: str,
    text: str,
    *rules: Rule,
    extra: str = "",
    features: tuple[str, ...] = (),
    children: int = 0,
) -> Told:
    """Run one turn on a home of its own; `children`: sub-agents whose end is awaited."""
    opened = open_stage(version, *rules, extra=extra, features=features)
    async with opened as stage:
        return await told_in(stage, text, children=children)


async def told_in(stage: Stage, text: str, *, children: int = 0) -> Told:
    """Run one turn in a writer of ours, in a new thread."""
    seen = stage.seen
    async with stage.run.writer() as writer:
        new = NewThread(cwd=str(stage.home.workspace))
        loaded = await writer.start_thread(new, guard=open_gate)
        turn = await writer.start_turn([text], client_key=FIRST, guard=open_gate)
        ended = await seen.turn_completed(turn.id)
        await seen.until(lambda: len(seen.data(TurnCompleted)) > children)
    stored = await newest_turn(stage.run, loaded.thread.id)
    return Told(loaded.thread.id, seen.events, ended, stored)


async def newest_turn(run: Running, thread_id: str) -> Turn:
    """Return the thread's newest turn as history has it, whole."""
    page = await run.reader.list_turns(
        thread_id, cursor=None, limit=1, order="desc", items="full"
    )
    return page.turns[0]


async def told_by_another(
    version: str, method: str, params: dict[str, Any], *, extra: str = ""
) -> Told:
    """Let another program do it in a thread of its own; its codex tells our normalizer."""
    async with open_stage(version, extra=extra) as stage:
        place = stage.home.workspace
        async with open_foreign(stage.codex, stage.home.environ, cwd=place) as other:
            thread_id = await other.start_thread(place, "hello")
            before = len(other.log)
            await other.request(method, {"threadId": thread_id, **params})
            await second_turn(other)
            described = await other.request("thread/read", {"threadId": thread_id})
            normalizer = Normalizer()
            normalizer.adopt(described["thread"], [])
            events = [
                event
                for message in other.log[before:]
                for event in normalizer.notification(
                    message["method"], message.get("params", {}), 1
                )
            ]
        assert not normalizer.misfits
        turn = next(
            e.data.turn
            for e in events
            if isinstance(e, Emitted) and isinstance(e.data, TurnCompleted)
        )
        return Told(thread_id, events, turn, await newest_turn(stage.run, thread_id))


async def second_turn(other: ForeignCodex) -> None:
    """Return when the other codex has ended its second turn."""
    turns = {
        message["params"]["turn"]["id"]
        for message in other.log
        if message["method"] == "turn/completed"
    }
    while len(turns) < 2:
        found = await other.next_of("turn/completed", known=turns)
        turns.add(found["turn"]["id"])
