"""Approvals: who may answer them, and what is written down. Trio shell.

PROTOCOL.md sections 2 and 5. The ledger behind the writer knows what may be answered and
how; here is decided who may, by what the answer would do. An entry in the audit log comes
before the effect: without it nothing is allowed, while a no is carried out anyway.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from adapter.approvals.choices import print_of
from adapter.errors import AdapterError
from adapter.runtime.acts import Filled
from adapter.runtime.events import Emitted, RuntimeEvent
from agent.access.scopes import Caller, check_access, check_alive, check_effect
from agent.app_servers.lease import Lease
from agent.app_servers.lease_registry import LeaseRegistry
from agent.approvals.approvals import Approvals
from agent.approvals.decided import Decided
from agent.errors import AuditUnavailableError
from agent.gate.gatekeeper import GateKeeper
from agent.limits import CONFIRM_S
from agent.mutations.refusals import failed_before, storage_failed
from agent.offload import Runner, in_thread
from agent.records.audit import Audit
from transport.errors import (
    ApprovalClosed,
    CodexUnavailable,
    Conflict,
    InvalidParams,
    Timeout,
)
from transport.protocol.approvals import (
    Approval,
    ApprovalAnswerParams,
    ApprovalResult,
    ApprovalState,
    ChoiceEffect,
)
from transport.protocol.events import ApprovalResolved
from transport.protocol.methods import APPROVAL_ANSWER

_ALLOWS: Final = (
    ChoiceEffect.ALLOW,
    ChoiceEffect.ALLOW_FOR_SESSION,
    ChoiceEffect.ANSWER,  # what is filled in goes to the model, or to a server
)
_UNANSWERED: Final = (ApprovalState.EXPIRED, ApprovalState.WITHDRAWN)


class Approving:
    """`approval/answer`. `handler_nursery` writes down what nobody decided."""

    def __init__(
        self,
        *,
        handler_nursery: trio.Nursery,
        leases: LeaseRegistry,
        keeper: GateKeeper,
        approvals: Approvals,
        decided: Decided,
        audit: Audit,
        now_ms: Callable[[], int],
        run: Runner = in_thread,
    ) -> None:
        self._keeper = keeper
        self._approvals = approvals
        self._decided = decided
        self._audit = audit
        self._now_ms = now_ms
        self._run = run
        self._nursery = handler_nursery
        self._is_writing = False
        leases.listen(self._saw)

    async def answer(
        self, caller: Caller, params: ApprovalAnswerParams
    ) -> ApprovalResult:
        """Give one of the offered answers, once.

        Raises: NotFound, Conflict (digest), InvalidParams, ApprovalClosed, Forbidden,
        CodexUnavailable, Internal, Timeout.
        """
        check_access(caller, APPROVAL_ANSWER)
        lease, approval = self._approvals.find(caller, params.approval_id)
        if approval.digest != params.digest:
            raise Conflict(
                "This is not the text that was shown to you. Look at it again.",
                data={"what": "digest", "approval": approval.wire()},
            )
        effect = _effect(approval, params.choice)
        check_effect(caller, effect)
        if lease is None or approval.state is not ApprovalState.PENDING:
            return ApprovalResult(approval=self._repeated(caller, approval, params))
        assert lease.writer is not None
        lease.writer.check_answer(
            approval.id,
            digest=params.digest,
            choice=params.choice,
            filled=_filled(params),
        )
        with lease.used():
            answered = await self._give(caller, params, lease, approval, effect)
        return ApprovalResult(approval=answered)

    async def _give(
        self,
        caller: Caller,
        params: ApprovalAnswerParams,
        lease: Lease,
        approval: Approval,
        effect: ChoiceEffect,
    ) -> Approval:
        assert lease.writer is not None

        def still_may() -> None:
            check_alive(caller)
            if effect in _ALLOWS:
                self._check_gate(approval)

        answered: Approval | None = None
        # An answer that has been given is told to Codex to its last byte; what is left
        # of the wait is only for the confirmation.
        with trio.move_on_after(CONFIRM_S, shield=True):
            await self._write_down(caller, params, approval, effect)
            try:
                with self._decided.noted(approval.id, caller.device_id, _print(params)):
                    answered = await lease.writer.answer(
                        approval.id,
                        digest=params.digest,
                        choice=params.choice,
                        decided_by=caller.device_id,
                        filled=_filled(params),
                        guard=still_may,
                    )
            except AdapterError as exc:
                raise failed_before(
                    exc, thread_id=approval.thread_id, at_ms=self._now_ms()
                ) from exc
        if answered is None:
            answered = self._approvals.find(caller, approval.id)[1]
        if answered.state is ApprovalState.PENDING:  # Codex's input did not take it
            self._decided.not_given(approval.id, caller.device_id)
            raise Timeout(
                "The workstation was too slow: no answer was given. Try again."
            )
        return answered

    def _check_gate(self, approval: Approval) -> None:
        try:
            self._keeper.check(approval.root_thread_id)
        except CodexUnavailable as exc:
            raise CodexUnavailable(
                f"{exc.message} A no is taken meanwhile; without one the question ends "
                "at its deadline, and keeps its thread until then.",
                data=exc.data,
                retryable=exc.retryable,
                retry_after_ms=exc.retry_after_ms,
            ) from exc

    def _repeated(
        self, caller: Caller, approval: Approval, params: ApprovalAnswerParams
    ) -> Approval:
        """Answer the same device's same answer again; to all others it is closed."""
        same = self._decided.gave(approval.id, caller.device_id, _print(params))
        if approval.decided_by == caller.device_id and same:
            return approval
        raise ApprovalClosed(
            "This approval has been decided already; its end is shown with it.",
            data={"approval": approval.wire()},
        )

    async def _write_down(
        self,
        caller: Caller,
        params: ApprovalAnswerParams,
        approval: Approval,
        effect: ChoiceEffect,
    ) -> None:
        write = partial(
            self._audit.record if effect in _ALLOWS else self._audit.note,
            APPROVAL_ANSWER.name,
            device=caller.device_id,
            thread=approval.thread_id,
            approval=approval.id,
            kind=str(approval.kind),
            digest=params.digest,
            choice=params.choice,
            effect=str(effect),
        )
        try:
            await self._run(write)
        except AuditUnavailableError as exc:
            raise storage_failed("audit log") from exc

    def _saw(self, event: RuntimeEvent) -> None:
        """Keep the ends: late answers are told, and what nobody decided is on record.

        Whoever tells of them reads Codex's output, and waits for no disk.
        """
        if not isinstance(event, Emitted) or not isinstance(
            event.data, ApprovalResolved
        ):
            return
        approval = event.data.approval
        self._decided.keep(approval)
        if approval.state in _UNANSWERED:
            self._audit.leave(
                f"approval/{approval.state}",
                thread=approval.thread_id,
                approval=approval.id,
                kind=str(approval.kind),
                sent=approval.sent,
            )
            if not self._is_writing:
                self._is_writing = True
                self._nursery.start_soon(self._write_what_is_left)

    async def _write_what_is_left(self) -> None:
        try:
            while self._audit.is_left:
                await self._run(self._audit.catch_up)
        finally:
            self._is_writing = False


def _effect(approval: Approval, choice: str) -> ChoiceEffect:
    for offered in approval.choices:
        if offered.id == choice:
            return offered.effect
    raise InvalidParams(
        f"This approval offers {', '.join(one.id for one in approval.choices)}.",
        data={"field": "choice", "reason": "not offered"},
    )


def _filled(params: ApprovalAnswerParams) -> Filled:
    return Filled(answers=params.answers, content=params.content)


def _print(params: ApprovalAnswerParams) -> str:
    return print_of(params.choice, _filled(params))
