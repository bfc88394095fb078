"""What a fake writer asks for: the test plays Codex, the Agent answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio

from adapter.runtime.acts import NOTHING_FILLED, Filled, Guard
from adapter.runtime.events import Emit
from tests.support.fake_threads import AT
from tests.support.fake_turns import FakeTurns
from transport.errors import ApprovalClosed, Conflict, InvalidParams, NotFound
from transport.protocol.approvals import (
    Approval,
    ApprovalDetail,
    ApprovalKind,
    ApprovalState,
    AskedQuestion,
    Choice,
    ChoiceEffect,
)
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
)

if TYPE_CHECKING:
    from tests.support.fake_runtime import FakeRuntime

CHOICES = [
    Choice(id="accept", label="Allow", effect=ChoiceEffect.ALLOW),
    Choice(
        id="acceptForSession",
        label="Allow until unloaded",
        effect=ChoiceEffect.ALLOW_FOR_SESSION,
    ),
    Choice(id="decline", label="Decline", effect=ChoiceEffect.DENY),
    Choice(id="cancel", label="Decline and stop", effect=ChoiceEffect.CANCEL),
]
ANSWERS = [
    Choice(id="answer", label="Answer", effect=ChoiceEffect.ANSWER),
    Choice(id="decline", label="Answer nothing", effect=ChoiceEffect.DENY),
]


class FakeApprovals(FakeTurns):
    """The approvals of a loaded thread. `given`: what went with each answer."""

    def __init__(self, runtime: FakeRuntime, emit: Emit) -> None:
        super().__init__(runtime, emit)
        self.given: list[Filled] = []
        self.pipe = trio.Lock()
        self._approvals: dict[str, Approval] = {}
        self._filled: dict[str, Filled] = {}

    def ask(
        self, *, command: str = "rm -r build", expires_at: int = AT * 2
    ) -> Approval:
        """Ask for a command's approval, as Codex would."""
        detail = ApprovalDetail(command=command, cwd="/work/app")
        return self._ask(ApprovalKind.COMMAND, command, detail, CHOICES, expires_at)

    def ask_question(self, *, secret: bool = False) -> Approval:
        """Ask the person something, as Codex's model would."""
        question = AskedQuestion(
            id="q1", header="Name", text="Whose name?", secret=secret, other=True
        )
        detail = ApprovalDetail(questions=[question])
        return self._ask(ApprovalKind.QUESTION, "Whose name?", detail, ANSWERS, AT * 2)

    def _ask(
        self,
        kind: ApprovalKind,
        title: str,
        detail: ApprovalDetail,
        choices: list[Choice],
        expires_at: int,
    ) -> Approval:
        assert self.thread_id is not None
        approval = Approval(
            id=self._runtime.next_id("apr"),
            kind=kind,
            thread_id=self.thread_id,
            root_thread_id=self.thread_id,
            turn_id=self.running_turn_id,
            title=title,
            detail=detail,
            choices=choices,
            digest=self._runtime.next_id("digest"),
            created_at=AT,
            expires_at=expires_at,
            state=ApprovalState.PENDING,
        )
        self._approvals[approval.id] = approval
        self._tell(ApprovalRequested(approval=approval))
        return approval

    def resolve(
        self, approval_id: str, state: ApprovalState, *, by: str | None = None
    ) -> Approval:
        """Give an approval its one end."""
        approval = self._approvals[approval_id].model_copy(
            update={"state": state, "decided_by": by}
        )
        self._approvals[approval_id] = approval
        self._tell(ApprovalResolved(approval=approval))
        return approval

    def approvals(self) -> Sequence[Approval]:
        return [
            one
            for one in self._approvals.values()
            if one.state in (ApprovalState.PENDING, ApprovalState.ANSWERING)
        ]

    def check_answer(
        self,
        approval_id: str,
        *,
        digest: str,
        choice: str,
        filled: Filled = NOTHING_FILLED,
    ) -> None:
        approval = self._approvals.get(approval_id)
        if approval is None:
            raise NotFound("no such approval", data={"kind": "approval"})
        if approval.digest != digest:
            raise Conflict("another text was shown", data={"what": "digest"})
        effects = {one.id: one.effect for one in approval.choices}
        if choice not in effects:
            raise InvalidParams("not offered", data={"field": "choice"})
        answers = effects[choice] is ChoiceEffect.ANSWER
        if answers is (filled == NOTHING_FILLED):
            raise InvalidParams("it does not fit", data={"field": "answers"})

    async def answer(
        self,
        approval_id: str,
        *,
        digest: str,
        choice: str,
        decided_by: str,
        filled: Filled = NOTHING_FILLED,
        guard: Guard | None = None,
    ) -> Approval:
        async with self.pipe:  # it is waited for, then it is decided
            pass
        if guard is not None:
            guard()
        approval = self._approvals.get(approval_id)
        if approval is not None and approval.state is not ApprovalState.PENDING:
            same = (approval.decided_by, approval.choice) == (decided_by, choice)
            if same and self._filled.get(approval_id) == filled:
                return approval
            raise ApprovalClosed("answered", data={"approval": approval.wire()})
        self.check_answer(approval_id, digest=digest, choice=choice, filled=filled)
        assert approval is not None
        self._filled[approval_id] = filled
        self.given.append(filled)
        state = {"state": ApprovalState.ANSWERING, "choice": choice}
        self._approvals[approval_id] = approval.model_copy(
            update={**state, "decided_by": decided_by, "sent": True}
        )
        await self._runtime.reach("answer")
        if self._approvals[approval_id].state is ApprovalState.ANSWERING:
            self.resolve(approval_id, ApprovalState.ANSWERED, by=decided_by)
        return self._approvals[approval_id]
