"""Why a turn failed, and what a person can do about it. Sans-IO. PROTOCOL.md section 5.

The codes are Codex's own; one that is not known here has its message alone.
"""

from collections.abc import Mapping
from typing import Final

from transport.protocol.turns import TurnError

_WAIT: Final = "wait a moment, then send it again"
_ADVICE: Final[Mapping[str, str]] = {
    "activeTurnNotSteerable": "wait until the turn has ended",
    "badRequest": "the model provider does not take this: see the message",
    "contextWindowExceeded": "the thread has outgrown the model's context: start a new "
    "one, or compact it",
    "flexUnavailable": _WAIT,
    "httpConnectionFailed": "the workstation does not reach the model provider: look at "
    "its network and its settings",
    "inferenceHookDenied": "a hook of the workstation refused the model call",
    "internalServerError": _WAIT,
    "modelNotFound": "name another model at the workstation: this one is not offered",
    "policyCapacityUnavailable": _WAIT,
    "rateLimitExceeded": _WAIT,
    "responseStreamConnectionFailed": "the model provider did not answer: send it again",
    "responseStreamDisconnected": "the model provider broke off: send it again",
    "responseTooManyFailedAttempts": "the model provider kept failing: try again later",
    "sandboxError": "the sandbox of the workstation did not start: see the message",
    "serverOverloaded": _WAIT,
    "sessionBudgetExceeded": "the budget of this thread is used up: start a new one",
    "tooManyDenials": "Codex stopped after too many refusals: say what is allowed, then "
    "send it again",
    "unauthorized": "sign in to Codex again at the workstation",
    "usageLimitExceeded": "your usage limit is reached: wait until it is reset, or use "
    "another model",
}
_STATUSES: Final[Mapping[int, str]] = {
    401: "sign in to Codex again at the workstation",
    403: "the account at the workstation may not use this model",
    429: _WAIT,
}


def advice(error: TurnError) -> str | None:
    """Return what to do; the provider's status says more than a broken connection."""
    status = _STATUSES.get(error.http_status or 0)
    return status or _ADVICE.get(error.code)
