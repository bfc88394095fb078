"""How long a client waits for an answer, and what it may ask again. Sans-IO."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from transport.errors import OutcomeUnknown, Refusal, Timeout
from transport.limits import CALL_S, MUTATION_S, OWNER_S, PAIR_AWAIT_S
from transport.protocol.methods import (
    AUDIT_LIST,
    DEVICE_GRANT,
    DEVICE_LIST,
    DEVICE_REVOKE,
    EVENTS_SUBSCRIBE,
    GATEWAY_LOCK,
    GATEWAY_UNLOCK,
    PAIR_AWAIT,
    PAIR_DECIDE,
    PAIR_OPEN,
    PAIRING_CONFIRM,
    SESSION_OPEN,
    Access,
    Method,
)

# What the client does by itself, and nobody else.
OWN: Final = frozenset({SESSION_OPEN.name, EVENTS_SUBSCRIBE.name, PAIRING_CONFIRM.name})
# The offer ends with the connection that opened it: asking again makes no sense.
TIED: Final = frozenset({PAIR_OPEN.name, PAIR_AWAIT.name, PAIR_DECIDE.name})
# What the owner does. It may wait for what devices have begun; twice is as good as once.
OWNERS: Final = frozenset(
    {DEVICE_GRANT.name, DEVICE_REVOKE.name, GATEWAY_LOCK.name, GATEWAY_UNLOCK.name}
)
_NAMED: Final = ("requestKey", "threadId")
_HARMLESS: Final = frozenset({Access.SESSION, Access.READ})
_OWNERS_READS: Final = frozenset({AUDIT_LIST.name, DEVICE_LIST.name, PAIR_AWAIT.name})


@dataclass(slots=True)
class Sent:
    """Whether the Agent may have got a request."""

    maybe: bool = False

    def note(self) -> None:
        """From now on it may arrive."""
        self.maybe = True


def patience_s_of(method: Method[Any, Any], body: Mapping[str, Any]) -> float:
    """Return the default patience for a call, with what its `waitMs` asks for."""
    if method.name == PAIR_AWAIT.name:
        return PAIR_AWAIT_S
    if method.name in OWNERS:
        return OWNER_S
    base_s = MUTATION_S if method.access is Access.WRITE else CALL_S
    wait_ms: int = body.get("waitMs", 0)
    return base_s + wait_ms / 1000


def gave_up(
    method: Method[Any, Any], body: Mapping[str, Any], patience_s: float, *, sent: bool
) -> Refusal:
    """Return what to raise when patience has ended; `sent`: it may have arrived."""
    harmless = method.access in _HARMLESS or method.name in _OWNERS_READS
    if not sent or harmless:
        return Timeout(f"{method.name}: no answer within {patience_s:g} s.")
    named = {key: body[key] for key in _NAMED if key in body}
    return OutcomeUnknown(
        f"{method.name} was sent, and no answer came within {patience_s:g} s: it may "
        f"have happened. {_advice(method, body)}",
        data={"method": method.name, **named},
    )


def _advice(method: Method[Any, Any], body: Mapping[str, Any]) -> str:
    if method.name in OWNERS:
        return "It may be asked for again."
    if "requestKey" in body:
        return "Look first; only the same requestKey may be sent again."
    return "Look first."
