"""Pairing and revoking devices against an Agent that says what the test tells it."""

from pathlib import Path

import pytest

from clients.cli import (
    devices,
)
from clients.cli.doors import open_local
from clients.cli.exits import FailedError, UsageProblemError
from clients.cli.pairing import offer
from tests.support import cli_samples as samples
from tests.support.cli_runs import paper, printed
from tests.support.fake_agent import Answer, Frame, fake
from transport.protocol.admin import (
    DeviceListResult,
    DeviceResult,
    PairAwaitResult,
    PairCandidate,
    PairDecideResult,
    PairOpenParams,
    PairOpenResult,
)
from transport.protocol.base import WireModel


def came(_: Frame) -> WireModel:
    return PairAwaitResult(outcome="candidate", candidate=samples.candidate())


def offered(_: Frame) -> WireModel:
    return PairOpenResult(text="TGATE:ABC", expires_at=samples.NOON + 120_000)


@pytest.mark.parametrize("accept", [True, False])
async def test_pairing_asks_and_repeats_the_check_number(
    state: Path, accept: bool
) -> None:
    asked: list[PairCandidate] = []

    async def ask(candidate: PairCandidate) -> bool:
        asked.append(candidate)
        return accept

    def decided(params: Frame) -> WireModel:
        row = samples.device() if params["accept"] else None
        return PairDecideResult(device=row)

    screen = paper()
    answers: dict[str, Answer] = {
        "pair_open": offered,
        "pair_await": came,
        "pair_decide": decided,
    }
    async with fake(state, **answers) as agent, open_local() as client:
        if accept:
            device = await offer(screen, client, PairOpenParams(), ask)
            assert device == samples.device()
        else:
            with pytest.raises(FailedError, match="not paired"):
                await offer(screen, client, PairOpenParams(), ask)
    assert asked == [samples.candidate()]
    assert agent.called("pair/decide") == [{"accept": accept, "check": "012345"}]
    assert "TGATE:ABC" in printed(screen)
    assert "012 345" in printed(screen)


async def test_devices_are_revoked_by_a_beginning_or_a_name_never_by_chance(
    state: Path,
) -> None:
    rows = [
        samples.device("0a1b2c3d4e5f6071", "phone"),
        samples.device("ffff2c3d4e5f6071", "0a1b2c3d4e5f6071"),
        samples.device("eeee2c3d4e5f6071", "laptop"),
    ]
    listed = DeviceListResult(devices=rows)
    result = DeviceResult(device=rows[2])
    answers: dict[str, Answer] = {
        "device_list": lambda _: listed,
        "device_revoke": lambda _: result,
    }
    async with fake(state, **answers) as agent:
        await devices.revoke(paper(), device="laptop", stop=False)
        await devices.revoke(paper(), device="0a1b2c", stop=True)
        with pytest.raises(UsageProblemError, match="several devices"):
            await devices.revoke(paper(), device="0a1b2c3d4e5f6071", stop=False)
    revoked = [
        (p["deviceId"], p.get("stop", False)) for p in agent.called("device/revoke")
    ]
    assert revoked == [("eeee2c3d4e5f6071", False), ("0a1b2c3d4e5f6071", True)]
