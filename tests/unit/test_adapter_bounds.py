"""What one app-server can make us hold is bounded: brought there, and one past it."""

from itertools import count
from typing import Any

import pytest

from adapter.approvals.approvals import ApprovalLedger
from adapter.calls import jsonrpc
from adapter.calls.jsonrpc import (
    Asked,
    Garbled,
    JsonRpc,
    Notified,
    PeerEvent,
    Unread,
)
from adapter.calls.peer import Listener, Peer
from adapter.events.live import Live
from adapter.events.normalize import Normalizer
from adapter.events.open_items import OpenItem
from adapter.events.tree import Tree
from adapter.limits import (
    APPROVALS_OPEN,
    ITEM_BYTES,
    KNOWN_THREADS,
    LINE_BYTES,
    MISFIT_NAMES,
    OPEN_AT_ONCE,
    REPLY_BYTES,
    STDERR_RING,
    STDERR_TAIL,
    TEXT_BYTES,
    TEXT_PARTS,
)
from adapter.processes.log_ring import LogRing
from adapter.runtime.events import Emitted, ItemClosed, ItemOpened, RuntimeEvent
from tests.support import codex_says as says
from tests.support.codex_says import AT, THREAD
from transport.protocol.events import DeltaChannel, Notice
from transport.protocol.items import ItemStatus, Reasoning

SMALL = 10_000


def drain(rpc: JsonRpc) -> list[PeerEvent]:
    return list(iter(rpc.next_event, None))


