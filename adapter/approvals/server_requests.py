"""Every kind of request that Codex's app-server sends to its client. Sans-IO.

PROTOCOL.md section 5. What a person can be shown and can answer is asked; everything
else is refused at once in its own legal shape, so that no turn ever waits for us. A kind
that we do not know gets an error: silence would hang the turn.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapter.approvals import (
    act_questions,
    server_frame,
    server_questions,
    user_questions,
)
from adapter.approvals.choices import Result
from adapter.approvals.questions import Question
from transport.protocol.items import Item

Build = Callable[[Mapping[str, Any], Item | None], Question]

NOT_SUPPORTED: Final = -32601  # JSON-RPC 2.0: method not found
INVALID: Final = -32600  # … : invalid request


@dataclass(frozen=True, slots=True)
class Asks:
    """A person is asked. `build` raises one of `MISFITS`.

    `declined`: what Codex is told when nobody answers, or nobody can be asked.
    """

    build: Build
    declined: Result


@dataclass(frozen=True, slots=True)
class Refuses:
    """Answered at once. `result`: the shape that grants nothing; takes the time in ms.

    `what` says in a notice what was asked; `None`: nobody needs to know.
    """

    result: Callable[[int], Result]
    what: str | None


@dataclass(frozen=True, slots=True)
class Fails:
    """Answered with an error, because every legal answer would grant something."""

    what: str


def _alone(build: Callable[[Mapping[str, Any]], Question]) -> Build:
    """For questions that are about no item."""
    return lambda raw, _: build(raw)


def _always(result: Result) -> Callable[[int], Result]:
    return lambda _: result


_TOOL_FAILED: Final = {
    "contentItems": [
        {"type": "inputText", "text": "this client has no tools of its own"}
    ],
    "success": False,
}
# `denied` changed its shape between versions; this one is legal in all and grants nothing.
_OLD_DENIAL: Final = {"decision": "timed_out"}

SERVER_REQUESTS: Final[Mapping[str, Asks | Refuses | Fails]] = {
    "account/chatgptAuthTokens/refresh": Fails("new sign-in tokens"),
    "applyPatchApproval": Refuses(_always(_OLD_DENIAL), "a patch, in an old way"),
    "attestation/generate": Fails("an attestation of this machine"),
    "currentTime/read": Refuses(lambda at: {"currentTimeAt": at // 1000}, None),
    "execCommandApproval": Refuses(_always(_OLD_DENIAL), "a command, in an old way"),
    "item/commandExecution/requestApproval": Asks(
        act_questions.about_command, act_questions.DECLINED
    ),
    "item/fileChange/requestApproval": Asks(
        act_questions.about_change, act_questions.DECLINED
    ),
    "item/permissions/requestApproval": Asks(
        _alone(act_questions.about_permissions), act_questions.NOTHING_GRANTED
    ),
    "item/tool/call": Refuses(_always(_TOOL_FAILED), "a tool of its client"),
    "item/tool/requestUserInput": Asks(
        _alone(user_questions.about_input), user_questions.NO_ANSWERS
    ),
    "mcpServer/elicitation/request": Asks(
        _alone(server_questions.about_server), server_frame.DECLINED
    ),
}
