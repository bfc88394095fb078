"""compact, review and revert, typed on the real codex."""

import re

import pytest
import trio

from clients.cli.demo_stage import open_stage
from clients.cli.exits import ExitCode
from clients.cli.scripted_answers import Rule
from tests.support.cli_runs import paper

pytestmark = [pytest.mark.codex, pytest.mark.usefixtures("warm_actors")]
RULES = [
    Rule("CONTEXT CHECKPOINT", [[{"msg": "They named breads."}]]),
    Rule("Look at the oven.", [[{"msg": "The door is open."}]]),
]
TURN = re.compile(r"as turn (\S+)")


async def test_a_thread_is_compacted_reviewed_and_set_back_by_hand() -> None:
    with trio.fail_after(240):
        async with (
            open_stage(paper(), RULES) as built,
            built.desk.start("serve") as serving,
        ):
            await serving.wait_line("^ready")
            desk = built.desk
            said = await desk.run("new", "--cwd", str(built.workspace), "Name one.")
            found = re.search(r"new thread (\S+) as turn (\S+)", said)
            assert found is not None, said
            thread, first = found[1], found[2]

            compacted = TURN.search(await desk.run("compact", thread))
            assert compacted is not None
            said = await desk.run("review", thread, "Look at the oven.")
            assert "The door is open." in said
            assert "turn completed" in said

            revert = ("revert", thread, "--before", compacted[1])
            await desk.run(*revert, expect=ExitCode.USAGE)  # nobody there to say yes
            said = await desk.run(*revert, "--yes")
            assert "These 2 turns go:" in said
            assert f"ends with turn {first} now" in said
            said = await desk.run("read", thread)
            assert compacted[1] not in said
            assert "The door is open." not in said