@pytest.mark.parametrize("begin", [b'{"params":"', b"no message at all "])
def test_a_line_that_does_not_end_is_given_up_and_the_next_one_counts(
    begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LINE_BYTES > 3 * 20_000_000, "the longest that was seen has 20 MB"
    monkeypatch.setattr(jsonrpc, "LINE_BYTES", SMALL)
    rpc = JsonRpc()
    rpc.receive_data(begin)
    told: list[PeerEvent] = []
    for _ in range(100):
        rpc.receive_data(b"x" * 1_000)
        told += drain(rpc)
        assert rpc.held <= SMALL + 1_000
    rpc.receive_data(b'"}\n{"method":"next"}\n')
    garbled, after = told + drain(rpc)
    assert isinstance(garbled, Garbled)
    assert (garbled.reason, garbled.head[:9]) == ("longer than 10000 bytes", begin[:9])
    assert after == Notified(method="next", params={})


def too_long(begin: bytes, monkeypatch: pytest.MonkeyPatch) -> PeerEvent:
    """Return what becomes of a line that begins so and is longer than is kept."""
    monkeypatch.setattr(jsonrpc, "LINE_BYTES", SMALL)
    rpc = JsonRpc()
    line = begin + b"x" * (2 * SMALL)
    told: list[PeerEvent] = []
    for start in range(0, len(line), 700):
        rpc.receive_data(line[start : start + 700])
        told += drain(rpc)
    rpc.receive_data(b'"}}\n{"method":"next"}\n')
    first, after = told + drain(rpc)
    assert after == Notified(method="next", params={})
    return first


@pytest.mark.parametrize(
    ("begin", "request_id", "thread_id"),
    [
        (b'{"method":"a/b","id":0,"params":{"threadId":"thr-1","x":"', 0, "thr-1"),
        (b'{"method":"a/b","id":-7,"params":{"x":"', -7, None),
        (b'{"method":"a/b","id":"0","params":{"kind":"k","threadId":"t"', "0", "t"),
        (b'{"method":"a/b","params":{"threadId":"thr-1","x":"', None, "thr-1"),
        (b'{"method":"a/b","params":{"item":{"threadId":"no","x":"', None, None),
    ],
)
def test_a_message_that_is_too_long_still_says_what_it_is(
    begin: bytes,
    request_id: int | str | None,
    thread_id: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = too_long(begin, monkeypatch)
    assert line == Unread(request_id=request_id, method="a/b", thread_id=thread_id)
    assert isinstance(line, Unread)
    assert type(line.request_id) is type(request_id)


@pytest.mark.parametrize(
    "begin",
    [
        b'{"id":3,"method":"m","params":{"x":"',  # not Codex's order
        b'{"method":"m","id":null,"params":{"x":"',
        b'{"method":"m","id":1.5,"params":{"x":"',
        b'{"method":"m","id":true,"params":{"x":"',
        b'{"method":"m","id":"a\\"b","params":{"x":"',
        b'{"method":"m","other":1,"params":{"x":"',
        b'{"method":"m m","id":1,"params":{"x":"',
        b'{"method":"' + b"m" * 129 + b'","id":1,"params":{"x":"',
        b'{"params":{"method":"m","id":1,"params":{"x":"',
        b'["{\\"method\\":\\"m\\",',
    ],
)
def test_what_does_not_begin_like_a_message_of_codex_is_taken_for_none(
    begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(too_long(begin, monkeypatch), Garbled)


def test_a_line_at_the_bound_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    line = b'{"method":"m","params":{"text":"%s"}}' % (b"x" * SMALL)
    monkeypatch.setattr(jsonrpc, "LINE_BYTES", len(line))
    rpc = JsonRpc()
    rpc.receive_data(line)
    assert drain(rpc) == []
    rpc.receive_data(b"\n")
    (event,) = drain(rpc)
    assert isinstance(event, Notified)


class FullPipe:
    """Takes nothing. `closed`: it was given up."""

    closed = False

    def write_now(self, data: bytes | memoryview) -> int:
        return 0

    async def wait_writable(self) -> None:
        raise AssertionError

    def close_input(self) -> None:
        self.closed = True


def test_a_process_that_asks_on_and_on_and_reads_no_answer_is_given_up() -> None:
    answered, pipe, ids = 0, FullPipe(), count()
    ledger = ApprovalLedger(mint=lambda: f"apr_{next(ids)}")

    def asked(question: Asked) -> None:
        nonlocal answered
        taken = ledger.asked(
            question.request_id,
            question.method,
            question.params,
            at=AT,
            item=None,
            root_thread_id=THREAD,
        )
        assert taken.reply is not None
        answered += 1
        peer.reply_soon(taken.reply)

    peer = Peer(
        Listener(
            notified=lambda _method, _params: None, asked=asked, unread=lambda _: None
        )
    )
    peer.attach(pipe)
    for number in count():
        if pipe.closed:
            break
        peer.receive(b'{"id":%d,"method":"odd/question","params":{}}\n' % number)
        assert number < REPLY_BYTES
    held = peer._reply_bytes  # pyright: ignore[reportPrivateUsage]
    assert 0.99 * REPLY_BYTES < held <= REPLY_BYTES
    assert answered > 5_000, "no honest codex comes here"


def begun(normalizer: Normalizer, item_id: str) -> list[RuntimeEvent]:
    raw = says.in_turn(says.message(item_id))
    return normalizer.notification("item/started", raw, AT)


def running() -> Normalizer:
    normalizer = Normalizer()
    normalizer.adopt(says.thread(), [])
    params = {"threadId": THREAD, "turn": says.turn()}
    normalizer.notification("turn/started", params, AT)
    return normalizer


def test_before_one_item_more_than_is_followed_the_oldest_is_ended() -> None:
    normalizer = running()
    for number in range(OPEN_AT_ONCE):
        assert len(begun(normalizer, f"i{number}")) == 1
    ended, opened = begun(normalizer, "more")
    assert isinstance(ended, ItemClosed)
    assert (ended.item.id, ended.item.status) == ("i0", ItemStatus.INTERRUPTED)
    assert isinstance(opened, ItemOpened)
    end = says.in_turn(says.message("i0", "late"))
    assert normalizer.notification("item/completed", end, AT) == [], "not ended twice"
    assert normalizer.item(THREAD, "i1") is not None
    over = [one for one in normalizer.ended(AT) if isinstance(one, ItemClosed)]
    assert len(over) == OPEN_AT_ONCE


def test_commands_that_outlive_their_turns_are_counted_up_to_a_bound() -> None:
    normalizer = running()
    for number in range(OPEN_AT_ONCE + 10):
        turn, raw = f"t{number}", says.command(f"c{number}", processId="7")
        started = {"threadId": THREAD, "turn": says.turn(turn)}
        stopped = {"threadId": THREAD, "turn": says.turn(turn, "interrupted")}
        normalizer.notification("turn/started", started, AT)
        normalizer.notification("item/started", says.in_turn(raw, turn), AT)
        normalizer.notification("turn/completed", stopped, AT)
    live: Live = normalizer._live  # pyright: ignore[reportPrivateUsage]
    assert len(live.still_running) == OPEN_AT_ONCE
    assert normalizer.busy


def test_the_text_so_far_of_an_item_is_bounded_however_many_parts_it_has() -> None:
    opened = OpenItem("th", "reasoning", reasoning())
    for part in range(3 * TEXT_PARTS):
        for _ in range(3):
            opened.append(DeltaChannel.SUMMARY, part, "x" * TEXT_BYTES)
    texts = opened._texts  # pyright: ignore[reportPrivateUsage]
    assert len(texts) == TEXT_PARTS
    held = sum(len(str(one)) for one in texts.values())
    assert held < ITEM_BYTES + 2 * TEXT_BYTES
    shown = opened.now()
    assert isinstance(shown, Reasoning)
    assert sum(map(len, shown.summary)) <= TEXT_BYTES
    assert shown.sizes == {"summary": 9 * TEXT_PARTS * TEXT_BYTES}, "as it really is"


def reasoning() -> Reasoning:
    return Reasoning(
        id="r", turn_id="t", status=ItemStatus.IN_PROGRESS, summary=[], text=""
    )


def test_threads_are_forgotten_by_whatever_way_they_were_heard_of() -> None:
    normalizer = running()
    tree: Tree = normalizer._live.tree  # pyright: ignore[reportPrivateUsage]
    for number in range(2 * KNOWN_THREADS):
        said = {"thread": says.thread(f"s{number}", parentThreadId=THREAD)}
        normalizer.notification("thread/started", said, AT)
        tree.link(f"l{number}", THREAD)
        assert len(tree.nodes) <= KNOWN_THREADS
    assert normalizer.running_turn(THREAD) == "t1", "what we loaded stays"


def test_even_threads_that_all_work_at_once_are_bounded() -> None:
    tree = Tree()
    for number in range(KNOWN_THREADS + 1):
        tree.node(f"t{number}").running = "turn"
    assert len(tree.nodes) <= KNOWN_THREADS
    assert f"t{KNOWN_THREADS}" in tree.nodes


def test_what_is_open_in_a_thread_that_was_forgotten_ends_with_the_process() -> None:
    normalizer = running()
    raw = says.in_turn(says.command("c", processId="7"), "t9", "other")
    normalizer.notification("item/started", raw, AT)
    del normalizer._live.tree.nodes["other"]  # pyright: ignore[reportPrivateUsage]
    ended = [one for one in normalizer.ended(AT) if isinstance(one, ItemClosed)]
    assert [one.item.id for one in ended] == ["c"]


def test_unknown_messages_are_counted_apart_up_to_a_bound() -> None:
    normalizer = Normalizer()
    for number in range(2 * MISFIT_NAMES):
        normalizer.notification(f"new/{number}", {}, AT)
    assert len(normalizer.misfits) == MISFIT_NAMES + 1
    assert normalizer.misfits["…"] == MISFIT_NAMES
    again = normalizer.notification("other/one", {}, AT)
    assert again == [], "the rest is told once, for all"


def test_of_what_an_app_server_logs_the_newest_is_kept() -> None:
    log = LogRing()
    for _ in range(40):
        log.add(b"x" * (STDERR_RING // 16))
    log.add("€".encode() * STDERR_TAIL * 2)
    assert len(log) == STDERR_RING
    assert log.tail() == "€" * STDERR_TAIL


def test_one_question_more_than_anybody_can_answer_is_declined_and_said() -> None:
    ids = count()
    ledger = ApprovalLedger(mint=lambda: f"apr_{next(ids)}")

    def ask(number: int) -> Any:
        params = {
            "threadId": THREAD,
            "turnId": "t1",
            "itemId": f"c{number}",
            "startedAtMs": AT,
            "command": "make",
            "cwd": "/w",
        }
        method = "item/commandExecution/requestApproval"
        return ledger.asked(
            number, method, params, at=AT, item=None, root_thread_id=THREAD
        )

    for number in range(APPROVALS_OPEN):
        assert ask(number).reply is None
    refused = ask(APPROVALS_OPEN)
    assert refused.reply.result == {"decision": "decline"}
    (said,) = refused.events
    assert isinstance(said, Emitted)
    assert isinstance(said.data, Notice)
    assert len(ledger.pending()) == APPROVALS_OPEN
