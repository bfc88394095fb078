"""A pairing offer: two minutes, three failures, one device."""

from agent.edge_limits import OFFER_FAILURES, OFFER_HANDSHAKES
from agent.pairing.offers import Offer, Phase, Suitor, Terms
from transport.identities import Secret
from transport.pairing import pairing_psk
from transport.protocol.gateway import Ceiling

SECRET = Secret(b"s" * 32)
TERMS = Terms(
    scopes=frozenset({"read"}),
    ceiling=Ceiling(sandbox="read-only", approval_policy=[], roots=[]),
    follows_threads=True,
    unattended=False,
)
SUITOR = Suitor(
    public=b"p" * 32,
    name="phone",
    check="012345",
    source="192.0.2.7",
    psk=Secret(b"k" * 32),
    known_revoked=False,
)


def offer() -> Offer:
    return Offer(SECRET, TERMS, now=100.0)


def test_a_handshake_gets_the_psk_of_the_secret() -> None:
    assert offer().begin_handshake(100.0) == pairing_psk(SECRET)


def test_after_two_minutes_there_is_silence() -> None:
    one = offer()
    assert one.begin_handshake(219.9) is not None
    assert one.begin_handshake(220.0) is None
    assert one.phase is Phase.ENDED
    assert one.secret() is None


def test_three_failed_handshakes_close_it() -> None:
    one = offer()
    for _ in range(OFFER_FAILURES):
        assert one.begin_handshake(100.0) is not None
        one.fail_handshake()
    assert one.phase is Phase.ENDED
    assert "failed" in one.why
    assert one.begin_handshake(100.0) is None


def test_two_failures_leave_it_open() -> None:
    one = offer()
    for _ in range(OFFER_FAILURES - 1):
        one.begin_handshake(100.0)
        one.fail_handshake()
    assert one.begin_handshake(100.0) is not None
    assert one.take(SUITOR, 100.0)


def test_at_most_three_handshakes_wait_at_once() -> None:
    one = offer()
    begun = [one.begin_handshake(100.0) is not None for _ in range(4)]
    assert begun == [True] * OFFER_HANDSHAKES + [False]


def test_the_first_device_takes_it_and_the_secret_is_gone() -> None:
    one = offer()
    one.begin_handshake(100.0)
    one.begin_handshake(100.0)
    assert one.take(SUITOR, 101.0)
    assert one.secret() is None
    assert not one.take(SUITOR, 101.0)
    assert one.begin_handshake(101.0) is None


def test_an_offer_that_expired_during_the_handshake_is_not_to_be_had() -> None:
    one = offer()
    one.begin_handshake(219.0)
    assert not one.take(SUITOR, 221.0)


def test_an_offer_that_was_taken_does_not_expire_under_its_device() -> None:
    one = offer()
    one.begin_handshake(219.0)
    assert one.take(SUITOR, 219.0)
    one.look(500.0)
    assert one.phase is Phase.TAKEN


def test_failures_of_others_do_not_end_an_offer_that_was_taken() -> None:
    one = offer()
    for _ in range(3):
        one.begin_handshake(100.0)
    assert one.take(SUITOR, 100.0)
    one.fail_handshake()
    one.fail_handshake()
    assert one.phase is Phase.TAKEN


def test_an_offer_that_has_ended_stays_ended() -> None:
    one = offer()
    one.end("closed")
    assert not one.take(SUITOR, 100.0)
    one.end("again")
    assert one.why == "closed"
