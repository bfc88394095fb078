"""All errors of the protocol: refusals with a wire code, and broken connections. Sans-IO.

PROTOCOL.md section 7. A `Refusal` is an answer: typed, told to the peer, the session
lives on. A `TransportError` is the end of a connection; a peer is told nothing but a
close code.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Final, Self, cast


class ErrorCode(StrEnum):
    """The contract. Never reused, never renamed."""

    CODEX_UNAVAILABLE = "codexUnavailable"
    THREAD_OWNED_ELSEWHERE = "threadOwnedElsewhere"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    OUTCOME_UNKNOWN = "outcomeUnknown"
    CONFLICT = "conflict"
    FORBIDDEN = "forbidden"
    NOT_OPEN = "notOpen"
    UNSUPPORTED_PROTOCOL = "unsupportedProtocol"
    METHOD_NOT_FOUND = "methodNotFound"
    INVALID_PARAMS = "invalidParams"
    NOT_FOUND = "notFound"
    TOO_LARGE = "tooLarge"
    NOT_RESUMABLE = "notResumable"
    APPROVAL_CLOSED = "approvalClosed"
    UNAVAILABLE_FEATURE = "unavailableFeature"
    RUNTIME_ERROR = "runtimeError"
    INTERNAL = "internal"


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """A typed answer of "no". `message` says to a person what to do.

    `data` holds plain wire values (camelCase keys), as section 7 lists them per code.
    `whole`: what who sits at the workstation is told in its place; it may name paths.
    """

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL
    retryable: bool = False

    def __init__(
        self,
        message: str,
        *,
        data: Mapping[str, Any] | None = None,
        retryable: bool | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.data: dict[str, Any] = dict(data or {})
        self.retry_after_ms = retry_after_ms
        self.whole: Refusal | None = None
        if retryable is not None:
            self.retryable = retryable

    def again(self) -> Self:
        """Return the same refusal, to be raised to somebody else."""
        same = type(self)(
            self.message,
            data=self.data,
            retryable=self.retryable,
            retry_after_ms=self.retry_after_ms,
        )
        same.whole = self.whole
        return same

    def wire(self) -> dict[str, Any]:
        """Return the `error` map of a response."""
        body: dict[str, Any] = {
            "code": str(self.code),
            "message": self.message,
            "retryable": self.retryable,
        }
        if self.retry_after_ms is not None:
            body["retryAfterMs"] = self.retry_after_ms
        if self.data:
            body["data"] = self.data
        return body


class CodexUnavailable(Refusal):
    """The gate is closed (`data.gate` says by whom) or the runtime is down."""

    code = ErrorCode.CODEX_UNAVAILABLE
    retryable = True


class ThreadOwnedElsewhere(Refusal):
    """Another process holds Codex's lock of the thread."""

    code = ErrorCode.THREAD_OWNED_ELSEWHERE
    retryable = True


class Overloaded(Refusal):
    """A limit of the Agent is reached; nothing was done."""

    code = ErrorCode.OVERLOADED
    retryable = True


class Timeout(Refusal):
    """Too slow, and certainly without effect."""

    code = ErrorCode.TIMEOUT
    retryable = True


class OutcomeUnknown(Refusal):
    """The act may or may not have happened; it is never sent again."""

    code = ErrorCode.OUTCOME_UNKNOWN


class Conflict(Refusal):
    """The world is not as the client believed (`data.what`)."""

    code = ErrorCode.CONFLICT


class Forbidden(Refusal):
    """The device lacks a scope, or wants more than its ceiling."""

    code = ErrorCode.FORBIDDEN


class NotOpen(Refusal):
    """`session/open` comes first."""

    code = ErrorCode.NOT_OPEN


class UnsupportedProtocol(Refusal):
    """No common protocol version (`data.min`, `data.max`)."""

    code = ErrorCode.UNSUPPORTED_PROTOCOL


class MethodNotFound(Refusal):
    """There is no such method at this door."""

    code = ErrorCode.METHOD_NOT_FOUND


class InvalidParams(Refusal):
    """Params are wrong: `data.field`, `data.reason`."""

    code = ErrorCode.INVALID_PARAMS


class NotFound(Refusal):
    """It does not exist, or not for this device."""

    code = ErrorCode.NOT_FOUND


class TooLarge(Refusal):
    """Above a limit (`data.field`, `data.limit`)."""

    code = ErrorCode.TOO_LARGE


