"""Whoever comes back, at any point and with any cursor, shows what one shows who stayed.

The whole stack in memory: the fake runtime, the real door and edge, Noise, the real client
library. Hypothesis says what happens, and when and where connections are cut.
"""

import tempfile
from functools import partial
from pathlib import Path

import pytest
import trio
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from trio.testing import MockClock

from tests.support.resume_machine import Coming
from tests.support.resume_world import Worlds


async def _explore(examples: int, steps: int, clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        with tempfile.TemporaryDirectory() as folder:

            class Machine(Coming):
                worlds = Worlds(Path(folder), clock, nursery)

            bounds = settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                phases=[Phase.generate],  # shrinking would take minutes
                print_blob=False,
                suppress_health_check=[HealthCheck.too_slow],
            )
            try:
                await trio.to_thread.run_sync(
                    partial(run_state_machine_as_test, Machine, settings=bounds)
                )
            finally:
                clock.autojump_threshold = 0  # what ends may take its time


def test_whoever_comes_back_shows_what_one_shows_who_stayed() -> None:
    clock = MockClock()
    trio.run(_explore, 6, 25, clock, clock=clock)


@pytest.mark.long
def test_whoever_comes_back_after_long_stories_shows_the_same() -> None:
    clock = MockClock()
    trio.run(_explore, 60, 50, clock, clock=clock)
