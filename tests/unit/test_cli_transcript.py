"""What a person sees of events, beside the files in golden/."""

from dataclasses import replace
from pathlib import Path

import pytest

from clients.cli.style import paint_span
from clients.cli.transcript import Piece, Transcript
from clients.cli.turn_watch import KEPT, TurnWatch
from tests.support import cli_samples as samples
from tests.support import cli_work as work
from tests.support.cli_samples import BLOG, CLOCK, NOON, SHOP
from tests.support.golden import check_golden
from transport.protocol.approvals import ApprovalState
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    DeltaChannel,
    EventData,
    GateChanged,
    ItemCompleted,
    ItemStarted,
    Notice,
    NoticeLevel,
    Open,
    PlanStep,
    RuntimeChanged,
    ThreadStarted,
    TurnCompleted,
    TurnPlan,
    TurnReplaced,
    TurnStarted,
    UsageChanged,
)
from transport.protocol.items import ItemStatus
from transport.protocol.turns import TurnStatus, Usage
from transport.subscription import ClientEvent, DeltaSeen, EventSeen, Resumed

GOLDEN = Path(__file__).parent / "golden"
RUNNING = ItemStatus.IN_PROGRESS


class Story:
    """Builds events with rising seqs."""

    def __init__(self) -> None:
        self.seq = 0

    def event(self, data: EventData, thread_id: str | None = SHOP) -> EventSeen:
        self.seq += 1
        return EventSeen(
            seq=self.seq, at=NOON, thread_id=thread_id, root_thread_id=None, data=data
        )

    def delta(
        self, ref: int, text: str, channel: DeltaChannel = DeltaChannel.TEXT
    ) -> DeltaSeen:
        self.seq += 1
        return DeltaSeen(seq=self.seq, ref=ref, channel=channel, part=0, text=text)


def told(transcript: Transcript, events: list[ClientEvent]) -> str:
    pieces = [piece for event in events for piece in transcript.feed(event, CLOCK)]
    return text([*pieces, *transcript.finish()])


def text(pieces: list[Piece]) -> str:
    return "".join(
        "".join(paint_span(span, colour=False) for span in piece.spans)
        + ("\n" if piece.ends else "")
        for piece in pieces
    )


def resumed(verdict: str = "new", *opened: Open) -> Resumed:
    return Resumed(verdict=verdict, epoch="e1", head=0, open=list(opened))


def a_turn(story: Story) -> list[ClientEvent]:
    asked = samples.command_approval()
    yes = samples.command_approval(
        state=ApprovalState.ANSWERED, choice="accept", decided_by="phone"
    )
    running = samples.turn(status=TurnStatus.IN_PROGRESS)
    start = samples.message("", RUNNING)
    return [
        resumed(),
        story.event(TurnStarted(turn=running)),
        story.event(ItemStarted(ref=1, item=samples.user_message())),
        story.event(ItemCompleted(ref=1, item=samples.user_message())),
        story.event(ItemStarted(ref=2, item=samples.reasoning())),
        story.delta(2, "Looking", DeltaChannel.SUMMARY),
        story.event(ItemCompleted(ref=2, item=samples.reasoning())),
        story.event(ItemStarted(ref=3, item=samples.command(RUNNING))),
        story.event(ApprovalRequested(approval=asked)),
        story.event(ApprovalResolved(approval=yes)),
        story.delta(3, "3 passed\n", DeltaChannel.OUTPUT),
        story.event(ItemCompleted(ref=3, item=samples.command())),
        story.event(ItemStarted(ref=4, item=samples.change(RUNNING))),
        story.event(ItemCompleted(ref=4, item=samples.change())),
        story.event(ItemStarted(ref=5, item=start)),
        story.delta(5, "The \x1b["),
        story.delta(5, "1mcart\x1b[0m\npage "),
        story.delta(5, "is there."),
        story.event(
            ItemCompleted(
                ref=5, item=samples.message("The \x1b[1mcart\x1b[0m\npage is there.")
            )
        ),
        story.event(
            UsageChanged(
                turn_id="turn-1",
                usage=Usage(input=1, cached_input=0, output=1, reasoning=0, total=2),
            )
        ),
        story.event(TurnCompleted(turn=samples.turn())),
    ]


def test_a_turn_is_told_as_the_golden_file_says() -> None:
    shown = told(Transcript(root=SHOP), a_turn(Story()))
    check_golden(GOLDEN / "turn.txt", shown)


def test_a_watch_over_all_threads_names_the_thread_of_each_part() -> None:
    story = Story()
    names = {SHOP: "Add a cart page"}
    plan = TurnPlan(
        turn_id="t",
        explanation="Small steps",
        steps=[
            PlanStep(text="look", status="completed"),
            PlanStep(text="change", status="inProgress"),
            PlanStep(text="test", status="pending"),
        ],
    )
    notice = Notice(level=NoticeLevel.WARNING, code="runtimeDied", message="it died")
    shown = told(
        Transcript(names=names),
        [
            resumed(),
            story.event(plan),
            story.event(
                ThreadStarted(thread=samples.thread(BLOG, title="A blog")), BLOG
            ),
            story.event(TurnStarted(turn=samples.turn("turn-9")), BLOG),
            story.event(TurnCompleted(turn=samples.turn()), SHOP),
            story.event(GateChanged(gate=samples.closed_gate()), None),
            story.event(RuntimeChanged(runtime=samples.runtime()), None),
            story.event(notice, None),
        ],
    )
    check_golden(GOLDEN / "watch.txt", shown)


