"""Approvals and events of one app-server, in one order."""

from itertools import count
from typing import Any

from adapter.approvals.approvals import ApprovalLedger
from adapter.events.intake import Intake
from adapter.events.normalize import Normalizer
from adapter.runtime.events import Emitted, ItemClosed, ItemOpened, RuntimeEvent
from tests.support import codex_says as says
from tests.support.codex_says import AT, CHILD, THREAD
from transport.protocol.events import ApprovalRequested

COMMAND = "item/commandExecution/requestApproval"


class Server:
    """An intake that is told things."""

    def __init__(self) -> None:
        numbers = count()
        ledger = ApprovalLedger(mint=lambda: f"apr_{next(numbers)}")
        self.intake = Intake(Normalizer(), ledger)
        self.intake.normalizer.adopt(says.thread(preview="x"), [])
        self.events: list[RuntimeEvent] = []

    def says(self, method: str, **params: Any) -> None:
        self.events += self.intake.notification(method, params, AT)

    def asks(self, request_id: int, method: str = COMMAND, **params: Any) -> None:
        self.events += self.intake.request(request_id, method, params, AT).events

    def begins(self, turn: str = "t1", on: str = THREAD, **changes: Any) -> None:
        self.says("turn/started", threadId=on, turn=says.turn(turn, **changes))

    def ends(self, status: str, turn: str = "t1", on: str = THREAD) -> None:
        self.says("turn/completed", threadId=on, turn=says.turn(turn, status))

    @property
    def told(self) -> list[str]:
        return [
            "begin"
            if isinstance(event, ItemOpened)
            else "end"
            if isinstance(event, ItemClosed)
            else event.data.event
            for event in self.events
            if isinstance(event, ItemOpened | ItemClosed | Emitted)
        ]


def test_an_interrupt_withdraws_the_approval_before_item_and_turn_end() -> None:
    server = Server()
    server.begins()
    server.says("item/started", **says.in_turn(says.command()))
    server.asks(0, **says.command_approval())
    server.ends("interrupted")
    server.says("serverRequest/resolved", threadId=THREAD, requestId=0)
    assert server.told[2:-1] == [
        "begin",
        "approval/requested",
        "approval/resolved",
        "end",
        "turn/completed",
    ]


def test_a_completed_turn_withdraws_nothing() -> None:
    server = Server()
    server.begins()
    server.asks(0, **says.command_approval())
    server.ends("completed")
    assert "approval/resolved" not in server.told
    server.says("serverRequest/resolved", threadId=THREAD, requestId=0)
    assert server.told[-1] == "approval/resolved"


def test_a_change_is_joined_with_its_open_item() -> None:
    server = Server()
    server.begins()
    server.says("item/started", **says.in_turn(says.change()))
    method = "item/fileChange/requestApproval"
    server.asks(0, method, **says.change_approval())
    (approval,) = server.intake.ledger.pending()
    assert approval.detail.changes is not None
    assert approval.choices[0].id == "allow"


def test_a_sub_agent_s_approval_comes_under_its_thread_with_its_root() -> None:
    server = Server()
    server.begins()
    server.begins("c1", on=CHILD, rootTurnId="t1")
    server.asks(0, **says.command_approval(threadId=CHILD, turnId="c1"))
    event = server.events[-1]
    assert isinstance(event, Emitted)
    assert isinstance(event.data, ApprovalRequested)
    assert (event.thread_id, event.root_thread_id) == (CHILD, THREAD)
    assert event.data.approval.root_thread_id == THREAD
    server.ends("interrupted")  # the parent's: the child goes on
    assert len(server.intake.ledger.pending()) == 1


def test_an_unloaded_thread_s_approvals_are_withdrawn() -> None:
    for method, more in (
        ("thread/closed", {}),
        ("thread/status/changed", {"status": {"type": "notLoaded"}}),
    ):
        server = Server()
        server.asks(0, **says.command_approval())
        server.says(method, threadId=THREAD, **more)
        assert server.intake.ledger.pending() == []


def test_a_death_withdraws_before_it_closes() -> None:
    server = Server()
    server.begins()
    server.says("item/started", **says.in_turn(says.command()))
    server.asks(0, **says.command_approval())
    server.events = server.intake.died(AT, "killed")
    assert server.told == ["approval/resolved", "end", "turn/completed", "notice"]
    assert server.intake.ended(AT) == []


def test_shapes_that_do_not_fit_raise_nothing() -> None:
    server = Server()
    shapes: list[dict[str, Any]] = [{}, {"turn": 1}, {"turn": {}}, {"threadId": 3}]
    for params in shapes:
        server.says("turn/completed", **params)
        server.says("serverRequest/resolved", **params)
        server.asks(9, **params)
    server.says("serverRequest/resolved", requestId=[1])
    assert server.told.count("notice") == len(server.told)
