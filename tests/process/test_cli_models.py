"""`threadgate models`, for a person and for a program."""

import json
from pathlib import Path

import trio

from tests.support.agents import open_agent
from tests.support.cli_runs import cli_environ, run_cli


async def test_models_are_listed_with_their_efforts(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            environ = {
                **cli_environ(house.config.state_dir),
                "THREADGATE_RUNTIME_DIR": str(house.config.runtime_dir),
            }
            shown = await run_cli("models", environ=environ)
            told = await run_cli("models", "--json", environ=environ)
    assert shown.out.splitlines()[1].split() == ["*", "m-1", "M", "1", "low*"]
    assert json.loads(told.out)["models"][0]["id"] == "m-1"
