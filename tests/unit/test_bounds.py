"""What the Agent remembers while it runs is bounded: each table at its bound, and past it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapter.events.live import Live
from adapter.events.notices import Notices, notice
from adapter.events.open_items import OpenItem, OpenItems
from adapter.events.turn_record import TurnRecord
from adapter.limits import (
    CLOSED_ITEMS,
    ENDED_TURNS,
    KNOWN_TURNS,
    LIVE_BYTES,
    LIVE_ITEMS,
    NOTICES_SAID,
)
from agent.access.roots import Roots
from agent.app_servers.leases import LeaseBook, Step
from agent.edge_limits import (
    BATCHES_SHARED,
    DELTAS_A_FRAME,
    KEPT_PARTS,
    LOCAL_SESSIONS,
    OPEN_ITEMS,
)
from agent.events.batches import Batches, View
from agent.events.journal import Journal
from agent.events.open_items import OpenItem as ShownItem
from agent.files.upload import check_declared
from agent.limits import (
    AUDIT_LATER,
    AUDIT_LINE,
    AUDIT_TEXT,
    BLOBS_A_DEVICE,
    DEVICE_BLOB_BYTES,
    DROPPED_KEPT,
    ELSEWHERE_KEPT,
    FOLDERS_KEPT,
    QUEUE_ALL,
)
from agent.queue.dropped_book import Dropped, DroppedBook
from agent.queue.queue_book import QueueBook, Waiting
from agent.records.audit import Audit
from agent.sessions.session_table import SessionTable
from tests.support.full_disk import full_disk
from tests.support.journals import delta, opened
from transport.codec import unpack
from transport.errors import Overloaded, TooLarge
from transport.limits import REFS_HELD
from transport.protocol.blobs import BlobBeginParams
from transport.protocol.events import DeltaChannel, NoticeLevel
from transport.protocol.items import AgentMessage, ItemStatus
from transport.protocol.session import SubscribeResult
from transport.protocol.turns import Turn, TurnStatus
from transport.subscription import Subscription


def message(item_id: str, text: str = "") -> AgentMessage:
    return AgentMessage(
        id=item_id, turn_id="t", status=ItemStatus.IN_PROGRESS, text=text
    )


def test_turns_that_an_app_server_knew_are_forgotten_from_the_oldest_on() -> None:
    live = Live("codex", lambda: 0)
    for number in range(KNOWN_TURNS + 1):
        live.know(f"t{number}")
    assert (live.knows("t0"), live.knows("t1")) == (False, True)
    for number in range(ENDED_TURNS + 1):
        turn = Turn(id=f"t{number}", thread_id="th", status=TurnStatus.COMPLETED)
        live.remember(turn)
    assert len(live.ended) == ENDED_TURNS
    for number in range(ENDED_TURNS + 1):
        live.same_turn(f"r{number}", "told")
    assert (live.turn_id("r0"), live.turn_id("r1")) == ("r0", "told")


def test_ended_items_are_forgotten_from_the_oldest_on() -> None:
    items = OpenItems()
    for number in range(CLOSED_ITEMS + 1):
        one = OpenItem("th", "agentMessage", message(f"i{number}"))
        items.begin(one)
        items.end(one)
    assert (items.ended("th", "i0"), items.ended("th", "i1")) == (False, True)


def test_a_running_turn_shows_its_newest_items() -> None:
    many = TurnRecord(id="t", thread_id="th", started_at=0, slept=0)
    for number in range(LIVE_ITEMS + 5):
        many.ended(message(f"i{number}"))
    assert (len(many.items), many.more) == (LIVE_ITEMS, True)
    large = TurnRecord(id="t", thread_id="th", started_at=0, slept=0)
    for number in range(40):
        large.ended(message(f"i{number}", "x" * 64 * 1024))
    assert large.size <= LIVE_BYTES
    assert large.more


def test_a_notice_may_be_said_again_when_many_others_came_between() -> None:
    notices = Notices()

    def say(text: str) -> int:
        said = notice(NoticeLevel.INFO, "codexWarning", text)
        return len(notices.once(said, root=None, at=0))

    assert (say("first"), say("first")) == (1, 0)
    for number in range(NOTICES_SAID):
        say(f"n{number}")
    assert say("first") == 1


def test_threads_that_others_have_are_forgotten_from_the_oldest_on() -> None:
    book = LeaseBook(most=4)
    for number in range(ELSEWHERE_KEPT + 10):
        for step in (Step.OPEN, Step.RELEASE, Step.LOSE):
            book.take(f"th{number}", step, at=number)
    assert len(book._rows) == ELSEWHERE_KEPT  # pyright: ignore[reportPrivateUsage]
    assert f"th{ELSEWHERE_KEPT + 9}" in book._rows  # pyright: ignore[reportPrivateUsage]


def test_folders_are_forgotten_from_the_longest_unseen_on() -> None:
    roots = Roots()
    roots.learn(f"/work/{number}" for number in range(FOLDERS_KEPT + 1))
    assert len(roots._folders) == FOLDERS_KEPT  # pyright: ignore[reportPrivateUsage]
    assert "/work/0" not in roots._folders  # pyright: ignore[reportPrivateUsage]


def test_the_queue_is_bounded_in_all() -> None:
    row = Waiting(
        queue_id="q",
        thread_id="th",
        device_id="d",
        params="{}",
        preview="",
        created_at=0,
        expires_at=1,
        until=1,
    )
    rows = [
        replace(row, queue_id=f"q{number}", thread_id=f"th{number}")
        for number in range(QUEUE_ALL)
    ]
    with pytest.raises(Overloaded) as refused:
        QueueBook(rows).check_room("another", "e")
    assert refused.value.data == {"limit": QUEUE_ALL}
    QueueBook(rows[1:]).check_room("another", "e")


def test_what_is_told_of_dropped_ones_is_bounded_and_nobody_pushes_anothers_out() -> (
    None
):
    one = Dropped(
        queue_id="mine",
        thread_id="thr",
        device_id="d1",
        preview="",
        code="queueExpired",
        message="",
        error=None,
        at=0,
        since=0,
    )
    book = DroppedBook([one])
    for number in range(2 * DROPPED_KEPT):
        book.add(replace(one, queue_id=f"q{number}", device_id="d2"))
    ids = [row.queue_id for row in book.shown(whole=True)]
    assert len(ids) == DROPPED_KEPT
    assert ids[0] == "mine"
    assert ids[-1] == f"q{2 * DROPPED_KEPT - 1}"
    gone = [one for one, row in book.unwritten().items() if row is None]
    assert len(gone) == DROPPED_KEPT + 1


def test_items_in_progress_are_bounded_and_so_are_their_parts() -> None:
    journal = Journal()
    for number in range(OPEN_ITEMS + 3):
        journal.append(opened("th", f"i{number}"))
    assert len(journal._open) == len(journal._by_ref) == OPEN_ITEMS  # pyright: ignore[reportPrivateUsage]
    one = ShownItem(1, 1, "th", None, message("i"))
    for part in range(KEPT_PARTS + 3):
        one.add(DeltaChannel.SUMMARY, part, "x")
    assert len(one._texts) == KEPT_PARTS  # pyright: ignore[reportPrivateUsage]


def test_a_frame_of_deltas_fits_the_decoder() -> None:
    journal = Journal()
    for number in range(2):
        journal.append(opened("th", f"i{number}"))
    place = journal.head
    for number in range(2 * DELTAS_A_FRAME + 2):
        journal.append(delta("th", f"i{number % 2}", "x"))
    batch = Batches(journal).after(place, View(threads=None), barrier=0)
    sizes = [len(unpack(frame)["ds"]) for frame in batch.frames]
    assert sizes == [DELTAS_A_FRAME, DELTAS_A_FRAME, 2]


def test_who_catches_up_from_far_behind_costs_no_copy_of_the_ring() -> None:
    journal = Journal()
    journal.append(opened("th", "i"))
    for _ in range(2 * BATCHES_SHARED + 20):
        journal.append(delta("th", "i", "x" * 128 * 1024))
    batches = Batches(journal)
    position, view = 1, View(threads=None)
    while position < journal.head:
        batch = batches.after(position, view, barrier=0)
        assert batch is batches.after(position, view, barrier=0), "shared all the same"
        position = batch.position
        assert len(batches._made) <= BATCHES_SHARED  # pyright: ignore[reportPrivateUsage]


class Seat:
    device_id = "local"

    def __init__(self, instance: str) -> None:
        self.instance = instance


def test_the_owners_own_sessions_are_bounded_apart() -> None:
    table: SessionTable[Seat] = SessionTable(most=0, most_per_device=0)
    for number in range(LOCAL_SESSIONS):
        table.add(Seat(f"i{number}"))
    with pytest.raises(Overloaded) as refused:
        table.add(Seat("more"))
    assert refused.value.data == {"limit": LOCAL_SESSIONS}


def test_entries_of_the_audit_are_short_and_those_that_wait_are_counted(
    tmp_path: Path,
) -> None:
    audit = Audit(tmp_path / "audit.jsonl", now_ms=lambda: 0)
    with pytest.raises(ValueError, match="content"):
        audit.record("x", **{f"field{n}": "y" * AUDIT_TEXT for n in range(AUDIT_LINE)})
    audit.record("x", name="y" * 10 * AUDIT_TEXT)
    with full_disk():
        for number in range(AUDIT_LATER + 7):
            audit.note("no", number=number)
    audit.catch_up()
    assert not audit.owes
    audit.close()
    lines = (tmp_path / "audit.jsonl").read_text().splitlines()
    assert len(lines) == AUDIT_LATER + 1
    assert '"number":7' in lines[1], "the oldest of them went"


@pytest.mark.parametrize(
    ("stored", "files"), [(DEVICE_BLOB_BYTES - 9, 1), (0, BLOBS_A_DEVICE)]
)
def test_what_a_device_has_on_the_disk_is_bounded(stored: int, files: int) -> None:
    params = BlobBeginParams(
        name="a", size=10, sha256="0" * 64, media_type="text/plain"
    )
    with pytest.raises(TooLarge):
        check_declared(params, stored=stored, files=files)
    check_declared(params, stored=max(0, stored - 1), files=files - 1)


def test_a_client_follows_so_many_items_at_once() -> None:
    subscription = Subscription("all", deltas=True)
    subscription.params()
    subscription.answered(SubscribeResult(epoch="e", head=0, verdict="new", open=[]))
    item = message("i").wire()
    for seq in range(1, REFS_HELD + 5):
        data: dict[str, Any] = {"ref": seq, "item": item}
        frame = {"seq": seq, "event": "item/started", "at": 0, "data": data}
        assert len(list(subscription.events(frame))) == 1
    assert len(subscription._refs) == REFS_HELD  # pyright: ignore[reportPrivateUsage]
