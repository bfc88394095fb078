"""A moment as a person types it, as ms since the epoch. Blocking I/O (reads the clock)."""

import re
from datetime import datetime, timedelta
from typing import Final

import typer

_AGO: Final = re.compile(r"(\d{1,6}) ?(s|m|min|h|d|w)")
_UNITS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_FORMS: Final = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S")


def read_moment(text: str, now: datetime | None = None) -> int:
    """Return when `2h` (ago), `14:30` (the last one) or `2026-11-30 14:30` was.

    `now`: with the person's time zone. Raises: typer.BadParameter.
    """
    now = now or datetime.now().astimezone()
    if ago := _AGO.fullmatch(text.strip()):
        then = now - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])
    elif (clock := _parsed(text, ("%H:%M",))) is not None:
        then = now.replace(hour=clock.hour, minute=clock.minute, second=0)
        then -= timedelta(days=1 if then > now else 0)
    elif (date := _parsed(text, _FORMS)) is not None:
        then = date.replace(tzinfo=now.tzinfo)
    else:
        raise typer.BadParameter(
            "say when: 2h, 45min or 3d ago, 14:30, 2026-11-30 or '2026-11-30 14:30'"
        )
    return round(then.timestamp() * 1000)


def _parsed(text: str, forms: tuple[str, ...]) -> datetime | None:
    for form in forms:
        try:
            return datetime.strptime(text.strip(), form)  # noqa: DTZ007 - the person's
        except ValueError:
            continue
    return None
