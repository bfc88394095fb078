"""The world of a soak: an Agent with a real codex, threads, devices behind their lines."""

import random
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import trio

from tests.support.agents import client_info, pair_device
from tests.support.codex import CodexHome, codex_binaries
from tests.support.foreign import open_foreign
from tests.support.served_agent import ServedAgent, open_served_agent
from tests.support.soak_line import Line
from transport.client import Client, Target, open_client
from transport.errors import Refusal, TransportError, UnreachableError
from transport.keys import load_identity
from transport.protocol import admin
from transport.protocol.methods import GATEWAY_UNLOCK

THREADS: Final = 3


class World:
    """An Agent that is started whenever it has ended, its threads and its devices."""

    def __init__(self, home: CodexHome, version: str, seed: int) -> None:
        self.home = home
        self.version = version
        self.rng = random.Random(seed)  # noqa: S311 - a search, no secret
        self.agent: ServedAgent | None = None
        self.threads: list[str] = []
        self.targets: list[Target] = []
        self.lines: list[Line] = []
        self.up = trio.Event()
        self.over = False
        self.calm = False

    @property
    def foreign_codex(self) -> Path:
        """The file that other programs run."""
        return codex_binaries()[self.version]

    async def prepare(self) -> None:
        """Have threads that somebody else has made, and leases that end soon."""
        settings = (
            f'roots = ["{self.home.workspace}"]\nlisten = ["127.0.0.1:0"]\nidle_s = 2\n'
        )
        (self.home.home.parent / "threadgate.toml").write_text(settings)
        async with open_foreign(self.foreign_codex, self.home.environ) as first:
            for number in range(THREADS):
                text = f"thread {number}"
                thread = await first.start_thread(self.home.workspace, text)
                self.threads.append(thread)

    async def add_device(self, number: int, nursery: trio.Nursery) -> None:
        """Pair one, and lay its line."""
        assert self.agent is not None
        device = await pair_device(
            self.agent, scopes=("read", "write", "approve"), name=f"d{number}"
        )
        state = self.agent.state
        line = Line(state / "run" / "agent.sock", self.rng)
        serve = partial(trio.serve_tcp, line.carry, 0, host="127.0.0.1")
        listeners = await nursery.start(serve)
        port = listeners[0].socket.getsockname()[1]
        target = Target(
            url=f"tcp://127.0.0.1:{port}",
            agent_key=load_identity(state / "identity.key", create=False).public,
            identity=device.identity,
            psk=device.paired.psk,
        )
        self.targets.append(target)
        self.lines.append(line)

    async def keep_agent(self) -> None:
        """Start the Agent again whenever it has ended."""
        while not self.over:
            async with open_served_agent(self.home, version=self.version) as agent:
                self.agent = agent
                self.up.set()
                await agent.wait()
                self.up = trio.Event()

    @asynccontextmanager
    async def client(self, device: int) -> AsyncGenerator[Client]:
        """Connect as a device, as a client that is new each time."""
        info = client_info(f"soak{device}", f"{self.rng.getrandbits(128):032x}")
        async with open_client(self.targets[device], info) as client:
            yield client

    @asynccontextmanager
    async def owner(self) -> AsyncGenerator[Client]:
        """Connect at the workstation's own door; an Agent that just ends is no Agent."""
        info = client_info("owner", "o" * 32)
        async with AsyncExitStack() as stack:
            while True:
                await self.up.wait()
                assert self.agent is not None
                with suppress(UnreachableError):
                    opening = open_client(self.agent.admin, info)
                    owner = await stack.enter_async_context(opening)
                    break
                await trio.sleep(0.05)
            yield owner

    async def unlock(self) -> None:
        with suppress(TransportError, Refusal):
            async with self.owner() as owner:
                await owner.call(
                    GATEWAY_UNLOCK, admin.GatewayUnlockParams(), timeout_s=5
                )

    def be_calm(self) -> None:
        """Let nothing more be sent or harmed."""
        self.calm = True
        for line in self.lines:
            line.calm = True
