"""The ledger of one app-server's questions: opaque id ↔ server request. Sans-IO.

PROTOCOL.md section 5. Codex numbers its requests from 0 in every process, so a stale
answer could hit another question: a person's answer names an opaque id, which belongs to
this ledger and so to this process. Every question has one answer at most, and one end.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from adapter.approvals.choices import print_of
from adapter.approvals.entries import Entries, Entry, print_of_asked
from adapter.approvals.questions import Question
from adapter.approvals.replies import (
    Asked,
    Reply,
    RequestId,
    answer_at_once,
    error_for_id,
    refusal_told,
)
from adapter.approvals.server_requests import SERVER_REQUESTS, Asks
from adapter.approvals.shown import show
from adapter.limits import APPROVAL_MS, APPROVALS_OPEN
from adapter.runtime.acts import NOTHING_FILLED, Filled
from adapter.runtime.events import Emitted, RuntimeEvent
from adapter.shapes.shapes import MISFITS
from transport.errors import ApprovalClosed
from transport.protocol.approvals import Approval, ApprovalState
from transport.protocol.events import ApprovalRequested, ApprovalResolved, EventData
from transport.protocol.items import Item


class ApprovalLedger:
    """Every question has one answer at most and exactly one end."""

    def __init__(
        self,
        *,
        mint: Callable[[], str],
        approval_ms: int = APPROVAL_MS,
        up_ms: Callable[[], int] | None = None,
    ) -> None:
        """`mint` returns a fresh `apr_` id with 128 random bits.

        `up_ms`: the clock of deadlines, which nobody can set and no sleep stops; without
        it they are held against the `at` of each call.
        """
        self._mint = mint
        self._up_ms = up_ms
        self._approval_ms = approval_ms
        self._entries = Entries()

    def asked(
        self,
        request_id: RequestId,
        method: str,
        params: Mapping[str, Any],
        *,
        at: int,
        item: Item | None,
        root_thread_id: str,
    ) -> Asked:
        """Take any server request in: ask a person, or answer it at once.

        One that Codex sends again (it does at a resume) changes nothing. Another one
        under the id of one that Codex has not seen the end of is refused, and both are
        over: a yes could go to either. `item`: the open item that it names.
        """
        row = SERVER_REQUESTS.get(method)
        known = self._entries.asked_in(request_id)
        if isinstance(row, Asks):
            try:
                mark = print_of_asked(method, params)
                if known is not None and known.mark == mark:
                    return Asked(events=[])
                if known is not None:
                    return self._mixed(known, params, root_thread_id, at)
                question = row.build(params, item)
            except (*MISFITS, RecursionError):
                what = "something in an unknown shape"
                return _refused(request_id, row, what, params, at)
            if len(self.pending()) >= APPROVALS_OPEN:
                what = "more than anybody can answer"
                return _refused(request_id, row, what, params, at)
            return self._ask(request_id, row, question, mark, root_thread_id, at)
        if known is not None:
            return self._mixed(known, params, root_thread_id, at)
        return answer_at_once(request_id, row, method, params, at, root_thread_id)

    def refuse(
        self,
        request_id: RequestId,
        method: str,
        params: Mapping[str, Any],
        *,
        at: int,
        root_thread_id: str,
    ) -> Asked:
        """Refuse what is too long to be read, in its own form; `params`: what is known."""
        if (known := self._entries.asked_in(request_id)) is not None:
            return self._mixed(known, params, root_thread_id, at)
        row = SERVER_REQUESTS.get(method)
        if isinstance(row, Asks):
            what = "something that is too long to be read"
            return _refused(request_id, row, what, params, at)
        return answer_at_once(request_id, row, method, params, at, root_thread_id)

    def check(
        self, approval_id: str, *, digest: str, choice: str, filled: Filled
    ) -> None:
        """Raise what is wrong with an answer whoever gives it. Changes nothing.

        Raises: NotFound, Conflict (digest), InvalidParams.
        """
        self._entries.of(approval_id).way(digest, choice).reply(filled)

    def reply_to(
        self,
        approval_id: str,
        *,
        digest: str,
        choice: str,
        decided_by: str,
        at: int,
        filled: Filled = NOTHING_FILLED,
    ) -> Reply | None:
        """Return what an answer tells Codex; once it is out, `note_sent`.

        Changes nothing. `None`: the same device repeats its answer, nothing more is to
        be sent; read the state with `get`. Raises: NotFound, Conflict (digest),
        InvalidParams (choice, or what goes with it), ApprovalClosed.
        """
        entry = self._entries.of(approval_id)
        approval = entry.approval
        given = print_of(choice, filled)
        if (approval.decided_by, entry.given) == (decided_by, given):
            return None
        over = self._now(at) >= entry.until
        if approval.state is not ApprovalState.PENDING or over:
            raise ApprovalClosed(
                "This has been decided, or its time is over.",
                data={"approval": approval.wire()},
            )
        result = entry.way(digest, choice).reply(filled)
        return Reply(request_id=entry.request_id, result=result)

    def note_sent(
        self,
        approval_id: str,
        *,
        choice: str,
        decided_by: str,
        filled: Filled = NOTHING_FILLED,
    ) -> None:
        """Enter `answering`: an answer has left, with no checkpoint since `reply_to`."""
        entry = self._entries.of(approval_id)
        entry.given = print_of(choice, filled)
        entry.approval = entry.approval.model_copy(
            update={
                "state": ApprovalState.ANSWERING,
                "decided_by": decided_by,
                "choice": choice,
            }
        )

    def confirmed(self, request_id: RequestId, at: int) -> list[RuntimeEvent]:
        """Take `serverRequest/resolved`: our answer arrived, or Codex asks no more."""
        entry = self._entries.asked_in(request_id)
        self._entries.free(request_id)
        if entry is None or not entry.open:
            return []
        if entry.approval.state is ApprovalState.ANSWERING:
            return [self._end(entry, ApprovalState.ANSWERED, at)]
        return [self._withdraw(entry, at)]

    def expire(self, now: int) -> tuple[list[Reply], list[RuntimeEvent]]:
        """Decline what nobody answered in time. Write the replies."""
        late = [one for one in self._entries.pending() if one.until <= self._now(now)]
        replies = [
            Reply(request_id=one.request_id, result=one.declined) for one in late
        ]
        return replies, [self._end(one, ApprovalState.EXPIRED, now) for one in late]

    def next_deadline(self) -> int | None:
        """Return when `expire` has something to do next (ms of the deadlines' clock)."""
        return min((one.until for one in self._entries.pending()), default=None)

    def withdraw(
        self, *, thread_ids: Collection[str] | None, at: int
    ) -> list[RuntimeEvent]:
        """End what is open in these threads (`None`: all, the process is gone).

        `sent` says whether an answer had left for Codex: it may have taken effect.
        """
        return [
            self._withdraw(entry, at)
            for entry in self._entries.open()
            if thread_ids is None or entry.approval.thread_id in thread_ids
        ]

    def pending(self) -> list[Approval]:
        """Return what is pending or answering, oldest first."""
        return [entry.approval for entry in self._entries.open()]

    def get(self, approval_id: str) -> Approval | None:
        """Return an approval, also one that ended lately."""
        entry = self._entries.find(approval_id)
        return None if entry is None else entry.approval

    def is_open(self, approval_id: str) -> bool:
        """Whether an approval has no end yet."""
        entry = self._entries.find(approval_id)
        return entry is not None and entry.open

    def _mixed(
        self, known: Entry, params: Mapping[str, Any], root: str, at: int
    ) -> Asked:
        what = "something under the number of another question"
        told = refusal_told(what, params, at, root=root)
        reply = error_for_id(known.request_id)
        if not known.open:
            return Asked(events=[told], reply=reply)
        pending = known.approval.state is ApprovalState.PENDING
        return Asked(
            events=[self._withdraw(known, at), told],
            reply=reply,
            other=reply if pending else None,
        )

    def _ask(
        self,
        request_id: RequestId,
        row: Asks,
        question: Question,
        mark: str,
        root: str,
        at: int,
    ) -> Asked:
        lasts = self._approval_ms
        if question.lasts_ms is not None:
            lasts = min(lasts, max(question.lasts_ms, 0))
        approval, asked = show(self._mint(), question, root, at, at + lasts)
        self._entries.add(
            Entry(
                request_id=request_id,
                mark=mark,
                approval=approval,
                until=self._now(at) + lasts,
                ways=asked.choices,
                declined=row.declined,
            )
        )
        return Asked(
            events=[_event(approval, ApprovalRequested(approval=approval), at)]
        )

    def _now(self, at: int) -> int:
        return at if self._up_ms is None else self._up_ms()

    def _withdraw(self, entry: Entry, at: int) -> RuntimeEvent:
        sent = entry.approval.state is ApprovalState.ANSWERING
        return self._end(entry, ApprovalState.WITHDRAWN, at, sent=sent)

    def _end(
        self, entry: Entry, state: ApprovalState, at: int, *, sent: bool | None = None
    ) -> RuntimeEvent:
        entry.approval = entry.approval.model_copy(
            update={"state": state, "sent": sent}
        )
        return _event(entry.approval, ApprovalResolved(approval=entry.approval), at)


def _refused(
    request_id: RequestId, row: Asks, what: str, params: Mapping[str, Any], at: int
) -> Asked:
    reply = Reply(request_id=request_id, result=row.declined)
    return Asked(events=[refusal_told(what, params, at, root=None)], reply=reply)


def _event(approval: Approval, data: EventData, at: int) -> RuntimeEvent:
    root = approval.root_thread_id
    return Emitted(
        at=at,
        thread_id=approval.thread_id,
        root_thread_id=None if root == approval.thread_id else root,
        data=data,
    )
