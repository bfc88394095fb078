"""How old what is on record is, by clocks that nobody can set. Sans-IO.

PROTOCOL.md section 3 (Request keys). The wall clock jumps: an hour back, days ahead, at
once. What is kept for a day must not be forgotten for that, and what is sent within a day
must not be sent later. So ages are counted in time that has surely passed, on the clock that goes on
while the machine sleeps; only how long it was switched off, the wall clock alone can say.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """What the clocks say, in ms. `boot`: names the machine's start, `up` counts from it."""

    wall: int
    boot: str
    up: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages:
    """Two counts of the same time, in ms, and when they were taken.

    `least` has only what surely passed: what it calls old is old. `most` has the time
    that the machine may have been switched off, too: what it calls young is young.
    """

    least: int
    most: int
    at: Instant

    @classmethod
    def begin(cls, now: Instant) -> "Ages":
        """Count from now on. Both begin as the wall clock says, which is easy to read."""
        return cls(least=now.wall, most=now.wall, at=now)

    def until(self, now: Instant) -> "Ages":
        """Return the counts as of now."""
        passed = maybe = now.up - self.at.up
        if now.boot != self.at.boot or passed < 0:
            passed = now.up  # it was off before, nobody knows for how long
            maybe = max(passed, now.wall - self.at.wall)
        return replace(self, least=self.least + passed, most=self.most + maybe, at=now)
