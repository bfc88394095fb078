"""Whatever happens in whatever order, an approval has one beginning and one end."""

from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from adapter.approvals import ApprovalLedger, Reply
from adapter.runtime import Emitted, RuntimeEvent
from tests.support import codex_says as says
from tests.support.codex_says import AT, CHILD, THREAD
from transport.errors import Refusal
from transport.protocol.approvals import Approval
from transport.protocol.events import ApprovalRequested, ApprovalResolved

COMMAND = "item/commandExecution/requestApproval"
THREADS = st.sampled_from([THREAD, CHILD])
DEVICES = st.sampled_from(["phone", "laptop"])
CHOICES = st.sampled_from(["allow", "allowForSession", "deny", "cancel"])


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
        self.sent: dict[int | str, list[Reply]] = {}

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
            self.sent.setdefault(reply.request_id, []).append(reply)

    @rule(target=asked, thread=THREADS)
    def codex_asks(self, thread: str) -> int:
        request_id = next(self.requests)
        params = says.command_approval(threadId=thread)
        asked = self.ledger.asked(
            request_id, COMMAND, params, at=self.now, item=None, root_thread_id=THREAD
        )
        self.tell(asked.events)
        self.send(asked.reply)
        return request_id

    @rule(request_id=asked)
    def codex_asks_again(self, request_id: int) -> None:
        params = says.command_approval()
        again = self.ledger.asked(
            request_id, COMMAND, params, at=self.now, item=None, root_thread_id=THREAD
        )
        assert again.events == []
        assert again.reply is None

    @rule(request_id=asked)
    def codex_confirms(self, request_id: int) -> None:
        self.tell(self.ledger.confirmed(request_id, self.now))

    @rule(which=st.integers(0, 50), device=DEVICES, choice=CHOICES)
    def a_device_answers(self, which: int, device: str, choice: str) -> None:
        if not self.begun:
            return
        approval = self.ledger.get(self.begun[which % len(self.begun)])
        assert approval is not None
        try:
            reply = self.ledger.answer(
                approval.id,
                digest=approval.digest,
                choice=choice,
                decided_by=device,
                at=self.now,
            )
        except Refusal:
            assert self.ledger.get(approval.id) == approval  # a no changes nothing
            return
        assert choice in {offered.id for offered in approval.choices}
        self.send(reply)

    @rule(ms=st.integers(1, 1500))
    def time_passes(self, ms: int) -> None:
        self.now += ms
        replies, events = self.ledger.expire(self.now)
        for reply in replies:
            assert reply.result == {"decision": "decline"}
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
            reply.request_id
            for replies in self.sent.values()
            for reply in replies
            if reply.result == {"decision": "accept"}
        }
        chosen = [self.ledger.get(one) for one in self.begun]
        allowed = [one for one in chosen if one and one.choice == "allow"]
        assert len(accepted) == len(allowed)
        assert all(one.decided_by for one in allowed)


TestApprovals = Approvals.TestCase
TestApprovals.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)
