"""Whole texts of this run: what is there is exact, what is not is said, all is bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.runtime.events import Emitted, ItemClosed, ItemDelta, ItemOpened
from adapter.runtime.store import HeldText
from agent.reading.output_cache import OutputCache
from transport.protocol.events import (
    DeltaChannel,
    EventData,
    ThreadRemoved,
    ThreadReverted,
)
from transport.protocol.items import (
    AgentMessage,
    ChangeKind,
    Command,
    FileChange,
    FileDiff,
    Item,
    ItemStatus,
    Reasoning,
)

OUTPUT = ("output", "")
TEXT = ("text", "")
RUNNING, DONE = ItemStatus.IN_PROGRESS, ItemStatus.COMPLETED


def command(output: str = "", status: ItemStatus = RUNNING, **more: object) -> Command:
    values = {"id": "i1", "turn_id": "t1", "command": "make", "cwd": "/w"}
    return Command.model_validate(
        {**values, "status": status, "output": output, **more}
    )


def opened(item: Item) -> ItemOpened:
    return ItemOpened(at=1, thread_id="thr", item=item)


def closed(item: Item, **more: HeldText) -> ItemClosed:
    whole = {(name, ""): text for name, text in more.items()} or None
    return ItemClosed(at=2, thread_id="thr", item=item, whole=whole)


def more(
    text: str, channel: DeltaChannel = DeltaChannel.OUTPUT, part: int = 0
) -> ItemDelta:
    return ItemDelta(
        at=1, thread_id="thr", item_id="i1", channel=channel, part=part, text=text
    )


def held(text: str) -> HeldText:
    return HeldText(data=text.encode(), total=len(text.encode()))


def test_an_open_item_grows_and_nobody_knows_how_long_it_gets() -> None:
    cache = OutputCache()
    cache.take(opened(command()))
    assert cache.texts("thr", "i1") == {OUTPUT: HeldText(data=b"", total=None)}
    cache.take(more("né"))
    cache.take(more("w"))
    told = HeldText(data="néw".encode(), total=None)
    assert cache.texts("thr", "i1") == {OUTPUT: told}
    assert cache.texts("thr", "i2") is None
    assert cache.texts("other", "i1") is None


def test_the_end_is_authoritative() -> None:
    cache = OutputCache()
    cache.take(opened(command()))
    cache.take(more("ginning lost"))
    cache.take(closed(command("beginning lost", DONE)))
    assert cache.texts("thr", "i1") == {OUTPUT: held("beginning lost")}
    cache.take(more("late"))
    assert cache.texts("thr", "i1") == {OUTPUT: held("beginning lost")}


def test_what_is_cut_in_the_item_is_whole_here() -> None:
    cache = OutputCache()
    item = command("be…lost", DONE, truncated=["output"])
    cache.take(closed(item, output=held("beginning and end")))
    assert cache.texts("thr", "i1") == {OUTPUT: held("beginning and end")}


def test_all_pieces_are_better_than_an_end_with_a_gap_and_some_are_not() -> None:
    gap = HeldText(data=b"abyz", total=6, gap_at=2)
    item = command("ab…yz", DONE, truncated=["output"])
    for pieces, expected in (("abcdyz", held("abcdyz")), ("abcyz", gap)):
        cache = OutputCache()
        cache.take(opened(command()))
        cache.take(more(pieces))
        cache.take(closed(item, output=gap))
        assert cache.texts("thr", "i1") == {OUTPUT: expected}


def test_an_item_that_we_end_ourselves_has_what_came() -> None:
    cache = OutputCache(most_text=4)
    cache.take(opened(command()))
    cache.take(more("abcdef"))
    cut = command("a…f", ItemStatus.INTERRUPTED, truncated=["output"])
    cache.take(closed(cut))
    assert cache.texts("thr", "i1") == {OUTPUT: HeldText(data=b"abcd", total=6)}


def test_history_cuts_without_a_word_and_is_not_taken_for_whole() -> None:
    cache = OutputCache()
    cache.take(closed(command("abc", DONE, provenance="codex:history")))
    assert cache.texts("thr", "i1") is None


def test_parts_of_reasoning_are_joined_by_a_blank_line() -> None:
    cache = OutputCache()
    values = {"id": "i1", "turn_id": "t1", "status": RUNNING}
    cache.take(opened(Reasoning.model_validate(values)))
    cache.take(more("one", DeltaChannel.REASONING))
    cache.take(more(" more", DeltaChannel.REASONING))
    cache.take(more("two", DeltaChannel.REASONING, part=1))
    cache.take(more("not a text of it", DeltaChannel.SUMMARY))
    told = HeldText(data=b"one more\n\ntwo", total=None)
    assert cache.texts("thr", "i1") == {TEXT: told}


def test_diffs_are_kept_by_their_path() -> None:
    change = FileDiff(
        path="/w/a", change=ChangeKind.ADD, diff="x\n", added=1, removed=0
    )
    item = FileChange(id="i1", turn_id="t1", status=DONE, changes=[change], files=1)
    cache = OutputCache()
    cache.take(closed(item))
    assert cache.texts("thr", "i1") == {("diff", "/w/a"): held("x\n")}


def test_what_was_used_longest_ago_leaves_first() -> None:
    cache = OutputCache(most=3_000)
    for name in ("i1", "i2"):
        message = AgentMessage(id=name, turn_id="t", status=DONE, text="x" * 800)
        cache.take(closed(message))
    assert cache.texts("thr", "i1") is not None  # used again
    last = AgentMessage(id="i3", turn_id="t", status=DONE, text="x" * 800)
    cache.take(closed(last))
    assert cache.texts("thr", "i2") is None
    assert cache.texts("thr", "i1") is not None


pieces = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.sampled_from("abc"), st.just("")),
        st.tuples(st.just("more"), st.sampled_from("abc"), st.text(max_size=60)),
        st.tuples(st.just("close"), st.sampled_from("abc"), st.text(max_size=60)),
    ),
    max_size=60,
)


@given(pieces)
def test_its_bytes_are_counted_right_and_bounded(
    steps: list[tuple[str, str, str]],
) -> None:
    cache = OutputCache(most=1_500, most_text=100)
    for step, name, words in steps:
        item = command(words, DONE, id=name) if step == "close" else command(id=name)
        if step == "more":
            delta = ItemDelta(
                at=1,
                thread_id="thr",
                item_id=name,
                channel=DeltaChannel.OUTPUT,
                part=0,
                text=words,
            )
            cache.take(delta)
        else:
            cache.take(opened(item) if step == "open" else closed(item))
        assert cache.bytes <= 1_500
        found = [cache.texts("thr", one) or {} for one in "abc"]
        known = sum(len(text.data) for texts in found for text in texts.values())
        assert cache.bytes == known + 512 * len(cache)


@pytest.mark.parametrize(
    "data",
    [
        ThreadRemoved(thread_id="gone", reason="deleted"),
        ThreadReverted(thread_id="gone", last_turn_id="t0"),
    ],
    ids=["removed", "reverted"],
)
def test_nothing_is_kept_of_what_a_thread_has_lost(data: EventData) -> None:
    cache = OutputCache()
    for thread_id in ("gone", "here"):
        item = AgentMessage(
            id="m1", turn_id="t1", status=ItemStatus.COMPLETED, text="Hello."
        )
        cache.take(
            ItemClosed(at=1, thread_id=thread_id, root_thread_id=None, item=item)
        )
    cache.take(Emitted(at=2, thread_id="gone", data=data))
    assert cache.texts("gone", "m1") is None
    assert cache.texts("here", "m1") is not None
    assert len(cache) == 1
