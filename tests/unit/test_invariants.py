"""Each promise about the order of events is seen to be broken by exactly its breach."""

import pytest

from adapter.events.invariants import Invariants, Rule
from adapter.events.replay import RecordingError, Replay, checked
from adapter.limits import ITEM_BYTES
from adapter.runtime.events import (
    Emitted,
    ItemClosed,
    ItemDelta,
    ItemOpened,
    RuntimeEvent,
)
from tests.support.fake_threads import make_turn
from tests.support.replay import read_trace
from transport.protocol.approvals import (
    Approval,
    ApprovalDetail,
    ApprovalKind,
    ApprovalState,
)
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    DeltaChannel,
    EventData,
    Notice,
    NoticeLevel,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.items import AgentMessage, ItemStatus
from transport.protocol.turns import TurnStatus

APPROVAL = Approval(
    id="apr_1",
    kind=ApprovalKind.COMMAND,
    thread_id="thr",
    root_thread_id="thr",
    turn_id="t1",
    item_id="i1",
    title="",
    detail=ApprovalDetail(),
    choices=[],
    digest="d",
    created_at=0,
    expires_at=1,
    state=ApprovalState.PENDING,
)


def told(data: EventData) -> RuntimeEvent:
    return Emitted(at=0, thread_id="thr", data=data)


def message(status: ItemStatus, text: str = "", *, late: bool = False) -> AgentMessage:
    return AgentMessage(
        id="i1", turn_id="t1", status=status, text=text, background=late or None
    )


def ended(status: TurnStatus) -> RuntimeEvent:
    return told(TurnCompleted(turn=make_turn("t1", "thr", status)))


BEGIN = told(TurnStarted(turn=make_turn("t1", "thr", TurnStatus.IN_PROGRESS)))
END = ended(TurnStatus.COMPLETED)
STOP = ended(TurnStatus.INTERRUPTED)
OPEN = ItemOpened(at=0, thread_id="thr", item=message(ItemStatus.IN_PROGRESS))
MORE = ItemDelta(
    at=0, thread_id="thr", item_id="i1", channel=DeltaChannel.TEXT, part=0, text="x"
)
CLOSE = ItemClosed(at=0, thread_id="thr", item=message(ItemStatus.COMPLETED))
LATE = ItemClosed(at=0, thread_id="thr", item=message(ItemStatus.COMPLETED, late=True))
HALF = ItemClosed(at=0, thread_id="thr", item=message(ItemStatus.IN_PROGRESS))
HUGE = ItemClosed(
    at=0, thread_id="thr", item=message(ItemStatus.COMPLETED, "x" * (ITEM_BYTES + 1))
)
ASK = told(ApprovalRequested(approval=APPROVAL))
RETRY = Emitted(
    at=0,
    thread_id="thr",
    data=Notice(level=NoticeLevel.WARNING, code="modelRetry", message="again"),
)
ANSWER = told(ApprovalResolved(approval=APPROVAL))

TURN, ITEM, APPROVED = Rule.TURN_ORDER, Rule.ITEM_ORDER, Rule.APPROVAL_ORDER


def breaches(*events: RuntimeEvent) -> list[Rule]:
    rules = Invariants()
    found = [one for event in events for one in rules.see(event)]
    return [one.rule for one in [*found, *rules.end()]]


@pytest.mark.parametrize(
    ("events", "broken"),
    [
        ((BEGIN, OPEN, MORE, ASK, ANSWER, CLOSE, END), []),
        ((BEGIN, OPEN, END, LATE), []),
        ((BEGIN, OPEN, CLOSE, STOP), []),
        ((OPEN, CLOSE), [TURN, TURN]),
        ((BEGIN, OPEN, END, CLOSE), [TURN]),
        ((BEGIN, END, BEGIN, END), [TURN]),
        ((END,), [TURN]),
        ((BEGIN,), [TURN]),
        ((BEGIN, MORE, END), [ITEM]),
        ((BEGIN, OPEN, CLOSE, MORE, END), [ITEM]),
        ((BEGIN, OPEN, OPEN, CLOSE, END), [ITEM]),
        ((BEGIN, CLOSE, END), [ITEM]),
        ((BEGIN, OPEN, HALF, END), [ITEM]),
        ((BEGIN, OPEN, END), [ITEM]),
        ((BEGIN, OPEN, HUGE, END), [Rule.ITEM_SIZE]),
        ((BEGIN, OPEN, STOP, LATE), [Rule.ITEMS_OF_ENDED_TURN]),
        ((BEGIN, OPEN, CLOSE, RETRY, END), []),
        ((BEGIN, OPEN, RETRY, CLOSE, END), [Rule.ABANDONED_TEXT]),
        ((BEGIN, ASK, ANSWER, END), [APPROVED]),
        ((BEGIN, OPEN, ASK, ASK, ANSWER, CLOSE, END), [APPROVED]),
        ((BEGIN, OPEN, ANSWER, CLOSE, END), [APPROVED]),
        ((BEGIN, OPEN, ASK, ANSWER, ANSWER, CLOSE, END), [APPROVED]),
        ((BEGIN, OPEN, ASK, CLOSE, END), [APPROVED]),
        ((BEGIN, OPEN, ASK, CLOSE, STOP, ANSWER), [APPROVED]),
    ],
)
def test_a_breach_is_named_and_nothing_else_is(
    events: tuple[RuntimeEvent, ...], broken: list[Rule]
) -> None:
    assert breaches(*events) == broken


def test_a_recording_is_told_as_a_client_would_be_told_it() -> None:
    rows = [row for row, _ in checked(read_trace("approval-command-accept"))]
    assert rows.pop() is None
    assert [row["seq"] for row in rows if row] == list(range(1, len(rows) + 1))
    names = [row["event"] for row in rows if row]
    assert names.index("approval/requested") < names.index("approval/resolved")
    refs = [
        row["data"]["ref"] for row in rows if row and row["event"] == "item/started"
    ]
    assert len(refs) == len(set(refs))


@pytest.mark.parametrize("line", [{}, {"dir": "in", "msg": 7}, {"dir": "in"}])
def test_what_is_no_recording_is_said_to_be_none(line: dict[str, object]) -> None:
    with pytest.raises(RecordingError):
        Replay(lines=[]).take(line)
