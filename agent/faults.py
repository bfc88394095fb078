"""What a client is told of a fault that nobody foresaw: nothing. Sans-IO.

The log gets the exception's type and the places in our code, never its text: that may
hold a prompt, a path or a command.
"""

import logging
import traceback
from typing import Final

from adapter.errors import AdapterError, ChildExitedError, CodexOverloadedError
from transport.errors import CodexUnavailable, Internal, Overloaded, Refusal

_LOG: Final = logging.getLogger(__name__)
_FRAMES: Final = 4


def refusal_for(exc: Exception, method: str) -> Refusal:
    """Return what the client is told, and log where it happened."""
    _LOG.error("%s failed: %s", method, fault_of(exc))
    match exc:
        case CodexOverloadedError():
            return Overloaded("Codex is busy; try again.", retry_after_ms=1_000)
        case ChildExitedError():
            return CodexUnavailable(
                "Codex has just ended; it is being started again.",
                retry_after_ms=1_000,
            )
        case AdapterError():
            return Internal("Codex gave an answer that could not be used.")
        case _:
            return Internal("The Agent has a fault; its log says where.")


def fault_of(exc: Exception) -> str:
    """Return an exception for the log: its type and where it happened, never its text."""
    frames = traceback.extract_tb(exc.__traceback__)[-_FRAMES:]
    places = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(exc).__name__} at {places}"
