"""The scripted model against the real codex: what the demo and all e2e tests stand on."""

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.support.codex import CodexHome, codex_binaries, open_codex_home


async def _exec(codex: Path, home: CodexHome, text: str) -> str:
    done = await trio.run_process(
        [str(codex), "exec", "--skip-git-repo-check", "--json", text],
        env=home.environ,
        cwd=home.workspace,
        capture_stdout=True,
        stderr=subprocess.DEVNULL,
        stdin=b"",
    )
    return done.stdout.decode()


@pytest.mark.parametrize("version", sorted(codex_binaries()))
async def test_codex_runs_a_turn_against_the_scripted_model(version: str) -> None:
    with trio.fail_after(240):
        async with open_codex_home() as home:
            run = partial(_exec, codex_binaries()[version], home)
            out = await run("SCRIPT:" + json.dumps([[{"msg": "well met"}]]))
            assert "well met" in out
            assert any("SCRIPT:" in t for t in home.model.requests[-1].user_texts)
