"""Whatever happens in whatever order, an approval has one beginning and one end."""

from itertools import count
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from adapter.approvals.approvals import ApprovalLedger
from adapter.approvals.replies import Asked, Reply
from adapter.runtime.acts import NOTHING_FILLED, Filled
from adapter.runtime.events import Emitted, RuntimeEvent
from tests.support import codex_says as says
from tests.support.codex_says import AT, CHILD, THREAD
from transport.errors import Refusal
from transport.protocol.approvals import Approval
from transport.protocol.events import ApprovalRequested, ApprovalResolved

KINDS = {
    "item/commandExecution/requestApproval": says.command_approval,
    "item/permissions/requestApproval": says.permissions_approval,
    "item/tool/requestUserInput": says.input_request,
    "mcpServer/elicitation/request": says.elicitation,
    "mcpServer/elicitation/request page": says.page_request,
    "mcpServer/elicitation/request tool": says.tool_approval,
}
REFUSED: list[Any] = [
    {"decision": "decline"},
    {"permissions": {}, "scope": "turn"},
    {"answers": {}},
    {"action": "decline", "content": None},
]
CANCELLED: list[Any] = [{"decision": "cancel"}, {"action": "cancel", "content": None}]
FILLED = [
    NOTHING_FILLED,
    Filled(answers={"q1": ["Red"]}),
    Filled(answers={"q1": ["Blue"]}),
    Filled(content={"colour": "red"}),
    Filled(content={"colour": "green"}),
]
WIRE = {field.alias for field in Approval.model_fields.values()}
THREADS = st.sampled_from([THREAD, CHILD])
DEVICES = st.sampled_from(["phone", "laptop"])
CHOICES = st.sampled_from(["allow", "allowForSession", "answer", "deny", "cancel"])


