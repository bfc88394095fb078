"""Doctor on the real codex: what it says of versions, configuration, other writers."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support.cli_runs import cli_environ, run_cli
from tests.support.codex import (
    BUNDLED,
    WITHOUT_LOCK,
    CodexHome,
    codex_binaries,
    open_codex_home,
)
from tests.support.foreign import open_foreign

pytestmark = pytest.mark.codex


async def examine(
    home: CodexHome, *args: str, version: str = BUNDLED
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Run `doctor --json`; return its exit code and its findings by name."""
    environ = {
        **cli_environ(home.home.parent / "state"),
        "CODEX_HOME": str(home.home),
        "THREADGATE_CODEX": str(codex_binaries()[version]),
    }
    ran = await run_cli("doctor", "--json", *args, environ=environ)
    assert ran.err == ""
    rows = json.loads(ran.out)["findings"]
    return ran.code, {row["name"]: row for row in rows}


def private(home: CodexHome) -> CodexHome:
    home.home.chmod(0o700)
    return home


@pytest.mark.parametrize("version", sorted(codex_binaries()))
async def test_on_a_sound_home_nothing_fails(version: str) -> None:
    with trio.fail_after(240):
        async with open_codex_home() as home:
            code, found = await examine(private(home), version=version)
    assert code == 0
    assert found["codex"]["text"].startswith(version)
    assert found["schema"]["level"] == "ok"
    assert found["codex home"]["level"] == "ok"
    assert found["approvals"]["level"] == "ok"
    locks = tuple(map(int, version.split("."))) >= (0, 147, 0)
    assert found["version"]["level"] == ("ok" if locks else "warn")
    assert found["sandbox"]["level"] in {"ok", "warn"}  # as this machine allows


async def test_a_config_that_decides_alone_and_hooks_are_named() -> None:
    extra = (
        "[[hooks.PermissionRequest]]\n[[hooks.PermissionRequest.hooks]]\n"
        'type = "command"\ncommand = "true"\n'
    )
    with trio.fail_after(240):
        async with open_codex_home(extra=extra) as home:
            _, found = await examine(private(home))
    assert found["approvals"]["level"] == "warn"
    assert "hooks on PermissionRequest" in found["approvals"]["text"]


async def test_other_codexes_and_the_threads_that_they_hold_are_named() -> None:
    binaries = codex_binaries()
    with trio.fail_after(240):
        async with open_codex_home() as home:
            private(home)
            async with open_foreign(binaries[BUNDLED], home.environ) as foreign:
                await foreign.start_thread(home.workspace, "hold it")
                _, found = await examine(home)
                assert found["writers"]["level"] == "ok"
                assert f"pid {foreign.pid}" in found["writers"]["text"]
                assert f"1 by pid {foreign.pid}" in found["locks"]["text"]
            if WITHOUT_LOCK in binaries:
                async with open_foreign(
                    binaries[WITHOUT_LOCK], home.environ
                ) as foreign:
                    _, found = await examine(home)
                    assert found["writers"]["level"] == "warn"


async def test_a_report_holds_none_of_our_paths() -> None:
    with trio.fail_after(240):
        async with open_codex_home() as home:
            _, found = await examine(home, "--report")
            text = json.dumps(found)
    assert str(home.home) not in text
    assert Path.home().name not in text.replace("<path>", "").split()
