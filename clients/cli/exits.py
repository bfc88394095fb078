"""How a command ends: its exit code and one line on stderr. Sans-IO. PROTOCOL.md section 7.

The line says what happened and what to do; where another program writes, it names it
and says when to try again. Scripts go by the code.
"""

import errno
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, cast

from pydantic import ValidationError

from clients.cli.clock import Clock, duration
from clients.cli.lines.gate import writer_text
from clients.cli.plain import one_line
from clients.cli.style import Line
from transport.errors import (
    CloseCode,
    CodexUnavailable,
    Conflict,
    HandshakeError,
    KeyFileError,
    OutcomeUnknown,
    PairingTextError,
    PeerClosedError,
    Refusal,
    RemoteProtocolError,
    SilentAgentError,
    ThreadOwnedElsewhere,
    TruncatedError,
    UnreachableError,
)
from transport.patience import OWNERS
from transport.protocol.gateway import GateReason, GateState, Writer

MESSAGE_LIMIT: Final = 600  # characters of one error line
_AGAIN: Final = re.compile(  # what a sentence of an Agent may end with
    r"[:;,.]? (?:then )?try again(?: later| in a moment)?$", re.IGNORECASE
)
UNWRITABLE: Final = frozenset(  # a full disk, under stdout or a file of ours
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
)


class ExitCode(IntEnum):
    """The contract with scripts."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    RETRYABLE = 4


class CommandError(Exception):
    """A command cannot go on. `details` are lines that go below the one line."""

    exit_code = ExitCode.FAILED

    def __init__(self, message: str, details: Sequence[Line] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.details = tuple(details)


class FailedError(CommandError):
    """Refused or failed, for a reason that `message` tells."""


class UsageProblemError(CommandError):
    """The command was not said in a way that can be carried out."""

    exit_code = ExitCode.USAGE


class NotReachedError(CommandError):
    """There is nobody to talk to."""

    exit_code = ExitCode.UNREACHABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What to print on stderr, and what to exit with."""

    code: ExitCode
    message: str
    details: tuple[Line, ...] = ()


def ending(error: Exception, clock: Clock, host: str = "the Agent") -> Ending | None:
    """Return how a command ends that was left by `error`; None: not one that we know."""
    match error:
        case CommandError():
            return Ending(
                code=error.exit_code, message=error.message, details=error.details
            )
        case Refusal():
            code = ExitCode.RETRYABLE if error.retryable else ExitCode.FAILED
            return Ending(code=code, message=_limited(refusal_text(error, clock)))
        case PairingTextError() | KeyFileError():
            usage = isinstance(error, PairingTextError)
            code = ExitCode.USAGE if usage else ExitCode.FAILED
            return Ending(code=code, message=_limited(str(error)))
        case PeerClosedError():
            return _closed(error, host)
        case SilentAgentError():
            text = f"{error}; its owner knows which"
            return Ending(code=ExitCode.UNREACHABLE, message=_limited(text))
        case UnreachableError():
            code = ExitCode.UNREACHABLE
            text = f"cannot reach {host}: {error}; is `threadgate serve` running there?"
            return Ending(code=code, message=_limited(text))
        case HandshakeError():
            text = f"{host} did not answer the handshake: it may have revoked this device, or be another Agent now; pair again (`threadgate connect`)"
            return Ending(code=ExitCode.UNREACHABLE, message=text)
        case TruncatedError():
            text = f"the connection to {host} was cut; run the command again"
            return Ending(code=ExitCode.UNREACHABLE, message=text)
        case RemoteProtocolError():
            text = f"{host} broke the protocol ({error}); are both sides up to date?"
            return Ending(code=ExitCode.FAILED, message=_limited(text))
        case ValidationError():
            return Ending(code=ExitCode.USAGE, message=_limited(_misfit(error)))
        case OSError() if error.errno in UNWRITABLE:
            text = f"it could not be written: {error.strerror}"
            return Ending(code=ExitCode.FAILED, message=text)
        case _:
            return None


