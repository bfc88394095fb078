"""Requests to an app-server: slots, deadlines, guards, and what each end means."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from adapter.approvals.replies import Reply
from adapter.calls.jsonrpc import Asked
from adapter.calls.peer import Listener, Peer
from adapter.errors import (
    AnswerShapeError,
    CodexOverloadedError,
    CodexRefusedError,
    NoAnswerError,
    NotDeliveredError,
)
from adapter.limits import WRITE_S
from transport.background import open_background

YES = Reply(request_id=0, result={"decision": "accept"})


@dataclass
class Pipe:
    """A stdin that takes `room` bytes, and more when a test says so."""

    room: float = float("inf")
    taken: bytearray = field(default_factory=bytearray)
    broken: bool = False
    closed: bool = False
    more: trio.Event = field(default_factory=trio.Event)
    steps: list[int] = field(default_factory=list)
    counter: "StepCounter | None" = None

    def write_now(self, data: bytes | memoryview) -> int:
        if self.broken or self.closed:
            raise trio.BrokenResourceError
        if self.counter is not None:
            self.steps.append(self.counter.count)
        fits = int(min(len(data), self.room))
        self.taken += data[:fits]
        self.room -= fits
        return fits

    async def wait_writable(self) -> None:
        if self.room == 0:
            await self.more.wait()
            self.more = trio.Event()

    def close_input(self) -> None:
        self.closed = True

    def give(self, room: float) -> None:
        self.room += room
        self.more.set()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.taken.split(b"\n")[:-1]]


class StepCounter(trio.abc.Instrument):
    """Counts how often trio ran a task: two equal counts have no checkpoint between."""

    count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


@dataclass
class Heard:
    notes: list[str] = field(default_factory=list)
    questions: list[Asked] = field(default_factory=list)

    def note(self, method: str, params: object) -> None:
        self.notes.append(method)


def peer_with(
    pipe: Pipe, heard: Heard | None = None, *, max_in_flight: int = 64
) -> Peer:
    known = heard or Heard()
    listener = Listener(
        notified=known.note, asked=known.questions.append, unread=lambda _: None
    )
    peer = Peer(listener, max_in_flight=max_in_flight)
    peer.attach(pipe)
    return peer


def answer(peer: Peer, request_id: int, result: object) -> None:
    peer.receive(json.dumps({"id": request_id, "result": result}).encode() + b"\n")


@asynccontextmanager
async def running(call: Callable[[], Awaitable[Any]]) -> AsyncGenerator[list[Any]]:
    """Run a call beside the block; its result or error lands in the list."""
    ends: list[Any] = []

    async def run() -> None:
        try:
            ends.append(await call())
        except Exception as exc:  # noqa: BLE001 - the test looks at it
            ends.append(exc)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await wait_all_tasks_blocked()
        yield ends
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()


async def test_answers_out_of_order_reach_who_asked() -> None:
    pipe = Pipe()
    peer = peer_with(pipe)
    async with (
        running(lambda: peer.call("a", {}, timeout_s=9)) as first,
        running(lambda: peer.call("b", {}, timeout_s=9)) as second,
    ):
        ids = {line["method"]: line["id"] for line in pipe.lines}
        answer(peer, ids["b"], {"n": 2})
        answer(peer, ids["a"], {"n": 1})
        await wait_all_tasks_blocked()
        assert (first, second) == ([{"n": 1}], [{"n": 2}])
    assert peer.in_flight == 0


async def test_silence_after_the_bytes_is_unknown_and_frees_the_slot(
    autojump_clock: MockClock,
) -> None:
    pipe = Pipe()
    peer = peer_with(pipe)
    with pytest.raises(NoAnswerError):
        await peer.call("turn/start", {}, timeout_s=15)
    assert trio.current_time() == 15
    assert peer.in_flight == 0
    answer(peer, pipe.lines[0]["id"], {})  # late: nothing to anybody


async def test_a_deadline_before_the_first_byte_is_certainly_without_effect(
    autojump_clock: MockClock,
) -> None:
    pipe = Pipe(room=0)
    peer = peer_with(pipe)
    with pytest.raises(NotDeliveredError):
        await peer.call("turn/start", {}, timeout_s=15)
    assert not pipe.taken
    assert peer.in_flight == 0


async def test_the_sixty_fifth_request_is_refused_at_once() -> None:
    pipe = Pipe()
    peer = peer_with(pipe, max_in_flight=1)
    async with running(lambda: peer.call("a", {}, timeout_s=9)):
        with pytest.raises(CodexOverloadedError, match="try again"):
            await peer.call("b", {}, timeout_s=9)
    assert [line["method"] for line in pipe.lines] == ["a"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"code": -32001, "message": "Server overloaded"}, CodexOverloadedError),
        ({"code": -32600, "message": "no"}, CodexRefusedError),
    ],
)
async def test_an_error_is_a_definite_refusal(
    error: object, expected: type[CodexRefusedError]
) -> None:
    pipe = Pipe()
    peer = peer_with(pipe)
    async with running(lambda: peer.call("a", {}, timeout_s=9)) as ends:
        peer.receive(json.dumps({"id": 1, "error": error}).encode() + b"\n")
        await wait_all_tasks_blocked()
        assert type(ends[0]) is expected


async def test_a_result_that_is_no_object_is_told_apart() -> None:
    peer = peer_with(Pipe())
    async with running(lambda: peer.call("a", {}, timeout_s=9)) as ends:
        answer(peer, 1, [])
        await wait_all_tasks_blocked()
        assert isinstance(ends[0], AnswerShapeError)


async def test_the_end_of_the_process_ends_every_wait_in_its_own_way() -> None:
    pipe = Pipe()
    peer = peer_with(pipe)
    async with running(lambda: peer.call("a", {}, timeout_s=9)) as sent:
        peer.close()
        await wait_all_tasks_blocked()
        assert isinstance(sent[0], NoAnswerError)
        with pytest.raises(NotDeliveredError):
            await peer.call("b", {}, timeout_s=9)


async def test_a_broken_pipe_is_certainly_without_effect() -> None:
    peer = peer_with(Pipe(broken=True))
    with pytest.raises(NotDeliveredError):
        await peer.call("a", {}, timeout_s=9)


async def test_a_guard_that_raises_sends_nothing_and_its_error_passes_through() -> None:
    pipe = Pipe()
    peer = peer_with(pipe)

    def guard() -> None:
        raise LookupError("the desktop opened")

    with pytest.raises(LookupError, match="the desktop opened"):
        await peer.call("turn/start", {}, timeout_s=9, guard=guard)
    assert not pipe.taken
    assert peer.in_flight == 0
    async with running(lambda: peer.call("next", {}, timeout_s=9)):
        assert [line["method"] for line in pipe.lines] == ["next"]


async def test_there_is_no_checkpoint_between_the_guard_and_the_first_byte() -> None:
    counter = StepCounter()
    pipe = Pipe(counter=counter)
    peer = peer_with(pipe)
    looks: list[int] = []
    trio.lowlevel.add_instrument(counter)
    try:
        async with running(
            lambda: peer.call(
                "a", {}, timeout_s=9, guard=lambda: looks.append(counter.count)
            )
        ):
            pass
    finally:
        trio.lowlevel.remove_instrument(counter)
    assert looks == pipe.steps
    assert len(looks) == 1


async def test_the_guard_runs_after_all_waiting_for_the_write_lock() -> None:
    pipe = Pipe(room=10)  # the first line does not fit
    peer = peer_with(pipe)
    looks: list[str] = []
    async with (
        running(lambda: peer.call("first", {}, timeout_s=9)),
        running(
            lambda: peer.call(
                "act", {}, timeout_s=9, guard=lambda: looks.append("looked")
            )
        ),
    ):
        assert looks == []
        pipe.give(1_000)
        await wait_all_tasks_blocked()
        assert looks == ["looked"]
        assert [line["method"] for line in pipe.lines] == ["first", "act"]


async def test_the_guard_looks_again_when_the_pipe_was_full() -> None:
    pipe = Pipe(room=0)
    peer = peer_with(pipe)
    closed = False

    def guard() -> None:
        if closed:
            raise LookupError("closed meanwhile")

    async with running(lambda: peer.call("act", {}, timeout_s=9, guard=guard)) as ends:
        closed = True
        pipe.give(1_000)
        await wait_all_tasks_blocked()
        assert isinstance(ends[0], LookupError)
    assert not pipe.taken


async def test_a_cancelled_caller_leaves_no_half_line_behind() -> None:
    pipe = Pipe(room=5)
    peer = peer_with(pipe)
    async with trio.open_nursery() as nursery:

        async def act() -> None:
            await peer.call("act", {}, timeout_s=9)

        nursery.start_soon(act)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        pipe.give(1_000)
    async with running(lambda: peer.call("next", {}, timeout_s=9)):
        assert [line["method"] for line in pipe.lines] == ["act", "next"]


async def test_a_process_that_takes_only_half_a_line_is_given_up(
    autojump_clock: MockClock,
) -> None:
    pipe = Pipe(room=5)
    peer = peer_with(pipe)
    with pytest.raises(NoAnswerError):
        await peer.call("act", {}, timeout_s=60)
    assert trio.current_time() == WRITE_S
    assert pipe.closed
    with pytest.raises(NotDeliveredError):
        await peer.call("next", {}, timeout_s=60)


async def test_an_answer_is_decided_and_written_without_a_checkpoint() -> None:
    counter = StepCounter()
    pipe = Pipe(counter=counter)
    peer = peer_with(pipe)
    decided: list[int] = []
    noted: list[int] = []

    def decide() -> Reply:
        decided.append(counter.count)
        return YES

    trio.lowlevel.add_instrument(counter)
    try:
        await peer.reply(decide, sent=lambda: noted.append(counter.count))
    finally:
        trio.lowlevel.remove_instrument(counter)
    assert decided == pipe.steps == noted
    assert pipe.lines == [{"id": 0, "result": {"decision": "accept"}}]


async def test_an_answer_that_is_refused_while_the_pipe_is_full_is_not_given() -> None:
    pipe = Pipe(room=0)
    peer = peer_with(pipe)
    revoked = False
    sent: list[str] = []

    def decide() -> Reply:
        if revoked:
            raise LookupError("revoked meanwhile")
        return YES

    async with running(
        lambda: peer.reply(decide, sent=lambda: sent.append("sent"))
    ) as ends:
        revoked = True
        pipe.give(1_000)
        await wait_all_tasks_blocked()
        assert isinstance(ends[0], LookupError)
    assert not pipe.taken
    assert not sent


async def test_an_answer_that_never_left_was_not_given(
    autojump_clock: MockClock,
) -> None:
    pipe = Pipe(room=0)
    peer = peer_with(pipe)
    sent: list[str] = []
    with trio.move_on_after(20):
        await peer.reply(lambda: YES, sent=lambda: sent.append("sent"))
    pipe.broken = True
    with pytest.raises(NotDeliveredError):
        await peer.reply(lambda: YES, sent=lambda: sent.append("sent"))
    assert not pipe.taken
    assert not sent


async def test_an_answer_that_has_begun_is_finished_whatever_is_decided_then() -> None:
    pipe = Pipe(room=5)
    peer = peer_with(pipe)
    looks: list[str] = []
    sent: list[str] = []

    def decide() -> Reply:
        looks.append("looked")
        return YES

    async with running(lambda: peer.reply(decide, sent=lambda: sent.append("sent"))):
        assert sent
        pipe.give(1_000)
        await wait_all_tasks_blocked()
    assert pipe.lines == [{"id": 0, "result": {"decision": "accept"}}]
    assert (looks, sent) == (["looked"], ["sent"])


async def test_a_refused_question_is_answered_from_the_reading_side() -> None:
    pipe, heard = Pipe(), Heard()
    peer = peer_with(pipe, heard)
    async with open_background(peer.serve_replies):
        peer.receive(b'{"id": 0, "method": "odd/question", "params": {}}\n')
        (asked,) = heard.questions
        peer.reply_soon(Reply(request_id=asked.request_id, error=(-32601, "no")))
        peer.reply_soon(Reply(request_id="s", result={}))
        await wait_all_tasks_blocked()
    assert pipe.lines == [
        {"id": 0, "error": {"code": -32601, "message": "no"}},
        {"id": "s", "result": {}},
    ]


async def test_replies_to_a_process_that_left_harm_nobody() -> None:
    peer = peer_with(Pipe(broken=True))
    async with open_background(peer.serve_replies):
        for number in range(3):
            peer.reply_soon(Reply(request_id=number, result={}))
        await wait_all_tasks_blocked()


async def test_what_is_said_is_handed_on_in_its_order() -> None:
    heard = Heard()
    peer = peer_with(Pipe(), heard)
    peer.receive(b'{"method": "one"}\nnoise\n{"method": "two"}\n{"meth')
    peer.receive(b'od": "three"}\n')
    assert heard.notes == ["one", "two", "three"]
    assert peer.garbled == 1
