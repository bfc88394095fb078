"""How many descriptors there are, and for whom: arithmetic, limits, what is held back."""

import errno
import os
import subprocess
import sys
from typing import Any

import pytest

from agent.config import Doors
from agent.edge_limits import (
    DESCRIPTORS,
    LOCAL_SESSIONS,
    OWN_DESCRIPTORS,
    OWNER_SPARES,
)
from agent.sessions.session_table import sessions_within
from agent.sessions.spares import Spares

DOORS = Doors()


@pytest.mark.parametrize(
    ("descriptors", "wanted", "sessions"),
    [
        (DESCRIPTORS, DOORS.sessions, DOORS.sessions),
        (DESCRIPTORS, 4_096, 416),
        (256, DOORS.sessions, 32),
        (64, DOORS.sessions, 8),
        (4, DOORS.sessions, 1),
        (sys.maxsize, 4_096, 4_096),
        (DESCRIPTORS, 3, 3),
    ],
)
def test_devices_have_sessions_so_that_descriptors_are_left_for_the_rest(
    descriptors: int, wanted: int, sessions: int
) -> None:
    found = sessions_within(descriptors, wanted=wanted, half_open=DOORS.half_open)
    assert found == sessions
    if descriptors >= 256:
        assert 2 * found + DOORS.half_open + OWN_DESCRIPTORS <= descriptors
    assert OWN_DESCRIPTORS > LOCAL_SESSIONS


def test_strangers_who_are_let_in_in_crowds_leave_devices_their_sessions() -> None:
    assert sessions_within(DESCRIPTORS, wanted=256, half_open=1_024) == 256


LOOK = """
import resource, sys
from agent.hardening import descriptors, raise_descriptors
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
raise_descriptors()
print(descriptors(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "after"),
    [
        (256, 2_048, DESCRIPTORS),  # as on macOS, and in launchd
        (256, 512, 512),
        (DESCRIPTORS, 2_048, DESCRIPTORS),
        (2_000, 2_048, 2_000),  # whoever has more keeps it
    ],
)
def test_the_soft_limit_is_raised_as_far_as_children_can_bear(
    soft: int, hard: int, after: int
) -> None:
    assert DESCRIPTORS <= 1_024, "select() of a child writes past its tables above it"
    told = subprocess.run(
        [sys.executable, "-c", LOOK, str(soft), str(hard)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert told.stdout.split() == [str(after), str(after), str(hard)]


def test_spares_are_let_go_one_by_one_and_held_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = len(os.listdir("/dev/fd"))
    spares = Spares(OWNER_SPARES)
    assert len(os.listdir("/dev/fd")) == before + OWNER_SPARES
    assert [spares.give_up() for _ in range(OWNER_SPARES + 1)] == [
        *[True] * OWNER_SPARES,
        False,
    ]
    with monkeypatch.context() as full:

        def no_room(*_args: Any) -> int:
            raise OSError(errno.EMFILE, "too many open files")

        full.setattr(os, "open", no_room)
        spares.lay_in()
        assert len(spares) == 0
    spares.lay_in()
    assert len(spares) == OWNER_SPARES
    spares.close()
    spares.lay_in()
    assert len(os.listdir("/dev/fd")) == before