def _misfit(error: ValidationError) -> str:
    """Say what of a request cannot be sent: the first of its fields that does not fit."""
    first = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"][:3]) or "it"
    if first["type"] == "string_unicode":
        return f"{name} holds bytes that are no UTF-8: nothing was sent"
    return f"{name} cannot be sent: {first['msg']}"


def _limited(text: str) -> str:
    return one_line(text, MESSAGE_LIMIT)


def _closed(error: PeerClosedError, host: str) -> Ending:
    if error.code is CloseCode.REVOKED:
        text = f"{host} has revoked this device, or is locked: ask at the workstation"
        return Ending(code=ExitCode.FAILED, message=text)
    if error.code is CloseCode.PROTOCOL_ERROR:
        text = f"{host} did not understand us; are both sides up to date?"
        return Ending(code=ExitCode.FAILED, message=text)
    text = f"{host} closed the connection ({error.code or error.number}); try again in a moment"
    return Ending(code=ExitCode.UNREACHABLE, message=text)


def refusal_text(refusal: Refusal, clock: Clock) -> str:
    """Return one sentence or two: what was refused, because of whom, what to do."""
    match refusal:
        case CodexUnavailable():
            return _unavailable(refusal, clock)
        case ThreadOwnedElsewhere():
            writer = _model(Writer, refusal.data.get("writer"))
            who = writer_text(writer, clock) if writer else "another Codex"
            return (
                f"refused, nothing was sent: {who} holds this thread; {_retry(refusal)}"
            )
        case OutcomeUnknown():
            return _unknown(refusal)
        case Conflict() if refusal.data.get("what") in {"queue", "goal"}:
            return f"{_sentence(refusal)} (`--allow-pending` sends all the same)"
        case _ if refusal.retryable:
            return _with_retry(refusal)
        case _:
            return _sentence(refusal)


def _sentence(refusal: Refusal) -> str:
    return one_line(refusal.message).rstrip(".") or str(refusal.code)


def _with_retry(refusal: Refusal) -> str:
    """When to try again is said once, by the number that comes with the refusal."""
    return f"{_AGAIN.sub('', _sentence(refusal))}; {_retry(refusal)}"


def _retry(refusal: Refusal) -> str:
    if refusal.retry_after_ms is None:
        return "try again later"
    return f"try again in {duration(refusal.retry_after_ms)}"


def _unavailable(refusal: Refusal, clock: Clock) -> str:
    gate = _model(GateState, refusal.data.get("gate"))
    if gate is None or gate.writer is None or gate.reason is None:
        return _with_retry(refusal) if refusal.retryable else _sentence(refusal)
    who = writer_text(gate.writer, clock)
    why = {
        GateReason.DESKTOP_ACTIVE: f"{who} is the writer",
        GateReason.WRITER_WITHOUT_LOCK: f"{who} writes threads without Codex's lock",
    }.get(gate.reason, one_line(refusal.message).rstrip("."))
    return f"refused, nothing was sent: {why}; reading goes on; {_retry(refusal)} or when it is closed"


def _unknown(refusal: Refusal) -> str:
    key, thread = refusal.data.get("requestKey"), refusal.data.get("threadId")
    if refusal.data.get("method") in OWNERS:
        return (
            "the Agent has been asked and does not answer: it may have been done; run the "
            "command again (twice is harmless), or end the Agent (`threadgate doctor` "
            "names its process)"
        )
    if key is None:
        return f"{_sentence(refusal)}: look with `threadgate approvals`"
    look = f"read {one_line(str(thread), 64)}" if thread else "threads"
    return (
        "it is not known whether this reached Codex (request key "
        f"{one_line(str(key), 64)}); it will not be sent again by itself: look with "
        f"`threadgate {look}`, and send anew only if it is not there"
    )


def _model(model: type[Any], value: object) -> Any:
    if not isinstance(value, dict):
        return None
    try:
        return model.model_validate(cast("dict[str, Any]", value))
    except ValidationError:
        return None
