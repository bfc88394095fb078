"""What can go wrong between us and a runtime. Sans-IO.

The admission door needs one distinction above all: did the bytes of an act reach the
runtime? `NotDeliveredError` and `CodexRefusedError` say *certainly no effect*;
`NoAnswerError` says *unknown*.
"""

import errno
import re
from typing import Final

STARVED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""No descriptor, or no memory, is left: that says nothing of what was to be looked at."""
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


class AdapterError(Exception):
    """Base of the family."""


class BinaryNotFoundError(AdapterError):
    """No codex to launch. `str()` lists where we looked and what to do."""


class ChildExitedError(AdapterError):
    """The app-server left while it was needed. `stderr` is the tail of its log.

    That may quote a thread or its commands: `str()`, which goes to logs and to every
    device, leaves it out.
    """

    def __init__(self, name: str, returncode: int | None, stderr: str = "") -> None:
        super().__init__(name, returncode, stderr)
        self.name = name
        self.returncode = returncode
        self.stderr = stderr

    def __str__(self) -> str:
        if self.returncode is not None and self.returncode < 0:
            return f"{self.name} was killed by signal {-self.returncode}"
        return f"{self.name} ended with {self.returncode}"

    @property
    def last_words(self) -> str:
        """Its error, or else the last line of its log, without colours. Of one that
        ended before it had read any thread it says what is wrong (no such folder); of
        others it may quote anything."""
        lines = _COLOUR.sub("", self.stderr).strip().splitlines()
        errors = [line for line in lines if line.startswith("Error: ")]
        return next(iter((errors or lines)[-1:]), "")


class ChildHungError(ChildExitedError):
    """The app-server answered nothing any more, so we ended it."""

    def __str__(self) -> str:
        return f"{self.name} did not answer any more and was ended"


class NotRecordedError(AdapterError):
    """What was started could not be written down, so it was ended: a later Agent could
    not have swept it up. The state folder is full or read-only."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"{self.name} was ended: its record cannot be written (disk full?)"


def told_at_start(error: Exception) -> str:
    """Return what is told of a start that failed: no thread had been read by then."""
    if isinstance(error, ChildExitedError) and error.last_words:
        return f"{error}: {error.last_words}"
    return str(error)


def told_to_all(error: Exception) -> str:
    """Return what every device may know of a failure: none of Codex's words, no path."""
    match error:
        case ChildExitedError() | NotRecordedError() | NotDeliveredError():
            return str(error)
        case CodexChangedError():
            return str(error)
        case CodexGoneError():
            return "codex is not there any more"
        case BinaryNotFoundError() | OSError():
            return "codex cannot be started"
        case _:
            return "codex did not answer as it should"


class ReaderFirstError(AdapterError):
    """A writer was wanted while no reader of ours is initialized: nothing was started.

    On codex up to 0.163 processes that start at once on a new home kill each other.
    """


class CodexGoneError(BinaryNotFoundError):
    """The codex that ran is not there any more, and no other was found."""


class CodexChangedError(AdapterError):
    """A writer is another version, or on another home, than the reader: codex was updated
    under a running Agent. Nothing was loaded; the reader is started anew."""

    def __str__(self) -> str:
        return "codex was updated and is started anew"


class HandshakeFailedError(AdapterError):
    """The app-server refused or garbled `initialize`."""


class OtherHomeError(HandshakeFailedError):
    """The app-server works on another CODEX_HOME than the one that it was given."""

    def __init__(self, asked: str, told: str) -> None:
        super().__init__(asked, told)
        self.asked = asked
        self.told = told

    def __str__(self) -> str:
        return (
            f"codex was given the CODEX_HOME {self.asked} and works in {self.told}, which "
            "nobody here would watch. Look whether it is the codex that you mean, and "
            "whether something sets another CODEX_HOME for it."
        )


class CodexRefusedError(AdapterError):
    """A definite JSON-RPC error: nothing happened."""

    def __init__(self, method: str, code: int, message: str) -> None:
        super().__init__(method, code, message)
        self.method = method
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.method}: {self.message} ({self.code})"


class ThreadLockedError(CodexRefusedError):
    """Another process has Codex's writer lock of the thread."""


class ThreadArchivedError(CodexRefusedError):
    """The thread is archived: it can be read, and not be continued."""


class ThreadUnknownError(CodexRefusedError):
    """Codex knows no such thread (or not one that can be loaded)."""


class ThreadForkedError(CodexRefusedError):
    """The thread cannot be deleted while forks of it are there."""


class TurnUnknownError(CodexRefusedError):
    """The thread has no such turn, or not one that has ended."""


class CodexOverloadedError(CodexRefusedError):
    """Codex said -32001, or our own 64 requests in flight are used up."""


class NotDeliveredError(AdapterError):
    """No byte was written: the process was gone, or took nothing until the deadline."""

    def __init__(self, method: str) -> None:
        super().__init__(method)
        self.method = method

    def __str__(self) -> str:
        return f"{self.method} was not sent"


class NoAnswerError(AdapterError):
    """Sent, and no answer came: the deadline passed or the process died."""

    def __init__(self, method: str) -> None:
        super().__init__(method)
        self.method = method

    def __str__(self) -> str:
        return f"{self.method} was sent and not answered"


class DiedUnansweredError(NoAnswerError):
    """Sent, and the process died before it answered: known at once, not by a deadline."""

    def __str__(self) -> str:
        return f"{self.method} was sent to a process that died"


class AnswerShapeError(AdapterError):
    """An answer does not have the shape of the generated schema."""

    def __init__(self, method: str, reason: str) -> None:
        super().__init__(method, reason)
        self.method = method
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.method}: unexpected answer: {self.reason}"


class AnswerTooLongError(AnswerShapeError):
    """An answer is longer than we keep (`ANSWER_BYTES`): ask for less at once."""

    def __init__(self, method: str) -> None:
        super().__init__(method, "it is too long to be kept")
