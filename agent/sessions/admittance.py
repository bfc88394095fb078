"""Who may knock, and how often. Sans-IO. SECURITY.md.

A handshake costs 0.4 ms and a slot; a stranger must not be able to use up either. What
is over a bound is closed without a word.
"""

from collections import Counter, OrderedDict
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

from agent.edge_limits import SOURCES

_V6_PREFIX: Final = 64  # one subscriber has at least so many bits to play with


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Connections before their first authenticated record, and new ones a second."""

    half_open: int = 32
    half_open_per_source: int = 8
    rate: float = 5.0
    burst: float = 10.0
    total_rate: float = 50.0
    total_burst: float = 50.0


class _Bucket:
    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._at = now

    def take(self, now: float) -> bool:
        grown = self._tokens + (now - self._at) * self._rate
        self._tokens = min(self._burst, grown)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class Admittance:
    """Counts strangers. `source` None: a socket of our own user, which has as many slots
    beside theirs: whoever floods the network keeps nobody out who comes by ssh."""

    def __init__(self, bounds: Bounds, *, now: float) -> None:
        self._bounds = bounds
        self._half_open: Counter[str | None] = Counter()
        self._total = _Bucket(bounds.total_rate, bounds.total_burst, now)
        self._sources: OrderedDict[str, _Bucket] = OrderedDict()

    @property
    def half_open(self) -> int:
        """How many shake hands now."""
        return self._half_open.total()

    @property
    def sources(self) -> int:
        """How many sources are remembered."""
        return len(self._sources)

    def enter(self, source: str | None, now: float) -> bool:
        """Let one in; whoever is let in must `leave` once it is known or gone."""
        own = self._half_open[None]
        taken = own if source is None else self.half_open - own
        if taken >= self._bounds.half_open:
            return False
        if source is not None and not self._source_may(source, now):
            return False
        self._half_open[source] += 1
        return True

    def leave(self, source: str | None) -> None:
        """Give the slot back."""
        self._half_open[source] -= 1
        if not self._half_open[source]:
            del self._half_open[source]

    def _source_may(self, source: str, now: float) -> bool:
        if self._half_open[source] >= self._bounds.half_open_per_source:
            return False
        bucket = self._sources.pop(source, None)
        if bucket is None:
            bucket = _Bucket(self._bounds.rate, self._bounds.burst, now)
        self._sources[source] = bucket  # the longest unseen is first
        while len(self._sources) > SOURCES:
            self._sources.popitem(last=False)
        return bucket.take(now) and self._total.take(now)


def source_of(host: str) -> str:
    """Return what counts as one source: an address, or the /64 of an IPv6 one."""
    address = ip_address(host.partition("%")[0])
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Address(int(address) >> _V6_PREFIX << _V6_PREFIX))
