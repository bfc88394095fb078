"""Commands about whole threads, and what a turn is given, on the real codex.

The rest of them is typed by the tour.
"""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from clients.cli.demo_actors import Actor
from clients.cli.demo_desktop import open_desktop_codex
from clients.cli.demo_stage import Stage, open_stage
from clients.cli.exits import ExitCode
from clients.cli.scripted_answers import Rule
from tests.support.cli_runs import paper

DEADLINE_S = 240
PATCH = "*** Begin Patch\n*** Add File: rye.txt\n+Rye: two euros\n*** End Patch\n"
SEED = {"call": "exec_command", "args": {"cmd": "seq 3000"}}
RULES = [
    Rule("Write the price list.", [[{"patch": PATCH}], [{"msg": "It is in rye.txt."}]]),
    Rule("Count.", [[SEED], [{"msg": "Counted `up`."}]]),
    Rule("Name one.", [[{"msg": '{"bread": "Rye"}'}]]),
    Rule("Plan it.", [[{"msg": "First the oven."}]]),
]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"bread": {"type": "string"}},
    "required": ["bread"],
    "additionalProperties": False,
}

pytestmark = [pytest.mark.codex, pytest.mark.usefixtures("warm_actors")]


@asynccontextmanager
async def stage() -> AsyncGenerator[Stage]:
    with trio.fail_after(DEADLINE_S):
        async with (
            open_stage(paper(), RULES) as built,
            built.desk.start("serve") as serving,
        ):
            await serving.wait_line("^ready")
            yield built


async def begun(who: Actor, *args: str) -> tuple[str, str]:
    """Run a command that begins a thread; return its id and what was said."""
    said = await who.run(*args, quiet=True)  # its words go into a failure
    found = re.search(r"(?:new thread|forked to) (\S+) as turn", said)
    assert found is not None, said
    return found[1], said


async def test_a_thread_is_named_moved_copied_and_a_copy_deleted() -> None:
    async with stage() as built:
        desk, folder = built.desk, str(built.workspace)
        new = ("new", "--cwd", folder, "--name", "Prices", "Write the price list.")
        thread, said = await begun(desk, *new)
        assert re.search(r"rye\.txt\s+new file, \+1 -0", said)
        listed = await desk.run("threads")
        assert "Prices" in listed

        assert "is archived" in await desk.run("archive", thread[:13])
        assert thread[:8] not in await desk.run("threads")
        assert thread[:8] in await desk.run("threads", "--archived")
        assert "is back" in await desk.run("unarchive", thread[:13])

        forked, said = await begun(desk, "fork", thread[:13], "Name one.")
        assert forked != thread
        refused = await desk.run("delete", forked, expect=ExitCode.USAGE)
        assert "--yes" in refused
        gone = await desk.run("delete", forked, "--yes")
        assert gone.startswith(f"{forked} is deleted")
        missing = await desk.run("read", forked, expect=ExitCode.FAILED)
        assert "threadgate: " in missing


async def test_what_a_turn_is_given_reaches_codex_and_holds_as_told(
    tmp_path: Path,
) -> None:
    schema = tmp_path / "bread.json"
    schema.write_text(json.dumps(SCHEMA))
    async with stage() as built:
        desk, folder = built.desk, str(built.workspace)
        given = ("--schema", str(schema), "--effort", "high")
        thread, _ = await begun(desk, "new", "--cwd", folder, "Name one.", *given)
        assert asked(built)["text"]["format"]["schema"] == SCHEMA
        shown = await desk.run("settings", thread[:13])
        assert re.search(r"model +gpt-5.5 +\(effort high\)", shown)

        await desk.run("send", thread[:13], "Name one.")
        assert "text" not in asked(built) or "format" not in asked(built)["text"]
        changed = await desk.run(
            "settings", thread[:13], "--effort", "low", "--sandbox", "read-only"
        )
        assert re.search(r"\(effort low\)", changed)
        assert "sandbox read-only  (nothing is written)" in changed

        forked, _ = await begun(desk, "fork", thread, "Plan it.", "--plan", *given[:2])
        assert asked(built)["text"]["format"]["schema"] == SCHEMA
        assert "mode    plan" in await desk.run("settings", forked)
        planned, _ = await begun(desk, "new", "--cwd", folder, "Plan it.", "--plan")
        assert "mode    plan" in await desk.run("settings", planned)
        wrong = tmp_path / "wrong.json"
        wrong.write_text("[]")
        said = await desk.run(
            "send", thread, "x", "--schema", str(wrong), expect=ExitCode.USAGE
        )
        assert "holds no JSON Schema" in said


def asked(built: Stage) -> dict[str, Any]:
    """Return what the model was asked last."""
    return built.model.requests[-1].body


async def test_the_desk_is_told_what_came_through_which_device() -> None:
    async with stage() as built:
        desk, folder = built.desk, str(built.workspace)
        thread, _ = await begun(desk, "new", "--cwd", folder, "Count.")
        await desk.run("send", thread, "Count.")
        async with open_desktop_codex(built.codex, built.codex_environ) as desktop:
            other = await desktop.start_thread(built.workspace, "Plan it.")
        lately = await desk.run("threads", "--since", "1h")
        assert re.search(r"\d\d:\d\d  the workstation +completed .*Count\.", lately)
        assert re.search(r"\d\d:\d\d  not through threadgate +completed .*Plan", lately)
        told = json.loads(await desk.run("threads", "--since", "1h", "--json"))
        through = {
            one["id"]: [turn["from"] for turn in one["turns"]]
            for one in told["threads"]
        }
        assert through == {thread: ["local", "local"], other: [None]}
        assert "Nothing has changed" in await desk.run("threads", "--since", "0s")
        page = await desk.run("read", thread, "--md")
        assert "$ /bin/bash -lc 'seq 3000'\n1\n2\n" in page
        assert "\n**Codex**\n\nCounted `up`.\n" in page
        assert "thread/fork" in await desk.run("capabilities")
        assert "not known yet" in await desk.run("settings", other)