class Approvals(RuleBasedStateMachine):
    """One process: Codex asks and confirms, devices answer, time passes, turns end."""

    asked = Bundle("asked")

    def __init__(self) -> None:
        super().__init__()
        numbers = count()
        self.ledger = ApprovalLedger(
            mint=lambda: f"apr_{next(numbers)}", approval_ms=1000
        )
        self.requests = count()
        self.now = AT
        self.begun: list[str] = []
        self.ended: dict[str, Approval] = {}
        self.sent: dict[tuple[int | str, int], list[Reply]] = {}
        self.unseen: dict[int | str, tuple[str, dict[str, Any]]] = {}  # as Codex has it
        self.uses: dict[int | str, int] = {}
        self.first: dict[str, tuple[str, str, Filled]] = {}

    def tell(self, events: list[RuntimeEvent]) -> None:
        for event in events:
            assert isinstance(event, Emitted)
            if isinstance(event.data, ApprovalRequested):
                assert event.data.approval.id not in self.begun
                self.begun.append(event.data.approval.id)
            elif isinstance(event.data, ApprovalResolved):
                assert event.data.approval.id in self.begun
                assert event.data.approval.id not in self.ended
                self.ended[event.data.approval.id] = event.data.approval

    def send(self, reply: Reply | None) -> None:
        if reply is not None:
            use = reply.request_id, self.uses[reply.request_id]
            self.sent.setdefault(use, []).append(reply)

    def ask(self, request_id: int, method: str, params: dict[str, Any]) -> Asked:
        return self.ledger.asked(
            request_id, method, params, at=self.now, item=None, root_thread_id=THREAD
        )

    def ask_anew(self, request_id: int, method: str, params: dict[str, Any]) -> None:
        self.uses[request_id] = self.uses.get(request_id, 0) + 1
        self.unseen[request_id] = method, params
        asked = self.ask(request_id, method, params)
        self.tell(asked.events)
        self.send(asked.reply)

    @rule(target=asked, thread=THREADS, kind=st.sampled_from(sorted(KINDS)))
    def codex_asks(self, thread: str, kind: str) -> int:
        request_id = next(self.requests)
        params = {**KINDS[kind](), "threadId": thread}
        self.ask_anew(request_id, kind.partition(" ")[0], params)
        return request_id

    @rule(request_id=asked)
    def codex_asks_again(self, request_id: int) -> None:
        if request_id in self.unseen:
            assert self.ask(request_id, *self.unseen[request_id]) == Asked(events=[])

    @rule(request_id=asked)
    def codex_uses_an_id_again(self, request_id: int) -> None:
        """For something else: anew once it has seen the end of the first."""
        params = says.command_approval(itemId=f"other-{next(self.requests)}")
        method = "item/commandExecution/requestApproval"
        if request_id not in self.unseen:
            self.ask_anew(request_id, method, params)
            return
        mixed = self.ask(request_id, method, params)
        *ended, _notice = mixed.events
        self.tell(ended)
        assert all(reply.error is not None for reply in mixed.replies)
        assert mixed.reply is not None

    @rule(request_id=asked)
    def codex_confirms(self, request_id: int) -> None:
        self.unseen.pop(request_id, None)
        self.tell(self.ledger.confirmed(request_id, self.now))

    @rule(
        which=st.integers(0, 50),
        device=DEVICES,
        choice=CHOICES,
        filled=st.sampled_from(FILLED),
    )
    def a_device_answers(
        self, which: int, device: str, choice: str, filled: Filled
    ) -> None:
        if not self.begun:
            return
        approval = self.ledger.get(self.begun[which % len(self.begun)])
        assert approval is not None
        try:
            reply = self.ledger.reply_to(
                approval.id,
                digest=approval.digest,
                choice=choice,
                decided_by=device,
                at=self.now,
                filled=filled,
            )
        except Refusal:
            assert self.ledger.get(approval.id) == approval  # a no changes nothing
            return
        assert choice in {offered.id for offered in approval.choices}
        assert self.ledger.get(approval.id) == approval  # nor does a look
        if reply is not None:
            self.ledger.note_sent(
                approval.id, choice=choice, decided_by=device, filled=filled
            )
        given = (device, choice, filled)
        assert self.first.setdefault(approval.id, given) == given
        self.send(reply)

    @rule(ms=st.integers(1, 1500))
    def time_passes(self, ms: int) -> None:
        self.now += ms
        replies, events = self.ledger.expire(self.now)
        for reply in replies:
            assert reply.result in REFUSED
            self.send(reply)
        self.tell(events)

    @rule(thread=THREADS)
    def a_turn_is_interrupted(self, thread: str) -> None:
        self.tell(self.ledger.withdraw(thread_ids={thread}, at=self.now))

    @rule()
    def the_process_dies(self) -> None:
        self.tell(self.ledger.withdraw(thread_ids=None, at=self.now))
        assert self.ledger.pending() == []

    @invariant()
    def each_request_is_answered_at_most_once(self) -> None:
        assert all(len(replies) == 1 for replies in self.sent.values())

    @invariant()
    def what_has_begun_is_open_or_ended(self) -> None:
        pending = {approval.id for approval in self.ledger.pending()}
        assert pending | set(self.ended) == set(self.begun)
        assert not pending & set(self.ended)

    @invariant()
    def nothing_is_accepted_but_by_a_device(self) -> None:
        accepted = {
            use
            for use, replies in self.sent.items()
            for reply in replies
            if reply.result not in [*REFUSED, *CANCELLED]
        }
        chosen = [self.ledger.get(one) for one in self.begun]
        yes = {"allow", "allowForSession", "answer"}
        allowed = [one for one in chosen if one and one.choice in yes]
        assert len(accepted) == len(allowed)
        assert all(one.decided_by for one in allowed)

    @invariant()
    def what_was_filled_in_is_in_no_approval(self) -> None:
        for one in (*self.ledger.pending(), *self.ended.values()):
            assert set(one.wire()) <= WIRE


TestApprovals = Approvals.TestCase
TestApprovals.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)
