"""What is done to the Agent of a soak: kills, stops, locks, cuts, and other writers."""

import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import trio

from tests.support.fake_desktop import APP, open_program, place, shell
from tests.support.foreign import ForeignRefusedError, open_foreign
from tests.support.soak_users import Users
from tests.support.soak_world import World
from transport.errors import Refusal, TransportError
from transport.protocol import admin
from transport.protocol.methods import GATEWAY_LOCK

Act = tuple[int, str, Callable[[], Awaitable[None]]]  # weight, name, what it does


class Harm:
    """Does all kinds of it at random; counts what it has done."""

    def __init__(self, world: World, users: Users, folder: Path) -> None:
        self._world = world
        self._users = users
        self._folder = folder
        self._rng = world.rng
        self._ending = False
        self.done: Counter[str] = Counter()

    async def serve(self) -> None:
        """Go on until all is calm."""
        acts = self._acts()
        async with trio.open_nursery() as nursery:
            while not self._world.calm:
                weights = [one[0] for one in acts]
                _, name, act = self._rng.choices(acts, weights)[0]
                self.done[name] += 1
                nursery.start_soon(act)
                if self._rng.random() < 0.7:
                    await trio.sleep(self._rng.uniform(0, 1.6))
                else:
                    await trio.sleep(self._rng.uniform(0, 0.01))

    def _acts(self) -> list[Act]:
        acts: list[Act] = [
            (2, "kill agent", partial(self._end_agent, signal.SIGKILL)),
            (1, "end agent", partial(self._end_agent, signal.SIGTERM)),
            (2, "stop agent", self._stop_agent),
            (8, "kill codex", self._kill_codex),
            (4, "stop codex", self._stop_codex),
            (6, "desktop", self._desktop),
            (4, "other", self._other),
            (8, "cut", self._cut),
            (6, "stall", self._stall),
            (2, "lock", self._lock),
            (5, "interrupt", self._users.interrupt),
            (6, "take back", self._users.take_back),
        ]
        if only := os.environ.get("THREADGATE_SOAK_ONLY"):
            return [one for one in acts if one[1] in only.split(",")]
        return acts

    async def _end_agent(self, number: signal.Signals) -> None:
        await self._world.up.wait()
        if self._ending:
            return
        self._ending = True
        await trio.sleep(self._rng.uniform(0, 8))  # some life first
        agent = self._world.agent
        if agent is not None and agent.process.returncode is None:
            agent.signal(number)
        self._ending = False

    async def _stop_agent(self) -> None:
        agent = self._world.agent
        if agent is not None and agent.process.returncode is None:
            agent.signal(signal.SIGSTOP)
            await trio.sleep(self._rng.uniform(0, 1.0))
            with suppress(ProcessLookupError):
                agent.signal(signal.SIGCONT)

    def _a_codex(self) -> int | None:
        agent = self._world.agent
        if agent is None or agent.process.returncode is not None:
            return None
        found = agent.app_servers()
        return self._rng.choice(found) if found else None

    async def _kill_codex(self) -> None:
        await trio.sleep(self._rng.uniform(0, 0.3))
        pid = self._a_codex()
        number = self._rng.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
        with suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, number)

    async def _stop_codex(self) -> None:
        pid = self._a_codex()
        with suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, signal.SIGSTOP)
                try:
                    await trio.sleep(self._rng.uniform(0, 3.0))
                finally:
                    os.kill(pid, signal.SIGCONT)

    async def _desktop(self) -> None:
        path = place(self._folder / f"{self._rng.randrange(3)}", APP)
        for _ in range(self._rng.choice([1, 1, 3])):
            async with open_program(shell(path), self._world.home.environ):
                await trio.sleep(self._rng.choice([0, 0.005, 0.05, 0.3, 1.0]))
            await trio.sleep(self._rng.choice([0, 0.02, 0.2]))

    async def _other(self) -> None:
        """Another codex wants a thread: it has it for a moment, or is refused."""
        thread = self._rng.choice(self._world.threads)
        with suppress(ForeignRefusedError):
            home, codex = self._world.home, self._world.foreign_codex
            async with open_foreign(codex, home.environ) as other:
                await trio.sleep(self._rng.choice([0, 0.002, 0.1]))
                await other.resume(thread)
                if self._rng.random() < 0.6:
                    self.done["foreign turn"] += 1
                    with trio.move_on_after(10):
                        await other.turn(thread, f"f{self.done['foreign turn']}f said")
                if self._rng.random() < 0.3:
                    other.process.kill()

    async def _cut(self) -> None:
        await trio.sleep(self._rng.uniform(0, 0.1))
        self._rng.choice(self._world.lines).cut()

    async def _stall(self) -> None:
        await self._rng.choice(self._world.lines).stall(self._rng.uniform(0, 2.5))

    async def _lock(self) -> None:
        with suppress(TransportError, Refusal):
            async with self._world.owner() as owner:
                stop = self._rng.random() < 0.5
                await owner.call(
                    GATEWAY_LOCK, admin.GatewayLockParams(stop=stop), timeout_s=5
                )
        await trio.sleep(self._rng.uniform(0, 1))
        await self._world.unlock()
