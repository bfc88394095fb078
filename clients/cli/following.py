"""A turn that we start, from the call to its end. Trio shell.

The subscription comes before the call, so that nothing of the turn is missed. Its first
events may come before the call's answer tells which turn it is: they wait in memory.
"""

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

import trio

from clients.cli.eventjson import event_json
from clients.cli.exits import ExitCode, FailedError
from clients.cli.find import device_names, pending_approvals
from clients.cli.inplace import InPlace
from clients.cli.lines.threads import turn_end
from clients.cli.screen import Screen
from clients.cli.style import Span, dim
from clients.cli.transcript import Transcript
from clients.cli.turn_watch import TurnWatch
from transport.background import open_background
from transport.client import Client
from transport.protocol.base import Params
from transport.protocol.methods import THREAD_READ, Method
from transport.protocol.thread_acts import ThreadCompactResult, ThreadForkResult
from transport.protocol.threads import ThreadReadParams, ThreadStartResult
from transport.protocol.turns import Turn, TurnResult, TurnStatus
from transport.subscription import ClientEvent, Resumed

Start = Callable[[], Awaitable[tuple[str, Turn]]]
P = TypeVar("P", bound=Params)
Begun = TypeVar(
    "Begun", ThreadStartResult, ThreadForkResult, ThreadCompactResult, TurnResult
)

REREAD: Final = 20  # turns, newest first, among which ours must be
MAX_EARLY: Final = 10_000  # events kept before the answer; more are told by the history

_UNSEEN: Final = "It may have been sent: look with `threadgate threads`."


@dataclass(slots=True)
class _Follower:
    """What is known of the turn. `early`: events before we knew its thread. `devices`:
    their names by their ids, as far as known. `again`: the call may be a repeat."""

    screen: Screen
    client: Client
    devices: Mapping[str, str]
    again: bool = False
    watch: TurnWatch = field(default_factory=TurnWatch)
    early: list[ClientEvent] = field(default_factory=list[ClientEvent])
    transcript: Transcript | None = None
    inplace: InPlace = field(init=False)
    thread_id: str = ""
    over: trio.CancelScope = field(default_factory=trio.CancelScope)

    def __post_init__(self) -> None:
        self.inplace = InPlace(self.screen, self.client)

    async def start(self, start: Start, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        self.thread_id, turn = await start()
        self.watch.expect(turn.id)
        self.transcript = Transcript(
            root=self.thread_id,
            announced=turn.id,
            me=self.client.opened.device.id,
            devices=self.devices,
        )
        self.inplace.tell(self.transcript)
        for event in self.early:
            self.show(event)
        self.early.clear()
        self.stop_if_over()
        if self.again:  # its turn may have ended before we listened
            await self.reread()
            self.stop_if_over()

    async def follow(self, events: AsyncIterator[ClientEvent]) -> None:
        async for event in events:
            self.watch.feed(event)
            if self.transcript is None:
                if len(self.early) < MAX_EARLY:
                    self.early.append(event)
                continue
            self.show(event)
            if isinstance(event, Resumed) and event.verdict == "gap":
                await self.reread()
            self.stop_if_over()

    async def reread(self) -> None:
        """After a gap history tells whether the turn has ended."""
        params = ThreadReadParams(thread_id=self.thread_id, turns=REREAD)
        turns = (await self.client.call(THREAD_READ, params)).turns
        if not self.watch.reread(turns):
            raise FailedError(
                "the turn is not in the thread's history: look with "
                f"`threadgate read {self.thread_id}` before you send again"
            )
        if (ended := self.watch.ended) is not None:
            self.screen.say(dim(f"── turn {ended.id} "), turn_end(ended))
            return
        waiting = await pending_approvals(self.client, self.thread_id)
        if self.transcript is not None and not self.screen.as_json:
            self.inplace.settle(waiting)
            for one in waiting:
                told = self.transcript.waiting([one], self.screen.clock())
                self.inplace.show(told, one)

    def show(self, event: ClientEvent) -> None:
        if self.screen.as_json:
            self.screen.json(event_json(event))
        elif self.transcript is not None:
            self.inplace.meet(event)
            told = self.transcript.feed(event, self.screen.clock())
            self.inplace.show(told, self.transcript.asked(event))

    def leave(self) -> None:
        """End the line that is written; after Ctrl-C say what becomes of the turn."""
        if self.transcript is not None and not self.screen.as_json:
            self.screen.pieces(self.transcript.finish())
        # Nurseries wrap `Cancelled`: whether it was that is read from the scope.
        stopped = trio.current_effective_deadline() == -math.inf
        if self.watch.ended is not None or not stopped:
            return
        if self.transcript is None:
            self.screen.note(_UNSEEN)
            return
        self.screen.note(
            f"The turn goes on: `threadgate watch {self.thread_id}` shows it, "
            f"`threadgate interrupt {self.thread_id}` stops it."
        )

    def stop_if_over(self) -> None:
        if self.watch.ended is not None:
            self.over.cancel(reason="the turn has ended")


@contextmanager
def in_doubt(screen: Screen) -> Generator[None]:
    """Say after Ctrl-C that what is sent in this block may have arrived."""
    try:
        yield
    except trio.Cancelled:
        screen.note(_UNSEEN)
        raise


async def begin(
    screen: Screen, client: Client, method: Method[P, Begun], params: P, says: str
) -> tuple[str, Turn]:
    """Have a turn started, and say in which thread; `says` is what stands before it."""
    result = await client.call(method, params)
    if screen.as_json:
        screen.json({"event": "answer", "result": result.wire()})
    turn = result.turn
    screen.say(dim(says), Span(turn.thread_id, "name"), dim(f" as turn {turn.id}"))
    return turn.thread_id, turn


async def carry_out(
    screen: Screen,
    client: Client,
    selection: str | None,
    start: Start,
    *,
    follow: bool,
    again: bool = False,
) -> ExitCode:
    """Start a turn, and with `follow` show it until it ends; the exit code is its end's.

    `again`: under a key that was given, so that it may be a repeat.
    """
    if not follow:
        with in_doubt(screen):
            await start()
        return ExitCode.OK
    turn = await follow_turn(screen, client, selection, start, again=again)
    return ExitCode.OK if turn.status is TurnStatus.COMPLETED else ExitCode.FAILED


async def follow_turn(
    screen: Screen,
    client: Client,
    selection: str | None,
    start: Start,
    *,
    again: bool = False,
) -> Turn:
    """Start a turn by `start` and show it until it ends; return it at its end.

    `selection`: the thread that is meant; None where it comes into being by the call.
    Raises what `start` raises.
    """
    follower = _Follower(screen, client, await device_names(client), again)
    threads = "all" if selection is None else [selection]
    try:
        async with client.subscribe(threads) as events:
            with follower.over:
                async with (
                    open_background(follower.inplace.serve),
                    open_background(partial(follower.start, start)),
                ):
                    await follower.follow(events)
    finally:
        follower.leave()
    ended = follower.watch.ended
    assert ended is not None  # the stream has no other end than an error
    return ended
