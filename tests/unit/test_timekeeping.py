"""When a session is pinged and when its time is over, without waiting for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.edge_limits import OPEN_S
from agent.sessions.timekeeping import Due, Seen, Timekeeping
from transport.limits import SESSION_LIMITS

PING_S = SESSION_LIMITS.ping_ms / 1000
DEAD_S = SESSION_LIMITS.dead_ms / 1000
SESSION_S = SESSION_LIMITS.session_ms / 1000
BEGAN = 100.0


def seen(at: float, *, opened: bool = True) -> Seen:
    return Seen(heard_at=at, sent_at=at, opened=opened)


@pytest.mark.parametrize(
    ("after", "last", "due"),
    [
        (DEAD_S, 0.0, Due.DEAD),
        (SESSION_S, SESSION_S, Due.RENEW),
        (PING_S, 0.0, Due.PING),
        (PING_S, 1.0, None),
    ],
)
def test_what_is_due_of_an_open_session(
    after: float, last: float, due: Due | None
) -> None:
    time = Timekeeping(SESSION_LIMITS, now=BEGAN)
    assert time.due(BEGAN + after, seen(BEGAN + last)) is due


def test_who_does_not_open_is_closed_though_it_goes_on_talking() -> None:
    time = Timekeeping(SESSION_LIMITS, now=BEGAN)
    late = BEGAN + OPEN_S
    assert time.due(late, seen(late, opened=False)) is Due.UNOPENED
    assert time.due(late, seen(late)) is None


def test_a_ping_that_is_not_sent_yet_is_no_reason_for_another() -> None:
    time = Timekeeping(SESSION_LIMITS, now=BEGAN)
    now = BEGAN + PING_S
    assert (time.ping(now), time.due(now, seen(BEGAN))) == (1, None)


@given(
    heard=st.floats(0, 2 * SESSION_S),
    sent=st.floats(0, 2 * SESSION_S),
    opened=st.booleans(),
)
def test_nothing_is_due_before_the_next_look_and_something_is_then(
    heard: float, sent: float, opened: bool
) -> None:
    time = Timekeeping(SESSION_LIMITS, now=BEGAN)
    shows = Seen(heard_at=BEGAN + heard, sent_at=BEGAN + sent, opened=opened)
    look = time.next_look(shows)
    assert time.due(look, shows) is not None
    assert time.due(look - 0.001, shows) is None
