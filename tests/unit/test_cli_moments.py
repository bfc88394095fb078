"""When somebody means by what they type."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
import typer

from clients.cli.moments import read_moment

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("90s", datetime(2026, 12, 1, 10, 58, 30, tzinfo=UTC)),
        ("45min", datetime(2026, 12, 1, 10, 15, tzinfo=UTC)),
        ("2h", datetime(2026, 12, 1, 9, 0, tzinfo=UTC)),
        ("3 d", datetime(2026, 11, 28, 11, 0, tzinfo=UTC)),
        ("09:30", datetime(2026, 12, 1, 8, 30, tzinfo=UTC)),
        ("23:30", datetime(2026, 11, 30, 22, 30, tzinfo=UTC)),  # that was yesterday
        ("2026-11-30", datetime(2026, 11, 29, 23, 0, tzinfo=UTC)),
        ("2026-11-30 14:30", datetime(2026, 11, 30, 13, 30, tzinfo=UTC)),
    ],
)
def test_a_moment_is_read_as_a_person_means_it(text: str, meant: datetime) -> None:
    assert read_moment(text, NOW) == round(meant.timestamp() * 1000)


@pytest.mark.parametrize("text", ["", "yesterday", "-2h", "2", "25:00", "30.11.2026"])
def test_what_is_no_moment_is_a_usage_error(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="say when"):
        read_moment(text, NOW)
