"""From a runtime's error to what a client is told. Sans-IO. PROTOCOL.md section 7.

Every refusal says what to do, and names the other writer where it is known. Codex's own
words may name paths: devices are told a sentence of ours, the workstation the whole.
"""

from adapter.calls.refusals import not_offered
from adapter.errors import (
    STARVED,
    AdapterError,
    AnswerShapeError,
    AnswerTooLongError,
    BinaryNotFoundError,
    ChildExitedError,
    CodexChangedError,
    CodexGoneError,
    CodexOverloadedError,
    CodexRefusedError,
    DiedUnansweredError,
    HandshakeFailedError,
    NoAnswerError,
    NotDeliveredError,
    NotRecordedError,
    ReaderFirstError,
    ThreadArchivedError,
    ThreadForkedError,
    ThreadLockedError,
    ThreadUnknownError,
    TurnUnknownError,
    told_at_start,
    told_to_all,
)
from adapter.limits import ANSWER_BYTES
from agent.limits import (
    LOCK_RETRY_MS,
    RUNTIME_RETRY_MS,
    STORAGE_RETRY_MS,
    WRITER_RETRY_MS,
)
from transport.errors import (
    CodexUnavailable,
    Conflict,
    Internal,
    NotFound,
    NotResumable,
    OutcomeUnknown,
    Overloaded,
    Refusal,
    RuntimeFailure,
    ThreadOwnedElsewhere,
    Timeout,
    TooLarge,
    UnavailableFeature,
)
from transport.protocol.gateway import (
    GatePosition,
    GateReason,
    GateState,
    Writer,
    WriterKind,
)
from transport.protocol.turns import Turn

_MESSAGE = 2_000  # characters of a runtime's own words (PROTOCOL.md section 7)
_ASK_THERE = "who asks at the workstation is told why"
_ODD = "Codex answered in a way that we do not understand"


def thread_not_found(thread_id: str) -> NotFound:
    """One answer for what is not there and for what is not there for this device."""
    return NotFound(
        "There is no such thread (or not for this device). `threadgate threads` lists "
        "those that there are.",
        data={"kind": "thread", "id": thread_id},
    )


def owned_elsewhere(thread_id: str, writer: Writer | None) -> ThreadOwnedElsewhere:
    """Another process has Codex's lock of the thread."""
    who = f"{writer.name} (process {writer.pid})" if writer else "Another program"
    hint = (
        "Its server keeps a thread for about a minute after the last window closed."
        if writer and writer.kind in (WriterKind.DAEMON, WriterKind.DESKTOP)
        else "Close the thread there, or wait; then send again."
    )
    data: dict[str, object] = {"threadId": thread_id}
    if writer is not None:
        data["writer"] = writer.wire()
    return ThreadOwnedElsewhere(
        f"{who[:1].upper()}{who[1:]} has this thread open for writing. {hint}",
        data=data,
        retry_after_ms=LOCK_RETRY_MS,
    )


def running(turn: Turn | None, why: str) -> Conflict:
    """A turn runs (or does not), and so the act does not fit."""
    data: dict[str, object] = {"what": "running"}
    if turn is not None:
        data["turn"] = turn.model_copy(update={"items": None}).wire()
    return Conflict(why, data=data)


def forks_need(thread_id: str) -> Conflict:
    """A copy of the thread shares its history."""
    return Conflict(
        "Forks of this thread still need it, so Codex does not delete it. Delete the "
        "forks first, or archive it.",
        data={"what": "forks", "threadId": thread_id},
    )


def turn_not_found(turn_id: str | None) -> NotFound:
    """The thread has no such turn, or it still runs."""
    return NotFound(
        "This thread has no such turn, or it has not ended yet. `threadgate read` shows "
        "the newest ones.",
        data={"kind": "turn", "id": turn_id or ""},
    )


def other_last_turn(turn: Turn | None) -> Conflict:
    """The thread went on since the client looked."""
    data: dict[str, object] = {"what": "lastTurn"}
    if turn is not None:
        data["turn"] = turn.model_copy(update={"items": None}).wire()
    return Conflict(
        "The thread has gone on since this message was written; nothing was sent. Read "
        "the newest turn, then send again if it still fits.",
        data=data,
    )


def outcome_unknown(
    key: str, method: str, thread_id: str | None, *, new_turns: int | None = None
) -> OutcomeUnknown:
    """The act may have happened; it will not be sent again under this key.

    `new_turns`: how many turns the thread has since.
    """
    data: dict[str, object] = {"requestKey": key, "method": method}
    if thread_id is not None:
        data["threadId"] = thread_id
    if new_turns is not None:
        data["newTurns"] = new_turns
    return OutcomeUnknown(
        "Codex was asked and did not say whether it did it. Look at the thread: if the "
        "message is not there, send it again (as a new message).",
        data=data,
    )


def storage_failed(what: str) -> Internal:
    """The state folder cannot be written, so nothing may be done."""
    return Internal(
        f"The Agent cannot write its {what} (is the disk full?), so nothing was done. "
        "Make room on the workstation, then try again.",
        data={"what": "storage"},
        retryable=True,
        retry_after_ms=STORAGE_RETRY_MS,
    )


def check_told(exc: OSError) -> None:
    """Raise `Internal`, retryable, where it says nothing of the file: no descriptor, or no
    memory, is left to open it."""
    if exc.errno in STARVED:
        raise Internal(
            "The Agent cannot open a file now, so nothing was done. Try again.",
            retryable=True,
            retry_after_ms=WRITER_RETRY_MS,
        )


