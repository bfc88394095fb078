"""One pairing offer's life: open, taken, decided. Sans-IO.

PROTOCOL.md section 1 (Pairing), SECURITY.md. Times are seconds of a clock that goes on
while the machine sleeps: an offer on a closed laptop must not be good an hour later.
"""

from dataclasses import dataclass
from enum import StrEnum

from agent.edge_limits import OFFER_FAILURES, OFFER_HANDSHAKES, OFFER_S
from agent.pairing.device_records import Device
from transport.identities import Secret, fingerprint
from transport.pairing import pairing_psk
from transport.protocol.admin import PairAwaitResult, PairCandidate
from transport.protocol.gateway import Ceiling


class Phase(StrEnum):
    """Where an offer is; it never goes back."""

    OPEN = "open"
    TAKEN = "taken"
    PAIRED = "paired"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a device gets if its owner says yes."""

    scopes: frozenset[str]
    ceiling: Ceiling
    follows_threads: bool
    unattended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Suitor:
    """The device that took the offer. `check`: six digits, on both screens.

    `psk`: what it will be known by, derived from this one handshake.
    """

    public: bytes
    name: str
    check: str
    source: str
    psk: Secret
    known_revoked: bool


class Offer:
    """Good for 120 s, three failed handshakes, one device."""

    def __init__(self, secret: Secret, terms: Terms, *, now: float) -> None:
        self.terms = terms
        self.phase = Phase.OPEN
        self.suitor: Suitor | None = None
        self.device: Device | None = None
        self.why = ""
        self.expires_at = now + OFFER_S
        self._secret: Secret | None = secret
        self._shaking = 0
        self._failures = 0

    @property
    def over(self) -> bool:
        """Whether nothing more can come of it."""
        return self.phase in (Phase.PAIRED, Phase.ENDED)

    def look(self, now: float) -> None:
        """Let it expire, if it is time. A device that took it has its own deadline."""
        if self.phase is Phase.OPEN and now >= self.expires_at:
            self.end("Nobody came within two minutes.")

    def begin_handshake(self, now: float) -> bytes | None:
        """Return the psk of one pairing handshake; None: silence.

        What it began must be told: `fail_handshake`, or `take`.
        """
        self.look(now)
        if self.phase is not Phase.OPEN or self._shaking >= OFFER_HANDSHAKES:
            return None
        assert self._secret is not None
        self._shaking += 1
        return pairing_psk(self._secret)

    def fail_handshake(self) -> None:
        """Count one that came to nothing."""
        self._shaking -= 1
        self._failures += 1
        if self._failures >= OFFER_FAILURES and self.phase is Phase.OPEN:
            self.end("Three handshakes failed: a wrong text, or somebody guesses.")

    def secret(self) -> Secret | None:
        """Return the secret, while there is one."""
        return self._secret

    def take(self, suitor: Suitor, now: float) -> bool:
        """Give the offer to this device; False where it is not to be had any more."""
        self._shaking -= 1
        self.look(now)
        if self.phase is not Phase.OPEN:
            return False
        self.phase = Phase.TAKEN
        self.suitor = suitor
        self._secret = None
        return True

    def accept(self, device: Device) -> None:
        """Note that the device exists now."""
        if self.phase is Phase.TAKEN:
            self.phase = Phase.PAIRED
            self.device = device

    def end(self, why: str) -> None:
        """End it without a device; no effect on one that is over."""
        if not self.over:
            self.phase = Phase.ENDED
            self.why = why
            self._secret = None


def outcome_of(offer: Offer) -> PairAwaitResult:
    """Return the offer as its owner is told of it."""
    match offer.phase:
        case Phase.PAIRED:
            assert offer.device is not None
            return PairAwaitResult(
                outcome="paired", device=offer.device.row(sessions=0)
            )
        case Phase.TAKEN:
            assert offer.suitor is not None
            return PairAwaitResult(
                outcome="candidate", candidate=_candidate(offer.suitor, offer.terms)
            )
        case Phase.OPEN | Phase.ENDED:
            return PairAwaitResult(outcome="ended", why=offer.why)


def _candidate(suitor: Suitor, terms: Terms) -> PairCandidate:
    return PairCandidate(
        name=suitor.name,
        fingerprint=fingerprint(suitor.public),
        check=suitor.check,
        source=suitor.source,
        scopes=sorted(terms.scopes),
        ceiling=terms.ceiling,
        follows_threads=terms.follows_threads,
        known_revoked=suitor.known_revoked,
    )
