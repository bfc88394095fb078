"""The journal: seqs, refs, open items, what leaves the ring and in which order."""

from typing import Any

from adapter.runtime.events import Emitted, ItemDelta, ItemOpened
from agent.edge_limits import ENTRY_COST, KEPT_TEXT, OPEN_ANSWER, WHOLE_EVENT
from agent.events.entries import Said, Told
from agent.events.journal import Journal
from tests.support.journals import AT, closed, delta, notice, opened
from transport.codec import pack, unpack
from transport.protocol.events import DeltaChannel, TurnDiff
from transport.protocol.items import AgentMessage, Command, ItemStatus, Reasoning


def everything(*_: str | None) -> bool:
    return True


def told(journal: Journal, after: int = 0) -> list[dict[str, Any]]:
    return [
        unpack(entry.data) for entry in journal.after(after) if isinstance(entry, Told)
    ]


def said(journal: Journal) -> list[tuple[int, int, str]]:
    return [
        (entry.seq, entry.ref, entry.text)
        for entry in journal.after(0)
        if isinstance(entry, Said)
    ]


def test_seqs_count_from_one_over_events_and_deltas_alike() -> None:
    journal = Journal()
    assert journal.head == 0
    seqs = [
        journal.append(event)
        for event in (
            notice("a"),
            opened("th", "i"),
            delta("th", "i", "x"),
            closed("th", "i", "x"),
        )
    ]
    assert seqs == [1, 2, 3, 4]
    assert [frame["seq"] for frame in told(journal)] == [1, 2, 4]


def test_an_event_is_packed_once_with_all_that_the_protocol_names() -> None:
    journal = Journal()
    journal.append(opened("child", "i", root="root"))
    frame = told(journal)[0]
    assert frame["event"] == "item/started"
    assert frame["at"] == AT
    assert frame["threadId"] == "child"
    assert frame["rootThreadId"] == "root"
    data = frame["data"]
    assert data["ref"] == 1
    assert data["item"]["kind"] == "agentMessage"


def test_an_item_keeps_its_ref_until_it_ends_and_no_other_ever_gets_it() -> None:
    journal = Journal()
    for event in (
        opened("th", "i"),
        delta("th", "i", "x"),
        closed("th", "i", "x"),
        opened("th", "i"),
        closed("th", "never-opened", "y"),
    ):
        journal.append(event)
    refs = [frame["data"]["ref"] for frame in told(journal)]
    assert refs == [1, 1, 2, 3]
    assert said(journal) == [(2, 1, "x")]


def test_a_delta_of_no_open_item_is_left_out() -> None:
    journal = Journal()
    journal.append(delta("th", "i", "early"))
    journal.append(opened("th", "i"))
    journal.append(closed("th", "i", ""))
    journal.append(delta("th", "i", "late"))
    assert journal.head == 2
    assert said(journal) == []


def test_open_holds_the_text_so_far_and_the_seq_of_its_last_part() -> None:
    journal = Journal()
    journal.append(opened("th", "i"))
    journal.append(delta("th", "i", "Hello"))
    journal.append(notice("between"))
    journal.append(delta("th", "i", " world"))
    journal.append(notice("after"))
    (one,) = journal.open_items(everything)
    assert (one.ref, one.seq) == (1, 4)
    assert isinstance(one.item, AgentMessage)
    assert one.item.text == "Hello world"


def test_parts_of_a_summary_stay_apart_and_parts_of_a_text_are_joined() -> None:
    journal = Journal()
    item = Reasoning(id="r", turn_id="t", status=ItemStatus.IN_PROGRESS)
    journal.append(ItemOpened(at=AT, thread_id="th", item=item))
    for channel, part, text in (
        (DeltaChannel.SUMMARY, 0, "first"),
        (DeltaChannel.SUMMARY, 1, "sec"),
        (DeltaChannel.SUMMARY, 1, "ond"),
        (DeltaChannel.REASONING, 0, "raw"),
        (DeltaChannel.REASONING, 1, "more"),
    ):
        journal.append(
            ItemDelta(
                at=AT,
                thread_id="th",
                item_id="r",
                channel=channel,
                part=part,
                text=text,
            )
        )
    (one,) = journal.open_items(everything)
    assert isinstance(one.item, Reasoning)
    assert one.item.summary == ["first", "second"]
    assert one.item.text == "raw\n\nmore"


