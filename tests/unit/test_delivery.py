"""Subscriptions: what a session is sent, and that leaving and coming back loses nothing."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.edge_limits import GAPS, GAPS_S, MERGED_TEXT
from agent.events.batches import Batches, View
from agent.events.journal import Journal
from agent.events.subscriptions import Subscription, Verdict
from tests.support.journals import (
    EPOCH,
    Watcher,
    closed,
    delta,
    notice,
    opened,
    resume,
)
from transport.codec import unpack

ALL = View(threads=None)


def subscription(journal: Journal) -> Subscription:
    return Subscription(journal, Batches(journal))


def frames(subscription: Subscription) -> list[dict[str, Any]]:
    return [unpack(frame) for frame in subscription.take(0.0).frames]


def test_nothing_is_sent_before_the_first_subscribe() -> None:
    journal = Journal()
    served = subscription(journal)
    journal.append(notice("a"))
    assert not served.behind
    assert served.take(0.0).frames == ()


def test_a_new_subscription_goes_on_from_the_head() -> None:
    journal = Journal()
    journal.append(notice("before"))
    served = subscription(journal)
    place = served.begin(ALL, epoch=EPOCH, resume=None)
    assert (place.verdict, place.head) == (Verdict.NEW, 1)
    journal.append(notice("after"))
    assert [frame["seq"] for frame in frames(served)] == [2]
    assert not served.behind


def test_a_cursor_in_the_ring_gets_all_that_it_missed() -> None:
    journal = Journal()
    for number in range(5):
        journal.append(notice(f"n{number}"))
    served = subscription(journal)
    place = served.begin(ALL, epoch=EPOCH, resume=resume(2))
    assert place.verdict is Verdict.OK
    assert [frame["seq"] for frame in frames(served)] == [3, 4, 5]


@pytest.mark.parametrize(
    ("seq", "epoch"),
    [(1, EPOCH), (99, EPOCH), (5, "e0.0"), (5, "e1.1")],
    ids=["fell out", "in the future", "another run", "other rights"],
)
def test_a_cursor_that_is_worth_nothing_is_a_gap(seq: int, epoch: str) -> None:
    journal = Journal(max_events=3)
    for number in range(6):
        journal.append(notice(f"n{number}"))
    served = subscription(journal)
    place = served.begin(ALL, epoch=EPOCH, resume=resume(seq, epoch))
    assert (place.verdict, place.head) == (Verdict.GAP, 6)
    assert frames(served) == []


def test_the_lowest_good_cursor_is_the_floor() -> None:
    journal = Journal(max_events=3)
    for number in range(6):
        journal.append(notice(f"n{number}"))
    served = subscription(journal)
    assert served.begin(ALL, epoch=EPOCH, resume=resume(3)).verdict is Verdict.OK
    assert [frame["seq"] for frame in frames(served)] == [4, 5, 6]


def test_neighbouring_deltas_of_one_text_are_one_with_the_last_seq() -> None:
    journal = Journal()
    served = subscription(journal)
    journal.append(opened("th", "i"))
    journal.append(opened("th", "j"))
    served.begin(ALL, epoch=EPOCH, resume=None)
    for item, text in (("i", "a"), ("i", "b"), ("j", "c"), ("i", "d"), ("i", "e")):
        journal.append(delta("th", item, text))
    assert frames(served) == [
        {"ds": [[4, 1, 0, 0, "ab"], [5, 2, 0, 0, "c"], [7, 1, 0, 0, "de"]]}
    ]


def test_one_delta_is_sent_as_one() -> None:
    journal = Journal()
    served = subscription(journal)
    journal.append(opened("th", "i"))
    served.begin(ALL, epoch=EPOCH, resume=None)
    journal.append(delta("th", "i", "a"))
    assert frames(served) == [{"d": [2, 1, 0, 0, "a"]}]


def test_deltas_are_never_merged_across_what_open_held() -> None:
    journal = Journal()
    journal.append(opened("th", "i"))
    for text in "abcd":
        journal.append(delta("th", "i", text))
    served = subscription(journal)
    place = served.begin(ALL, epoch=EPOCH, resume=resume(2))
    assert place.open[0].seq == 5
    journal.append(delta("th", "i", "e"))
    journal.append(delta("th", "i", "f"))
    assert frames(served) == [{"ds": [[5, 1, 0, 0, "bcd"], [7, 1, 0, 0, "ef"]]}]


def test_events_and_deltas_keep_their_order() -> None:
    journal = Journal()
    served = subscription(journal)
    served.begin(ALL, epoch=EPOCH, resume=None)
    for event in (
        opened("th", "i"),
        delta("th", "i", "a"),
        notice("n"),
        delta("th", "i", "b"),
        closed("th", "i", "ab"),
    ):
        journal.append(event)
    shapes = [next(iter(frame)) for frame in frames(served)]
    assert shapes == ["seq", "d", "seq", "d", "seq"]


def test_a_merged_delta_stays_small_enough_to_draw() -> None:
    journal = Journal()
    served = subscription(journal)
    journal.append(opened("th", "i"))
    served.begin(ALL, epoch=EPOCH, resume=None)
    for _ in range(64):
        journal.append(delta("th", "i", "x" * 1_000))
    (frame,) = frames(served)
    sizes = [len(one[4]) for one in frame["ds"]]
    assert sum(sizes) == 64_000
    assert max(sizes) <= MERGED_TEXT


def test_a_session_without_deltas_gets_whole_events_alone() -> None:
    journal = Journal()
    served = subscription(journal)
    served.begin(View(threads=None, deltas=False), epoch=EPOCH, resume=None)
    for event in (opened("th", "i"), delta("th", "i", "a"), closed("th", "i", "a")):
        journal.append(event)
    assert [frame["event"] for frame in frames(served)] == [
        "item/started",
        "item/completed",
    ]


def test_a_root_threads_id_matches_its_sub_agents() -> None:
    journal = Journal()
    served = subscription(journal)
    served.begin(View(threads=frozenset({"root"})), epoch=EPOCH, resume=None)
    for event in (
        opened("other", "x"),
        opened("child", "y", root="root"),
        delta("other", "x", "no"),
        delta("child", "y", "yes"),
        notice("of nobody's thread"),
        notice("of another thread", "other"),
    ):
        journal.append(event)
    first, second, third = frames(served)
    assert second == {"d": [4, 2, 0, 0, "yes"]}
    assert (first["seq"], third["seq"]) == (2, 5)


def test_threads_that_do_not_exist_for_a_device_are_not_told() -> None:
    journal = Journal()
    hidden = View(threads=None, sees=lambda root: root != "secret")
    served = subscription(journal)
    served.begin(hidden, epoch=EPOCH, resume=None)
    for event in (
        opened("secret", "a"),
        opened("child", "b", root="secret"),
        opened("open", "c"),
    ):
        journal.append(event)
    assert [frame["seq"] for frame in frames(served)] == [3]
    assert [one.item.id for one in journal.open_items(hidden.matches)] == ["c"]


def test_who_comes_back_to_much_has_each_folder_looked_at_once() -> None:
    journal = Journal()
    looked: list[str] = []

    def sees(root: str) -> bool:
        looked.append(root)
        return root != "secret"

    for event in (opened("secret", "a"), opened("open", "b")):
        journal.append(event)
    for thread_id, item_id in (("secret", "a"), ("open", "b")):
        for _ in range(100):
            journal.append(delta(thread_id, item_id, "x"))
    served = subscription(journal)
    served.begin(View(threads=None, sees=sees), epoch=EPOCH, resume=resume(0))
    assert sorted(looked) == ["open", "secret"]
    looked.clear()
    assert frames(served)
    assert sorted(looked) == ["open", "secret"]


def test_falling_out_of_the_ring_is_a_gap_from_the_head() -> None:
    journal = Journal(max_events=10)
    served = subscription(journal)
    served.begin(ALL, epoch=EPOCH, resume=None)
    journal.append(opened("th", "i"))
    for number in range(20):
        journal.append(notice(f"n{number}"))
    news = served.take(0.0)
    assert news.gap is not None
    assert (news.gap.head, news.frames) == (21, ())
    assert [one.item.id for one in news.gap.open] == ["i"]
    journal.append(notice("next"))
    assert [frame["seq"] for frame in frames(served)] == [22]


def test_one_lost_event_is_a_gap_already() -> None:
    journal = Journal(max_events=2)
    served = subscription(journal)
    served.begin(ALL, epoch=EPOCH, resume=None)
    journal.append(notice("a"))
    journal.append(notice("b"))
    journal.append(notice("c"))
    assert served.take(0.0).gap is not None


def fall(journal: Journal, served: Subscription, now: float) -> bool:
    for number in range(20):
        journal.append(notice(f"n{number}"))
    news = served.take(now)
    assert news.gap is not None
    return news.quiet


def test_three_gaps_in_a_minute_turn_deltas_off_until_the_next_subscribe() -> None:
    journal = Journal(max_events=10)
    served = subscription(journal)
    served.begin(ALL, epoch=EPOCH, resume=None)
    assert [fall(journal, served, at) for at in (0, 20, 40)] == [False, False, True]
    assert GAPS == 3
    journal.append(opened("th", "i"))
    journal.append(delta("th", "i", "x"))
    assert [frame["event"] for frame in frames(served)] == ["item/started"]
    served.begin(ALL, epoch=EPOCH, resume=None)
    journal.append(delta("th", "i", "y"))
    assert frames(served) == [{"d": [journal.head, 1, 0, 0, "y"]}]


def test_gaps_that_are_far_apart_turn_nothing_off() -> None:
    journal = Journal(max_events=10)
    served = subscription(journal)
    served.begin(ALL, epoch=EPOCH, resume=None)
    assert not any(fall(journal, served, at * GAPS_S) for at in range(5))


def test_sessions_at_the_same_place_share_the_same_bytes() -> None:
    journal = Journal()
    batches = Batches(journal)
    first, second = (Subscription(journal, batches) for _ in range(2))
    for one in (first, second):
        one.begin(ALL, epoch=EPOCH, resume=None)
    journal.append(opened("th", "i"))
    journal.append(delta("th", "i", "x"))
    mine, theirs = first.take(0.0).frames, second.take(0.0).frames
    assert mine == theirs
    assert all(a is b for a, b in zip(mine, theirs, strict=True))


# A client that leaves and comes back


@dataclass
class World:
    """A journal, what the store would say, and two watchers of it."""

    journal: Journal
    texts: dict[str, str] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    items: int = 0

    def history(self) -> dict[str, str]:
        return {
            item: text for item, text in self.texts.items() if item not in self.open
        }

    def begin(self) -> None:
        item = f"i{self.items}"
        self.items += 1
        self.open.append(item)
        self.texts[item] = ""
        self.journal.append(opened("th", item))

    def say(self, which: int, text: str) -> None:
        if self.open:
            item = self.open[which % len(self.open)]
            self.texts[item] += text
            self.journal.append(delta("th", item, text))

    def end(self, which: int) -> None:
        if self.open:
            item = self.open.pop(which % len(self.open))
            self.journal.append(closed("th", item, self.texts[item]))


_SAY = st.tuples(
    st.just("say"), st.integers(0, 1), st.text("abcü", min_size=1, max_size=3)
)
STEPS = st.one_of(
    st.just(("begin",)),
    _SAY,
    _SAY,
    _SAY,
    st.tuples(st.just("end"), st.integers(0, 1)),
    st.tuples(st.just("notices"), st.integers(1, 7)),
    st.just(("pull",)),
    st.just(("leave",)),
    st.just(("return",)),
)


@settings(max_examples=4 * settings().max_examples)  # an example costs 10 ms
@given(st.lists(STEPS, min_size=10, max_size=80), st.sampled_from([6, 20, 1_000]))
def test_whoever_leaves_and_comes_back_shows_what_one_shows_who_stayed(
    steps: list[tuple[object, ...]], ring: int
) -> None:
    journal = Journal(max_events=ring)
    world = World(journal)
    stayed = Watcher(journal, subscription(journal))
    roamer = Watcher(journal, subscription(journal))
    stayed.connect(subscription(journal), ALL, EPOCH, {})
    roamer.connect(subscription(journal), ALL, EPOCH, {})
    away = False
    for step in steps:
        match step:
            case ("begin",):
                world.begin()
            case ("say", int(which), str(text)):
                world.say(which, text)
            case ("end", int(which)):
                world.end(which)
            case ("notices", int(count)):
                for _ in range(count):
                    journal.append(notice("n"))
            case ("pull",) if not away:
                roamer.pull(world.history())
            case ("leave",):
                away = True
            case ("return",):
                away = False
                roamer.connect(subscription(journal), ALL, EPOCH, world.history())
            case _:
                pass
        stayed.pull_all(world.history())
    if away:
        roamer.connect(subscription(journal), ALL, EPOCH, world.history())
    roamer.pull_all(world.history())
    assert stayed.shown == world.texts
    assert roamer.shown == world.texts