class NotResumable(Refusal):
    """Codex can read this thread but not continue it."""

    code = ErrorCode.NOT_RESUMABLE


class ApprovalClosed(Refusal):
    """The approval has had its one end (`data.approval`)."""

    code = ErrorCode.APPROVAL_CLOSED


class UnavailableFeature(Refusal):
    """This codex version or this Agent cannot do it."""

    code = ErrorCode.UNAVAILABLE_FEATURE


class RuntimeFailure(Refusal):
    """Codex refused for a reason of its own (`data.method`, `code`, `message`)."""

    code = ErrorCode.RUNTIME_ERROR


class Internal(Refusal):
    """A fault of the Agent. Its log has the details."""

    code = ErrorCode.INTERNAL


REFUSALS: Final[Mapping[ErrorCode, type[Refusal]]] = {
    cls.code: cls
    for cls in (
        CodexUnavailable,
        ThreadOwnedElsewhere,
        Overloaded,
        Timeout,
        OutcomeUnknown,
        Conflict,
        Forbidden,
        NotOpen,
        UnsupportedProtocol,
        MethodNotFound,
        InvalidParams,
        NotFound,
        TooLarge,
        NotResumable,
        ApprovalClosed,
        UnavailableFeature,
        RuntimeFailure,
        Internal,
    )
}


class UnknownRefusal(Refusal):
    """A code of a newer Agent: go by `retryable` alone. Its word is in `wire_code`."""

    wire_code: str = ""


_BY_WORD: Final = {str(code): cls for code, cls in REFUSALS.items()}


def refusal_from_wire(error: Mapping[str, Any]) -> Refusal:
    """Return the exception for a response's `error` map; an unknown code keeps its word."""
    code = str(error.get("code", ""))
    cls = _BY_WORD.get(code, UnknownRefusal)
    data = error.get("data")
    after = error.get("retryAfterMs")
    refusal = cls(
        str(error.get("message", code)),
        data=cast("dict[str, Any]", data) if isinstance(data, dict) else None,
        retryable=error.get("retryable") is True,
        retry_after_ms=after if isinstance(after, int) else None,
    )
    if isinstance(refusal, UnknownRefusal):
        refusal.wire_code = code
    return refusal


class TransportError(Exception):
    """A connection is over. `str()` is for our log, never for the peer."""


class LocalProtocolError(TransportError):
    """We broke PROTOCOL.md: a bug on our side."""


class RemoteProtocolError(TransportError):
    """The peer broke PROTOCOL.md. The connection must be closed."""


class HandshakeError(RemoteProtocolError):
    """No channel came about. All causes look alike from outside: silence."""


class TruncatedError(RemoteProtocolError):
    """The stream ended without CLOSE: reconnect and resume."""


class CloseCode(StrEnum):
    """Why a peer closed; on the wire its number in `CLOSE_NUMBERS`."""

    DONE = "done"
    GOING_AWAY = "goingAway"
    REPLACED = "replaced"
    REVOKED = "revoked"
    RENEW = "renew"
    PROTOCOL_ERROR = "protocolError"
    TOO_SLOW = "tooSlow"
    OVERLOADED = "overloaded"


CLOSE_NUMBERS: Final[Mapping[CloseCode, int]] = {
    code: number for number, code in enumerate(CloseCode)
}


class PeerClosedError(TransportError):
    """The peer said CLOSE. `code` decides whether to come back."""

    def __init__(self, code: CloseCode | None, number: int) -> None:
        super().__init__(code, number)
        self.code = code
        self.number = number

    def __str__(self) -> str:
        return f"the peer closed the session: {self.code or self.number}"


class UnreachableError(TransportError):
    """No connection could be made. `str()` says where to and why."""


class SilentAgentError(UnreachableError):
    """Something listens and did not shake hands: it hangs; or keys, pairing, a lock."""


class LinkLostError(TransportError):
    """The connection ended while a request waited. `sent`: it may have arrived."""

    def __init__(self, *, sent: bool) -> None:
        super().__init__(sent)
        self.sent = sent

    def __str__(self) -> str:
        return "the connection ended before an answer came"


class StalledError(TransportError):
    """The peer takes nothing: the connection was cut without a word."""


class ChannelClosedError(TransportError):
    """This side has closed the channel."""


class KeyFileError(Exception):
    """A key file that cannot be trusted. `str()` says to a person what to do."""


class PairingTextError(Exception):
    """A pairing text that cannot be used. `str()` says to a person why."""