def test_a_long_output_keeps_its_head_and_its_newest_tail() -> None:
    journal = Journal()
    item = Command(
        id="c", turn_id="t", status=ItemStatus.IN_PROGRESS, command="yes", cwd="/"
    )
    journal.append(ItemOpened(at=AT, thread_id="th", item=item))
    for number in range(3_000):
        journal.append(
            delta(
                "th",
                "c",
                f"line {number:06d} {'x' * 80}\n",
                channel=DeltaChannel.OUTPUT,
            )
        )
    (one,) = journal.open_items(everything)
    assert isinstance(one.item, Command)
    assert one.item.output.startswith("line 000000 ")
    assert "line 002999" in one.item.output
    assert len(one.item.output) <= KEPT_TEXT
    assert one.item.truncated == ["output"]


def test_all_open_items_together_fit_half_a_mebibyte() -> None:
    journal = Journal()
    for number in range(40):
        journal.append(opened("th", f"i{number}"))
        journal.append(delta("th", f"i{number}", "y" * 60_000))
    opens = journal.open_items(everything)
    assert len(opens) == 40
    assert sum(len(pack(one.wire())) for one in opens) <= OPEN_ANSWER
    assert all(one.item.truncated == ["text"] for one in opens)


def test_only_matching_items_are_told_as_open() -> None:
    journal = Journal()
    journal.append(opened("a", "i"))
    journal.append(opened("child", "j", root="b"))
    found = journal.open_items(lambda thread, root: "b" in (thread, root))
    assert [one.item.id for one in found] == ["j"]


def test_the_oldest_event_leaves_first_and_moves_the_floor() -> None:
    journal = Journal(max_events=3)
    for number in range(5):
        journal.append(notice(f"n{number}"))
    assert len(journal) == 3
    assert journal.floor == 2
    assert [frame["seq"] for frame in told(journal)] == [3, 4, 5]


def test_deltas_of_completed_items_leave_before_any_event() -> None:
    journal = Journal(max_events=40)
    journal.append(notice("first"))
    journal.append(opened("th", "i"))
    for _ in range(30):
        journal.append(delta("th", "i", "x"))
    journal.append(closed("th", "i", "x" * 30))
    for number in range(20):
        journal.append(notice(f"n{number}"))
    assert journal.floor == 0, "no cursor lost anything"
    assert said(journal) == []
    assert len(told(journal)) == 23


def test_deltas_of_an_open_item_stay() -> None:
    journal = Journal(max_events=40)
    journal.append(opened("th", "open"))
    journal.append(opened("th", "done"))
    for _ in range(15):
        journal.append(delta("th", "open", "o"))
        journal.append(delta("th", "done", "d"))
    journal.append(closed("th", "done", "d" * 15))
    for number in range(10):
        journal.append(notice(f"n{number}"))
    assert {ref for _, ref, _ in said(journal)} == {1}
    assert len(said(journal)) == 15


def test_bytes_are_bounded_too_and_counted_exactly() -> None:
    journal = Journal(max_bytes=50_000)
    for number in range(200):
        journal.append(opened("th", f"i{number}"))
        journal.append(delta("th", f"i{number}", "ü" * 400))
        if number % 3:
            journal.append(closed("th", f"i{number}", "ü" * 400))
        assert journal.bytes <= 50_000
    kept = sum(
        len(entry.data) + ENTRY_COST if isinstance(entry, Told) else entry.size
        for entry in journal.after(0)
    )
    assert journal.bytes == kept


def test_an_event_that_would_not_fit_a_frame_becomes_a_notice() -> None:
    journal = Journal()
    huge = TurnDiff(turn_id="t", diff="d" * (WHOLE_EVENT + 1))
    journal.append(Emitted(at=AT, thread_id="th", data=huge))
    (frame,) = told(journal)
    assert frame["event"] == "notice"
    assert frame["data"]["code"] == "eventTooLarge"


def test_half_a_surrogate_pair_does_not_stop_the_journal() -> None:
    journal = Journal()
    journal.append(opened("th", "i"))
    journal.append(delta("th", "i", "a\ud800b"))
    journal.append(closed("th", "i", "a\ud800b"))
    assert journal.head == 3
