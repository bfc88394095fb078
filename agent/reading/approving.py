"""Approvals: who may see them, who may answer, and what is written down. Trio shell.

PROTOCOL.md sections 2 and 5. The ledger behind the writer knows what may be answered and
how; here is decided who may, by what the answer would do. An entry in the audit log comes
before the effect: without it nothing is allowed, while a no is carried out anyway.
"""

from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

import trio

from adapter.approvals.choices import print_of
from adapter.errors import AdapterError
from adapter.runtime.acts import Filled
from adapter.runtime.events import Emitted, RuntimeEvent
from agent.access.scopes import Caller, check_access, check_alive, check_effect
from agent.access.sight import Sight
from agent.app_servers.lease import Lease
from agent.app_servers.lease_pool import LeasePool
from agent.errors import AuditUnavailableError
from agent.gate.gatekeeper import GateKeeper
from agent.limits import CONFIRM_S, RESOLVED_BYTES, RESOLVED_KEPT
from agent.mutations.refusals import failed_before, storage_failed
from agent.offload import Runner, in_thread
from agent.reading.pages import fitting, unwrap_cursor, wrap_cursor
from agent.records.audit import Audit
from transport.errors import (
    ApprovalClosed,
    CodexUnavailable,
    Conflict,
    InvalidParams,
    NotFound,
    Timeout,
)
from transport.protocol.approvals import (
    Approval,
    ApprovalAnswerParams,
    ApprovalListParams,
    ApprovalListResult,
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
    """`approval/list` and `approval/answer`."""

    def __init__(
        self,
        *,
        pool: LeasePool,
        keeper: GateKeeper,
        sight: Sight,
        audit: Audit,
        head: Callable[[], int],
        now_ms: Callable[[], int],
        run: Runner = in_thread,
    ) -> None:
        self._pool = pool
        self._keeper = keeper
        self._sight = sight
        self._audit = audit
        self._head = head
        self._now_ms = now_ms
        self._run = run
        self._ended: OrderedDict[str, Approval] = OrderedDict()
        self._ended_bytes = 0
        self._given: OrderedDict[tuple[str, str], str] = OrderedDict()
        pool.listen(self._saw)

    async def list(
        self, caller: Caller, params: ApprovalListParams
    ) -> ApprovalListResult:
        """Return what waits for an answer, oldest first. Raises: InvalidParams."""
        head = self._head()
        listing = {"method": "approval/list", "thread": params.thread_id}
        after = unwrap_cursor(listing, params.cursor)
        rows = [
            approval
            for approval in sorted(waiting_in(self._pool), key=_place)
            if self._sight.sees(caller, approval.root_thread_id)
            and params.thread_id in (None, approval.thread_id, approval.root_thread_id)
            and (after is None or _place(approval) > after)
        ]
        page = rows[: params.limit]
        page = page[: fitting(page)]
        cursor = _place(page[-1]) if len(page) < len(rows) else None
        return ApprovalListResult(
            approvals=page, next_cursor=wrap_cursor(listing, cursor), head=head
        )

    async def answer(
        self, caller: Caller, params: ApprovalAnswerParams
    ) -> ApprovalResult:
        """Give one of the offered answers, once.

        Raises: NotFound, Conflict (digest), InvalidParams, ApprovalClosed, Forbidden,
        CodexUnavailable, Internal, Timeout.
        """
        check_access(caller, APPROVAL_ANSWER)
        lease, approval = self._find(caller, params.approval_id)
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

        # An answer that has been given is told to Codex to its last byte; what is left
        # of the wait is only for the confirmation.
        with trio.move_on_after(CONFIRM_S, shield=True):
            await self._write_down(caller, params, approval, effect)
            try:
                with self._noted(caller, params):
                    return await lease.writer.answer(
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
        approval = self._find(caller, approval.id)[1]
        if approval.state is ApprovalState.PENDING:
            self._given.pop((approval.id, caller.device_id), None)
            raise Timeout(
                "The workstation was too slow: no answer was given. Try again."
            )
        return approval

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

    @contextmanager
    def _noted(self, caller: Caller, params: ApprovalAnswerParams) -> Generator[None]:
        """Note what this device is the first to give, unless it turns out refused.

        What was filled in may be a secret: kept is what tells it from other answers.
        """
        key = (params.approval_id, caller.device_id)
        first = key not in self._given
        if first:
            self._given[key] = print_of(params.choice, _filled(params))
        while len(self._given) > RESOLVED_KEPT:
            self._given.popitem(last=False)
        try:
            yield
        except Exception:
            if first:
                self._given.pop(key, None)
            raise

    def _repeated(
        self, caller: Caller, approval: Approval, params: ApprovalAnswerParams
    ) -> Approval:
        """Answer the same device's same answer again; to all others it is closed."""
        given = self._given.get((approval.id, caller.device_id))
        same = given == print_of(params.choice, _filled(params))
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

    def _find(self, caller: Caller, approval_id: str) -> tuple[Lease | None, Approval]:
        """Return an approval, and the lease whose writer still has it open."""
        for lease in self._pool.held():
            for approval in lease.writer.approvals() if lease.writer else ():
                if approval.id == approval_id and self._shows(caller, approval):
                    return lease, approval
        ended = self._ended.get(approval_id)
        if ended is not None and self._shows(caller, ended):
            return None, ended
        raise NotFound(
            "There is no such approval (or not for this device). `threadgate approvals` "
            "lists those that wait.",
            data={"kind": "approval", "id": approval_id},
        )

    def _shows(self, caller: Caller, approval: Approval) -> bool:
        return self._sight.sees(caller, approval.root_thread_id)

    def _keep(self, approval: Approval) -> None:
        self._ended[approval.id] = approval
        self._ended_bytes += _cost(approval)
        while len(self._ended) > RESOLVED_KEPT or self._ended_bytes > RESOLVED_BYTES:
            _, old = self._ended.popitem(last=False)
            self._ended_bytes -= _cost(old)

    def _saw(self, event: RuntimeEvent) -> None:
        """Keep the ends: late answers are told, and what nobody decided is on record."""
        if not isinstance(event, Emitted) or not isinstance(
            event.data, ApprovalResolved
        ):
            return
        approval = event.data.approval
        self._keep(approval)
        if approval.state in _UNANSWERED:
            self._audit.note(
                f"approval/{approval.state}",
                thread=approval.thread_id,
                approval=approval.id,
                kind=str(approval.kind),
                sent=approval.sent,
            )


def waiting_in(pool: LeasePool) -> Sequence[Approval]:
    """Return what the writers of ours wait for, by writer."""
    return [
        approval
        for lease in pool.held()
        if lease.writer is not None
        for approval in lease.writer.approvals()
    ]


def _cost(approval: Approval) -> int:
    return len(approval.model_dump_json())


def _place(approval: Approval) -> str:
    return f"{approval.created_at:020d} {approval.id}"


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
