"""Models, capabilities and warnings of real codex, of every version that is here."""

import shutil

import pytest
import trio

from adapter.calls.capabilities import FEATURES
from adapter.processes.binary import Codex
from tests.support.codex import codex_binaries, each_version, open_codex_home
from tests.support.real_agent import open_local, open_real_agent
from tests.support.runtimes import open_codex_runtime
from transport.protocol import capabilities, gateway
from transport.protocol.capabilities import CapabilityStatus
from transport.protocol.methods import (
    GATEWAY_CAPABILITIES,
    GATEWAY_STATUS,
    METHODS,
    MODEL_LIST,
)

pytestmark = pytest.mark.codex
LATER = {"review/start", "thread/revert", "codexQueue"}  # since 0.163
LATER_THAN_0_144 = {"thread/find"}


@pytest.mark.parametrize("version", sorted(codex_binaries()))
async def test_what_codex_offers_is_asked_of_it(version: str) -> None:
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=version) as house,
            open_local(house) as client,
        ):
            answer = await client.call(
                GATEWAY_CAPABILITIES, capabilities.CapabilitiesParams()
            )
            rows = {row.feature: row for row in answer.rows}
            expected = {one.name for one in FEATURES} | {"threadLocks"}
            assert set(rows) == {n for n in expected if "/" not in n or n in METHODS}
            old = tuple(map(int, version.split("."))) < (0, 163, 0)
            lacking = {
                name
                for name, row in rows.items()
                if row.status is CapabilityStatus.UNAVAILABLE
            }
            later = LATER if old else set[str]()
            if version.startswith("0.144."):
                later = later | LATER_THAN_0_144
            assert lacking - {"threadLocks"} == later & set(rows)
            found = await client.call(MODEL_LIST, capabilities.ModelListParams())
            assert sum(model.is_default for model in found.models) == 1
            assert all(model.efforts for model in found.models)


@pytest.mark.parametrize("version", sorted(codex_binaries()))
async def test_a_config_that_decides_alone_is_warned_of(version: str) -> None:
    with trio.fail_after(240):
        async with open_codex_home() as home:
            path = home.home / "config.toml"
            added = 'approvals_reviewer = "auto_review"\n'
            path.write_text(added + path.read_text())
            async with (
                open_real_agent(home, version=version) as house,
                open_local(house) as client,
            ):
                warnings: list[str] = []
                while not warnings:
                    params = gateway.GatewayStatusParams()
                    warnings = (await client.call(GATEWAY_STATUS, params)).warnings
                assert "approvalsDecidedLocally" in warnings


@each_version
async def test_a_sandbox_that_does_not_start_is_noticed(version: str) -> None:
    """A codex that was copied without what lies beside it cannot start one."""
    whole = codex_binaries()[version]
    with trio.fail_after(240):
        async with open_codex_home() as home:
            alone = home.home.parent / "alone" / "codex"
            alone.parent.mkdir()
            shutil.copyfile(whole, alone)
            alone.chmod(0o700)
            for path in (whole, alone):
                codex = Codex(path=path, version=version)
                async with open_codex_runtime(codex, home.home) as run:
                    fault = await run.reader.sandbox_fault()
                    assert (fault is None) is (path == whole)
