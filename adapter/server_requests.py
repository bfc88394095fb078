"""Every kind of request that Codex's app-server sends to its client. Sans-IO.

PROTOCOL.md section 5. Two kinds are asked to a person; every other one is refused at
once in its own legal shape, so that no turn ever waits for us. A kind that we do not know
gets an error: silence would hang the turn.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from transport.protocol.approvals import ApprovalKind

Result = Mapping[str, Any]

NOT_SUPPORTED: Final = -32601  # JSON-RPC 2.0: method not found


@dataclass(frozen=True, slots=True)
class Asks:
    """A person is asked; see `adapter/questions.py`."""

    kind: ApprovalKind


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
    "item/commandExecution/requestApproval": Asks(ApprovalKind.COMMAND),
    "item/fileChange/requestApproval": Asks(ApprovalKind.FILE_CHANGE),
    "item/permissions/requestApproval": Refuses(
        _always({"permissions": {}, "scope": "turn"}), "more permissions"
    ),
    "item/tool/call": Refuses(_always(_TOOL_FAILED), "a tool of its client"),
    "item/tool/requestUserInput": Refuses(_always({"answers": {}}), "a question"),
    "mcpServer/elicitation/request": Refuses(
        _always({"action": "decline", "content": None}), "a question of an MCP server"
    ),
}

DECLINED: Final[Result] = {"decision": "decline"}
"""The refusal of both kinds that are asked: the turn goes on."""
