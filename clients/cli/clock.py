"""Times and durations as people say them. Sans-IO: now and the time zone are arguments."""

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

_SECOND: Final = 1_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A moment and a place: `now` in ms since the epoch, zone of the person."""

    now: int
    zone: tzinfo = UTC

    def time(self, at: int) -> str:
        """Return `14:02`, with the date in front on another day; `no date` for none.

        What is told from afar can be any number.
        """
        try:
            then = datetime.fromtimestamp(at / 1000, self.zone)
        except (ValueError, OverflowError, OSError):
            return "no date"
        today = datetime.fromtimestamp(self.now / 1000, self.zone)
        same = then.date() == today.date()
        return then.strftime("%H:%M" if same else "%Y-%m-%d %H:%M")

    def ago(self, at: int) -> str:
        """Return how long ago, in one unit: `now`, `12 s`, `3 min`, `2 h`, `5 d`."""
        passed = self.now - at
        if passed < _SECOND:
            return "now"
        for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
            if passed >= unit:
                return f"{passed // unit} {name}"
        return f"{passed // _SECOND} s"

    def left(self, at: int) -> str:
        """Return how long until then, `no time` when it is past."""
        return duration(at - self.now) if at > self.now else "no time"


def duration(ms: int) -> str:
    """Return `0.3 s`, `12 s`, `3 min 4 s` or `2 h 5 min`."""
    if ms < 10 * _SECOND:
        return f"{ms / _SECOND:.1f} s".replace(".0 s", " s")
    if ms < _MINUTE:
        return f"{ms // _SECOND} s"
    if ms < _HOUR:
        minutes, seconds = divmod(ms // _SECOND, 60)
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(ms // _MINUTE, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
