"""What a person sees of events, beside the files in golden/."""

from dataclasses import replace
from pathlib import Path

from clients.cli.transcript import Transcript
from tests.support import cli_asked
from tests.support import cli_samples as samples
from tests.support import cli_work as work
from tests.support.cli_samples import BLOG, CLOCK, NOON, SHOP
from tests.support.golden import check_golden
from tests.support.story import Story, resumed, text, told
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
    TurnStarted,
    UsageChanged,
)
from transport.protocol.items import ItemStatus
from transport.protocol.turns import TurnStatus, Usage
from transport.subscription import ClientEvent, EventSeen

GOLDEN = Path(__file__).parent / "golden"
RUNNING = ItemStatus.IN_PROGRESS


def a_turn(story: Story) -> list[ClientEvent]:
    asked = cli_asked.command_approval()
    yes = cli_asked.command_approval(
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
    transcript, asked = Transcript(root=SHOP), cli_asked.command_approval()
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