def test_a_message_that_something_interrupts_goes_on_with_its_label() -> None:
    story = Story()
    item = samples.message("", RUNNING)
    shown = told(
        Transcript(),
        [
            story.event(ItemStarted(ref=1, item=item)),
            story.delta(1, "one "),
            story.event(ItemStarted(ref=2, item=samples.command(RUNNING))),
            story.delta(1, "two"),
            story.event(ItemCompleted(ref=1, item=samples.message("one two"))),
        ],
    )
    assert shown == "codex  one \nrun    make test\ncodex  two\n"


def test_what_the_deltas_lacked_comes_with_the_completed_message() -> None:
    story = Story()
    shown = told(
        Transcript(),
        [
            story.event(ItemStarted(ref=1, item=samples.message("", RUNNING))),
            story.delta(1, "one "),
            story.event(ItemCompleted(ref=1, item=samples.message("one two three"))),
        ],
    )
    assert shown == "codex  one two three\n"


def test_a_message_that_became_another_is_told_again_whole() -> None:
    story = Story()
    shown = told(
        Transcript(),
        [
            story.event(ItemStarted(ref=1, item=samples.message("", RUNNING))),
            story.delta(1, "half a"),
            story.event(ItemCompleted(ref=1, item=samples.message("whole"))),
        ],
    )
    assert shown == "codex  half a\ncodex  (the whole message:)\ncodex  whole\n"


def test_a_message_that_was_cut_for_the_wire_is_not_told_twice() -> None:
    story = Story()
    cut = samples.message("begin…end").model_copy(update={"truncated": ["text"]})
    shown = told(
        Transcript(),
        [
            story.event(ItemStarted(ref=1, item=samples.message("", RUNNING))),
            story.delta(1, "begin middle end"),
            story.event(ItemCompleted(ref=1, item=cut)),
        ],
    )
    assert shown == "codex  begin middle end\n"


def test_whoever_comes_late_sees_the_open_message_from_its_beginning() -> None:
    story = Story()
    late = Open(ref=7, seq=3, item=samples.message("so far ", RUNNING))
    shown = told(
        Transcript(),
        [
            resumed("new", late),
            story.delta(7, "and on"),
            story.event(ItemCompleted(ref=7, item=samples.message("so far and on"))),
        ],
    )
    assert shown == "codex  so far and on\n"


def test_an_open_item_is_placed_though_its_turn_was_not_told() -> None:
    shop = samples.message("for the shop", RUNNING)
    blog = samples.message("for the blog", RUNNING)
    opened = (
        Open(ref=1, seq=1, item=shop, thread_id=SHOP),
        Open(ref=2, seq=2, item=blog, thread_id=BLOG),
        Open(ref=3, seq=3, item=shop, thread_id="child", root_thread_id=SHOP),
    )
    names = {SHOP: "Shop", BLOG: "Blog"}
    assert told(Transcript(names=names), [resumed("gap", *opened[:2])]).endswith(
        f"── {SHOP}  Shop\ncodex  for the shop\n── {BLOG}  Blog\ncodex  for the blog\n"
    )
    one = told(Transcript(root=SHOP), [resumed("new", *opened)])
    assert one == "codex  for the shop\n── sub-agent child\ncodex  for the shop\n"


def test_after_a_lost_link_nothing_is_told_twice_and_nothing_is_missing() -> None:
    story = Story()
    more = Open(ref=1, seq=9, item=samples.message("one two ", RUNNING))
    shown = told(
        Transcript(),
        [
            story.event(ItemStarted(ref=1, item=samples.message("", RUNNING))),
            story.delta(1, "one "),
            resumed("ok", more),
            story.delta(1, "three"),
            story.event(ItemCompleted(ref=1, item=samples.message("one two three"))),
        ],
    )
    assert shown == "codex  one two three\n"


def test_an_approval_is_told_once_whether_it_is_listed_or_asked() -> None:
    transcript, asked = Transcript(root=SHOP), samples.command_approval()
    listed = text(transcript.waiting([asked], CLOCK))
    assert "make deploy" in listed
    late = Story().event(ApprovalRequested(approval=asked))
    assert told(transcript, [late]) == ""
    assert text(transcript.waiting([asked], CLOCK)) == ""


def test_a_gap_is_said() -> None:
    assert "some events were missed" in told(Transcript(), [resumed("gap")])


def test_other_threads_of_a_shared_subscription_are_not_told() -> None:
    story = Story()
    foreign = samples.message("secret", RUNNING).model_copy(update={"turn_id": "t-x"})
    shown = told(
        Transcript(root=SHOP),
        [
            story.event(ItemStarted(ref=1, item=foreign), BLOG),
            story.delta(1, "secret"),
            resumed("gap", Open(ref=2, seq=1, item=foreign, thread_id=BLOG)),
            story.event(TurnCompleted(turn=samples.turn("t-x")), BLOG),
        ],
    )
    assert "secret" not in shown
    assert "turn" not in shown