def writer_down(reason: str, *, at_ms: int) -> CodexUnavailable:
    """An app-server of ours could not be started, or died before the act."""
    return _down(
        f"Codex ended before anything was sent ({reason[:_MESSAGE]}). Try again.",
        at_ms=at_ms,
    )


def start_failed(exc: ChildExitedError, *, at_ms: int) -> Refusal:
    """An app-server of ours ended before it had read any thread."""
    return _brief(
        writer_down(told_to_all(exc), at_ms=at_ms),
        writer_down(told_at_start(exc), at_ms=at_ms),
    )


def _down(message: str, *, at_ms: int) -> CodexUnavailable:
    gate = GateState(
        state=GatePosition.READ_ONLY,
        reason=GateReason.RUNTIME_DOWN,
        since=at_ms,
        retry_after_ms=RUNTIME_RETRY_MS,
    )
    return CodexUnavailable(
        message, data={"gate": gate.wire()}, retry_after_ms=RUNTIME_RETRY_MS
    )


def failed_before(exc: AdapterError, *, thread_id: str, at_ms: int) -> Refusal:
    """Return the refusal for an error that certainly had no effect."""
    match exc:
        case ThreadUnknownError():
            return thread_not_found(thread_id)
        case ThreadArchivedError():
            return NotResumable(
                "This thread is archived: it can be read, not continued. Unarchive it "
                f"(`threadgate unarchive {thread_id}`), then send again.",
                data={"threadId": thread_id, "archived": True},
            )
        case ThreadLockedError():
            return owned_elsewhere(thread_id, None)
        case ThreadForkedError():
            return forks_need(thread_id)
        case TurnUnknownError():
            return turn_not_found(None)
        case CodexOverloadedError():
            return Overloaded("Codex has too much to do right now. Try again.")
        case CodexRefusedError(method="thread/resume"):
            said = "Codex does not continue this thread"
            data = {"threadId": thread_id}
            return _brief(
                NotResumable(f"{said}; {_ASK_THERE}", data=data),
                NotResumable(f"{said}: {exc.message[:_MESSAGE]}", data=data),
            )
        case CodexRefusedError() if not_offered(exc):
            return UnavailableFeature(
                f"The Codex that runs here does not offer this ({exc.method}). A newer "
                "one may; `gateway/capabilities` says what this one has.",
                data={"feature": exc.method},
            )
        case CodexRefusedError():
            return _brief(
                _runtime_failure("Codex refused", _ASK_THERE, exc),
                _runtime_failure("Codex refused", exc.message[:_MESSAGE], exc),
            )
        case DiedUnansweredError():
            return _down(
                "Codex ended while it was asked; nothing was done. It is being started "
                "again: try again in a moment.",
                at_ms=at_ms,
            )
        case AnswerTooLongError():
            return TooLarge(
                "What Codex has here is too large to be read from afar.",
                data={"field": exc.method, "limit": ANSWER_BYTES},
            )
        case NoAnswerError():
            return Timeout("Codex did not answer in time; nothing was done. Try again.")
        case NotRecordedError():
            return storage_failed("list of processes")
        case CodexChangedError():
            return _down(
                "Codex was updated on the workstation; nothing was sent. It is being "
                "started anew: try again in a moment.",
                at_ms=at_ms,
            )
        case CodexGoneError():
            return _brief(
                _down(
                    "Codex is not on the workstation any more: it was moved or removed, "
                    "and nothing was sent. Install it there, or name its binary in "
                    "THREADGATE_CODEX or in the config file; `threadgate doctor` says "
                    "where was looked.",
                    at_ms=at_ms,
                ),
                _down(f"Nothing was sent: {exc}"[:_MESSAGE], at_ms=at_ms),
            )
        case BinaryNotFoundError():  # it is just being updated, or may not be run
            return _brief(
                writer_down("it cannot be started", at_ms=at_ms),
                writer_down(str(exc), at_ms=at_ms),
            )
        case ReaderFirstError():
            return writer_down("it is being started", at_ms=at_ms)
        case ChildExitedError() | NotDeliveredError() | HandshakeFailedError():
            return _brief(
                writer_down(told_to_all(exc), at_ms=at_ms),
                writer_down(str(exc), at_ms=at_ms),
            )
        case AnswerShapeError():  # our own words, and nothing of what it holds
            return _runtime_failure(_ODD, str(exc)[:_MESSAGE], exc)
        case _:
            return _brief(
                _runtime_failure(_ODD, _ASK_THERE, exc),
                _runtime_failure(_ODD, str(exc)[:_MESSAGE], exc),
            )


def _brief(told: Refusal, whole: Refusal) -> Refusal:
    """Return what devices are told; at the workstation it is the whole."""
    told.whole = whole
    return told


def _runtime_failure(said: str, why: str, exc: AdapterError) -> RuntimeFailure:
    data: dict[str, object] = {"method": "", "code": 0, "message": why}
    if isinstance(exc, CodexRefusedError):
        data |= {"method": exc.method, "code": exc.code}
    return RuntimeFailure(f"{said}: {why}", data=data)


def is_lock(exc: AdapterError) -> bool:
    """Whether the refusal means that somebody has the thread's lock."""
    return isinstance(exc, ThreadLockedError)
