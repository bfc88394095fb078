"""Everything that can go wrong does, at random, for a while; then nothing is wrong.

A real Agent with a real codex, devices behind lines that stall and break, and beside them
somebody who kills, stops and locks, opens desktops and works in the same threads. Which
things happen when comes from a seed; how they meet does not: a run is a search, and what
it finds deserves a small test of its own.
"""

import os
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.support.codex import locking_versions, open_codex_home
from tests.support.soak_checks import check, check_ended
from tests.support.soak_harm import Harm
from tests.support.soak_users import Users
from tests.support.soak_world import World

pytestmark = [pytest.mark.codex, pytest.mark.long]
SECONDS: Final = float(os.environ.get("THREADGATE_SOAK_S", "30"))
SEEDS: Final = [
    int(one) for one in os.environ.get("THREADGATE_SOAK_SEEDS", "1").split()
]
VERSION: Final = os.environ.get("THREADGATE_SOAK_CODEX") or locking_versions()[-1]
SENDERS: Final = 4
DEVICES: Final = 2


async def play(world: World, users: Users, harm: Harm) -> None:
    """Let everybody do their worst, and then let it be calm."""
    async with trio.open_nursery() as players:
        for number in range(SENDERS):
            send = partial(users.send, number % DEVICES)
            players.start_soon(users.forever_sending, send)
        players.start_soon(harm.serve)
        await trio.sleep(SECONDS)
        world.be_calm()
    await world.up.wait()
    await world.unlock()


@pytest.mark.parametrize("seed", SEEDS)
async def test_after_everything_at_once_nothing_is_lost_doubled_or_stuck(
    seed: int, tmp_path: Path
) -> None:
    with trio.fail_after(SECONDS + 400):
        async with open_codex_home() as home:
            world = World(home, VERSION, seed)
            users = Users(world)
            harm = Harm(world, users, tmp_path)
            await world.prepare()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(world.keep_agent)
                await world.up.wait()
                for number in range(DEVICES):
                    await world.add_device(number, nursery)
                    nursery.start_soon(users.forever, partial(users.watch, number))
                await play(world, users, harm)
                await check(world, users)
                print(f"done {dict(harm.done)}; told {dict(users.outcomes)}")
                world.over = True
                assert world.agent is not None
                await check_ended(world.agent)
                nursery.cancel_scope.cancel(reason="the test is over")
