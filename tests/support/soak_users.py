"""Who uses the Agent of a soak: they follow, decide, send, interrupt and take back."""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal

import trio

from tests.support.soak_messages import SCRIPTS, Message
from tests.support.soak_world import World
from transport.client import Client, EventSeen, Resumed
from transport.errors import OutcomeUnknown, Refusal, TransportError, UnreachableError
from transport.protocol import approvals, turns
from transport.protocol.events import (
    ApprovalRequested,
    TurnCompleted,
    TurnReplaced,
    TurnStarted,
)
from transport.protocol.methods import (
    APPROVAL_ANSWER,
    QUEUE_DELETE,
    TURN_INTERRUPT,
    TURN_LIST,
    TURN_START,
)
from transport.protocol.queue import QueueDeleteParams
from transport.protocol.turns import TextInput, Turn, TurnStartParams, TurnStatus

Point = tuple[str, str]  # thread, turn


class View:
    """What one client would show: the state of each turn."""

    def __init__(self) -> None:
        self.turns: dict[Point, str] = {}
        self.resumed: Counter[str] = Counter()


class Users:
    """The devices, what they send, and what each of them shows."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng
        self.messages: list[Message] = []
        self.views: dict[int, View] = {}
        self.outcomes: Counter[str] = Counter()

    async def forever(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it again whenever its connection is over for good."""
        while not self._world.over:
            with suppress(TransportError, UnreachableError, Refusal):
                await work()
            await trio.sleep(0.2)

    async def forever_sending(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it again until all is calm."""
        while not self._world.calm:
            with suppress(TransportError, UnreachableError, Refusal):
                await work()
            await trio.sleep(0.05)

    async def watch(self, device: int) -> None:
        """Show what one device is told, and decide what is asked."""
        async with (
            self._world.client(device) as client,
            client.subscribe("all") as events,
        ):
            view = self.views[device] = View()
            async for event in events:
                match event:
                    case Resumed(verdict=verdict):
                        view.resumed[verdict] += 1
                        if verdict != "ok":
                            await self._read_all(client, view)
                    case EventSeen(
                        thread_id=str(thread),
                        data=TurnStarted(turn=turn)
                        | TurnCompleted(turn=turn)
                        | TurnReplaced(turn=turn),
                    ):
                        view.turns[thread, turn.id] = turn.status.value
                    case EventSeen(data=ApprovalRequested(approval=approval)):
                        await self._decide(client, approval)
                    case _:
                        pass

    async def _read_all(self, client: Client, view: View) -> None:
        shown: dict[Point, str] = {}
        for thread in self._world.threads:
            for turn in await history(client, thread, items="none"):
                shown[thread, turn.id] = turn.status.value
        view.turns = shown

    async def _decide(self, client: Client, approval: approvals.Approval) -> None:
        choice = self._rng.choice(["allow", "deny", "", "allow"])
        if not choice:
            return
        params = approvals.ApprovalAnswerParams(
            approval_id=approval.id, digest=approval.digest, choice=choice
        )
        with suppress(Refusal):
            await client.call(APPROVAL_ANSWER, params, timeout_s=5)

    async def send(self, device: int) -> None:
        """Send until this client is killed, which may be in the middle of a call."""
        async with self._world.client(device) as client:
            with trio.move_on_after(self._rng.uniform(0.5, 20)):
                while not self._world.calm:
                    await self._send_one(client, device)
                    await trio.sleep(self._rng.uniform(0, 0.6))

    async def _send_one(self, client: Client, device: int) -> None:
        old = [one for one in self.messages if one.device == device]
        if old and self._rng.random() < 0.35:
            message = self._rng.choice(old[-6:])
        else:
            message = self._new_message(device)
        await self.ask(client, message)

    def _new_message(self, device: int) -> Message:
        name = f"m{len(self.messages)}m"
        script = self._rng.choice(SCRIPTS).replace("NAME", name)
        params = TurnStartParams(
            thread_id=self._rng.choice(self._world.threads),
            input=[TextInput(type="text", text=f"{name} SCRIPT:{script}")],
            request_key=f"{name}-{self._rng.getrandbits(96):024x}",
            wait_ms=self._rng.choice([0, 0, 500, 3_000]),
            delivery=self._rng.choice(["start", "start", "queue", "steer"]),
        )
        message = Message(name=name, device=device, params=params)
        self.messages.append(message)
        return message

    async def ask(self, client: Client, message: Message) -> str:
        """Send it, for the first time or again; return what was said of it."""
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
                message.pending = message.pending or bool(result.pending)
        told = outcome if outcome.startswith("no ") else outcome.split()[0]
        self.outcomes[told] += 1
        message.heard(outcome)
        return outcome

    async def take_back(self) -> None:
        """Take back one of the messages that wait, by the device that queued it."""
        queued = [one for one in self.messages if one.queue_id is not None]
        if not queued:
            return
        message = self._rng.choice(queued[-4:])
        assert message.queue_id is not None
        params = QueueDeleteParams(
            queue_id=message.queue_id, request_key=f"back-{message.name}".ljust(32, "-")
        )
        with suppress(TransportError, Refusal):
            async with self._world.client(message.device) as client:
                await client.call(QUEUE_DELETE, params, timeout_s=10)
                message.taken_back = True

    async def interrupt(self) -> None:
        """Stop one of the turns that a device shows as running."""
        device = self._rng.randrange(len(self._world.targets))
        view = self.views.get(device)
        shown = view.turns if view else {}
        running = [p for p, s in shown.items() if s == TurnStatus.IN_PROGRESS]
        if not running:
            return
        thread, turn = self._rng.choice(running)
        params = turns.TurnInterruptParams(
            thread_id=thread,
            turn_id=turn,
            request_key=f"{self._rng.getrandbits(128):x}".ljust(32, "x"),
        )
        with suppress(TransportError, Refusal):
            async with self._world.client(device) as client:
                await client.call(TURN_INTERRUPT, params, timeout_s=10)


async def history(
    client: Client, thread: str, *, items: Literal["none", "full"] = "full"
) -> list[Turn]:
    """Return all turns of a thread, oldest first."""
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