def test_sub_agents_belong_to_the_thread_that_is_told() -> None:
    story = Story()
    event = story.event(ItemCompleted(ref=1, item=samples.message("from a child")))
    child = EventSeen(
        seq=1, at=NOON, thread_id="child", root_thread_id=SHOP, data=event.data
    )
    back = story.event(ItemCompleted(ref=2, item=samples.message("and back")))
    assert told(Transcript(root=SHOP), [child, back]) == (
        f"── sub-agent child\ncodex  from a child\n── {SHOP}\ncodex  and back\n"
    )


def test_a_plan_grows_on_the_screen_under_its_own_label() -> None:
    story = Story()
    shown = told(
        Transcript(root=SHOP),
        [
            story.event(ItemStarted(ref=1, item=work.plan("", RUNNING))),
            story.delta(1, "# Plan\n", DeltaChannel.PLAN),
            story.delta(1, "- look", DeltaChannel.PLAN),
            story.event(ItemCompleted(ref=1, item=work.plan("# Plan\n- look"))),
        ],
    )
    assert shown == "plan   # Plan\n       - look\n"


def test_a_tool_s_result_comes_under_its_call() -> None:
    story = Story()
    started = work.tool(RUNNING, result=None)
    shown = told(
        Transcript(root=SHOP),
        [
            story.event(ItemStarted(ref=1, item=started)),
            story.event(ItemCompleted(ref=1, item=work.tool(result="a\nb"))),
        ],
    )
    assert shown.startswith("tool   files.list ")
    assert shown.endswith("       | a\n       | b\n       done, 1.2 s\n")
    assert shown.count("files.list") == 1


def test_a_sub_agent_s_work_is_told_under_its_thread_and_title() -> None:
    story = Story()
    running = samples.message("", RUNNING)

    def child(data: EventData) -> EventSeen:
        seen = story.event(data, work.CHILD)
        return replace(seen, root_thread_id=SHOP)

    shown = told(
        Transcript(root=SHOP),
        [
            story.event(ItemCompleted(ref=1, item=work.spawned())),
            child(ThreadStarted(thread=samples.thread(work.CHILD, title="/root/bee"))),
            child(TurnStarted(turn=samples.turn("turn-c"))),
            child(ItemStarted(ref=2, item=running)),
            story.event(ItemStarted(ref=3, item=running)),
            story.delta(2, "There are "),
            story.delta(3, "I wait."),
            story.delta(2, "seven."),
            child(ItemCompleted(ref=2, item=samples.message("There are seven."))),
            child(TurnCompleted(turn=samples.turn("turn-c"))),
            story.event(ItemCompleted(ref=3, item=samples.message("I wait."))),
            story.event(ItemCompleted(ref=4, item=work.waited())),
        ],
    )
    check_golden(GOLDEN / "sub_agents.txt", shown)


def test_a_start_that_was_announced_is_not_told_again() -> None:
    started = Story().event(TurnStarted(turn=samples.turn()))
    assert told(Transcript(root=SHOP, announced="turn-1"), [started]) == ""


@pytest.mark.parametrize("order", ["answer first", "end first"])
def test_the_turn_has_ended_whichever_comes_first(order: str) -> None:
    watch = TurnWatch()
    end = Story().event(TurnCompleted(turn=samples.turn("turn-1")))
    if order == "answer first":
        watch.expect("turn-1")
        assert watch.ended is None
        watch.feed(end)
    else:
        watch.feed(end)
        assert watch.ended is None
        watch.expect("turn-1")
    assert watch.ended == samples.turn("turn-1")


def test_another_turns_end_is_not_ours_and_is_not_kept_for_ever() -> None:
    watch, story = TurnWatch(), Story()
    for number in range(KEPT + 10):
        watch.feed(story.event(TurnCompleted(turn=samples.turn(f"t{number}"))))
    watch.expect("t1")
    assert watch.ended is None


def test_after_a_gap_history_tells_the_end_even_where_it_infers_it() -> None:
    watch = TurnWatch()
    watch.expect("turn-1")
    running = samples.turn(status=TurnStatus.IN_PROGRESS)
    assert watch.reread([samples.turn("turn-2"), running])
    assert watch.ended is None
    died = samples.turn(status=TurnStatus.INTERRUPTED)
    died = died.model_copy(update={"inferred": True})
    assert watch.reread([died])
    assert watch.ended == died


def test_a_turn_that_history_does_not_know_is_not_waited_for() -> None:
    watch = TurnWatch()
    watch.expect("turn-1")
    assert not watch.reread([samples.turn("turn-2")])
    assert watch.ended is None


def test_a_turn_that_is_told_anew_is_said_as_it_stands() -> None:
    story = Story()
    shown = told(
        Transcript(root=SHOP),
        [resumed(), story.event(TurnReplaced(turn=samples.turn()), SHOP)],
    )
    assert "as stored now" in shown
