"""When a client comes back, and after how long. PROTOCOL.md section 1."""

import pytest

from transport.errors import (
    CloseCode,
    Forbidden,
    LocalProtocolError,
    Overloaded,
    PeerClosedError,
    RemoteProtocolError,
    SilentAgentError,
    TruncatedError,
    UnreachableError,
    UnsupportedProtocol,
)
from transport.limits import STEADY_S
from transport.reconnect import Backoff, comes_back

LOSS = TruncatedError("cut")


@pytest.mark.parametrize("code", CloseCode)
def test_only_a_replaced_or_revoked_client_stays_away(code: CloseCode) -> None:
    stays_away = code in {CloseCode.REPLACED, CloseCode.REVOKED}
    assert comes_back(PeerClosedError(code, 0)) is not stays_away


def test_a_client_comes_back_after_a_code_of_a_newer_agent() -> None:
    assert comes_back(PeerClosedError(None, 77))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (TruncatedError(""), True),
        (RemoteProtocolError(""), True),
        (UnreachableError(""), True),
        (SilentAgentError(""), True),
        (Overloaded(""), True),
        (UnsupportedProtocol(""), False),
        (Forbidden(""), False),
        (LocalProtocolError(""), False),
        (ValueError(""), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_a_client_comes_back_where_it_can_help(
    loss: BaseException, expected: bool
) -> None:
    assert comes_back(loss) is expected


def delays(backoff: Backoff, count: int) -> list[float]:
    return [backoff.delay_s(LOSS, lived_s=0) for _ in range(count)]


def test_the_wait_doubles_from_half_a_second_to_thirty() -> None:
    expected = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert delays(Backoff(lambda: 0.5), 9) == expected


def test_the_wait_is_spread_by_half_either_way() -> None:
    assert delays(Backoff(lambda: 0.0), 1) == [0.25]
    assert delays(Backoff(lambda: 0.999_999), 1) == [pytest.approx(0.75)]


def test_a_session_that_lived_starts_anew_and_one_that_flaps_does_not() -> None:
    backoff = Backoff(lambda: 0.5)
    delays(backoff, 4)
    assert backoff.delay_s(LOSS, lived_s=STEADY_S - 1) == 8
    assert backoff.delay_s(LOSS, lived_s=STEADY_S) == 0.5


def test_a_renewal_is_at_once_and_forgives_what_was() -> None:
    backoff = Backoff(lambda: 0.5)
    delays(backoff, 4)
    assert backoff.delay_s(PeerClosedError(CloseCode.RENEW, 4), lived_s=0) == 0
    assert backoff.delay_s(LOSS, lived_s=0) == 0.5


def test_an_agent_can_ask_for_a_longer_wait() -> None:
    assert Backoff(lambda: 0.5).delay_s(LOSS, lived_s=0, wanted_s=12) == 12
