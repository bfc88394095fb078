"""When a client comes back, and how long it waits before. Sans-IO. PROTOCOL.md section 1."""

from collections.abc import Callable

from transport.errors import (
    CloseCode,
    LocalProtocolError,
    PeerClosedError,
    Refusal,
    TransportError,
)
from transport.limits import BACKOFF_MAX_S, BACKOFF_S, STEADY_S

_FINAL_CODES = frozenset({CloseCode.REPLACED, CloseCode.REVOKED})


def comes_back(loss: BaseException) -> bool:
    """Whether a client reconnects by itself after this end of a session."""
    match loss:
        case PeerClosedError(code=code):
            return code not in _FINAL_CODES
        case Refusal():
            return loss.retryable
        case LocalProtocolError():
            return False
        case _:
            return isinstance(loss, TransportError)


class Backoff:
    """0.5 s, doubling to 30 s, each ± 50 % so that many clients do not come at once.

    `chance` returns a number in [0, 1).
    """

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._losses = 0

    def delay_s(
        self, loss: BaseException | None, *, lived_s: float, wanted_s: float = 0.0
    ) -> float:
        """Return how long to wait after a session that lived `lived_s`.

        `wanted_s`: what the Agent asked for when it closed.
        """
        if isinstance(loss, PeerClosedError) and loss.code is CloseCode.RENEW:
            self._losses = 0
            return 0.0
        if lived_s >= STEADY_S:
            self._losses = 0
        grown: float = min(BACKOFF_S * 2**self._losses, BACKOFF_MAX_S)
        if grown < BACKOFF_MAX_S:
            self._losses += 1
        return max(grown * (0.5 + self._chance()), wanted_s)
