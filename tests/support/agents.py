"""A whole Agent on real sockets, with a runtime that the test plays.

`open_agent` runs `agent.app.run_agent` in this process; `Owner` is the person at the
workstation (admin.sock), `pair_device` makes a device that has a key of its own.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import trio

from adapter.runtime.runtime import Runtime
from agent.app import Running, run_agent
from agent.config import Config
from agent.gate.writers import Watch
from tests.support.door import FakeWatch
from tests.support.fake_runtime import FakeRuntime
from transport.background import open_background
from transport.client import (
    AdminTarget,
    Client,
    Paired,
    Target,
    open_client,
    pair,
)
from transport.identities import PrivateKey
from transport.pairing import parse_pairing_text
from transport.protocol import admin
from transport.protocol.methods import PAIR_AWAIT, PAIR_DECIDE, PAIR_OPEN
from transport.protocol.session import ClientInfo


def client_info(name: str = "test", instance: str = "i" * 32) -> ClientInfo:
    return ClientInfo(name=name, version="1", platform="linux", instance=instance)


def make_config(folder: Path, **settings: Any) -> Config:
    """Return settings whose folders all lie in the test's own."""
    return Config.model_validate(
        {
            "state_dir": folder / "state",
            "runtime_dir": folder / "run",
            "codex_home": folder / "codex",
            "name": "bench",
            "listen": ["127.0.0.1:0"],
            **settings,
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """A running Agent and what it runs on."""

    running: Running
    runtime: FakeRuntime
    watch: FakeWatch
    config: Config

    @property
    def admin(self) -> AdminTarget:
        return AdminTarget(path=self.running.admin_path)

    def target(self, device: "Device", *, carrier: str = "tcp") -> Target:
        url = (
            self.running.tcp[0]
            if carrier == "tcp"
            else f"unix://{self.running.agent_path}"
        )
        return Target(
            url=url,
            agent_key=self.running.agent_key,
            identity=device.identity,
            psk=device.paired.psk,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A paired device: its key and what pairing gave it."""

    identity: PrivateKey
    paired: Paired

    @property
    def id(self) -> str:
        return self.paired.device.id


@asynccontextmanager
async def open_agent(
    folder: Path,
    *,
    runtime: Runtime | None = None,
    watch: Watch | None = None,
    **settings: Any,
) -> AsyncGenerator[House]:
    """Run an Agent for the length of the block; leaving cancels it."""
    config = make_config(folder, **settings)
    fake = runtime if isinstance(runtime, FakeRuntime) else FakeRuntime()
    look = watch if isinstance(watch, FakeWatch) else FakeWatch()

    async def run(*, task_status: trio.TaskStatus[Running]) -> None:
        await run_agent(
            config,
            runtime=runtime or fake,
            watch=watch or look,
            harden=False,
            task_status=task_status,
        )

    async with open_background(run) as running:
        yield House(running=running, runtime=fake, watch=look, config=config)


class Doored(Protocol):
    """A running Agent, wherever it runs."""

    @property
    def admin(self) -> AdminTarget:
        """The workstation's own door."""
        ...


async def pair_device(
    house: Doored,
    *,
    scopes: Sequence[str] = ("read",),
    only: Sequence[Path] | None = None,
    name: str = "phone",
    identity: PrivateKey | None = None,
) -> Device:
    """Pair a device as a person does: text across, numbers compared, yes."""
    key = identity or PrivateKey.generate()
    shown: list[str] = []
    paired: list[Paired] = []
    async with open_client(house.admin, client_info("owner")) as owner:
        params: dict[str, object] = {"scopes": list(scopes)}
        if only is not None:
            params["only"] = [str(folder) for folder in only]
        offer = await owner.call(PAIR_OPEN, admin.PairOpenParams.model_validate(params))

        async def carry_over() -> None:
            paired.append(
                await pair(
                    parse_pairing_text(offer.text),
                    identity=key,
                    name=name,
                    client=client_info(),
                    on_check=shown.append,
                )
            )

        async with trio.open_nursery() as nursery:
            nursery.start_soon(carry_over)
            seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams(), timeout_s=60)
            assert seen.candidate is not None, seen
            decide = admin.PairDecideParams(accept=True, check=seen.candidate.check)
            await owner.call(PAIR_DECIDE, decide)
    assert shown == [seen.candidate.check], "both screens show the same number"
    return Device(identity=key, paired=paired[0])


@asynccontextmanager
async def open_owner(house: House) -> AsyncGenerator[Client]:
    """Connect as the person at the workstation."""
    async with open_client(house.admin, client_info("owner", "o" * 32)) as owner:
        yield owner
