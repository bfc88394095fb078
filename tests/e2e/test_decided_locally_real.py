"""What decides on a real codex in place of the person: a hook, a review by a second model."""

import json
import sys

import pytest
import trio

from clients.cli.scripted_answers import Rule
from tests.support.codex import (
    HERE,
    CodexHome,
    each_version,
)
from tests.support.foreign import open_foreign
from tests.support.real_turns import told_in, told_of
from tests.support.runtimes import open_stage
from tests.support.scripts import DONE, call, script
from transport.protocol.events import (
    ApprovalRequested,
    Notice,
)
from transport.protocol.items import (
    Command,
)

pytestmark = pytest.mark.codex


@each_version
@pytest.mark.parametrize(
    ("verdict", "code", "ran"),
    [("allow", "decidedLocally", True), ("deny", "hookStopped", False)],
)
async def test_a_hook_that_decides_in_place_of_the_person_is_told(
    version: str, verdict: str, code: str, ran: bool
) -> None:
    asks = {"sandbox_permissions": "require_escalated", "justification": "j"}
    text = script(call("exec_command", cmd="echo ran", **asks), DONE)
    async with open_stage(version) as stage:
        with trio.fail_after(240):
            await trust_hook(version, stage.home, verdict)
            told = await told_in(stage, text)
        assert code in stage.seen.notices()
        assert not told.data(ApprovalRequested)
        assert any(item.output == "ran\n" for item in told.of(Command)) is ran


@each_version
@pytest.mark.parametrize(
    ("outcome", "ran"), [("allow", True), ("deny", False)], ids=["allow", "deny"]
)
async def test_a_review_of_codex_s_own_that_decides_is_told(
    version: str, outcome: str, *, ran: bool
) -> None:
    verdict = {
        "risk_level": "low" if ran else "high",
        "user_authorization": "high" if ran else "low",
        "outcome": outcome,
        "rationale": "seen by a second model",
    }
    asks = {"sandbox_permissions": "require_escalated", "justification": "j"}
    rules = (
        Rule("APPROVAL REQUEST", [[{"msg": json.dumps(verdict)}]]),
        Rule("light the oven", [call("exec_command", cmd="echo ran", **asks), DONE]),
    )
    extra = 'approvals_reviewer = "auto_review"\n'
    with trio.fail_after(240):
        told = await told_of(version, "light the oven", *rules, extra=extra)
    assert not told.data(ApprovalRequested)
    decided = [one.message for one in told.data(Notice) if one.code == "decidedLocally"]
    assert len(decided) == 1
    assert "echo ran" in decided[0]
    assert ("approved" in decided[0]) is ran
    assert any(item.output == "ran\n" for item in told.of(Command)) is ran


async def trust_hook(version: str, home: CodexHome, verdict: str) -> None:
    """Give the home a hook that answers for the person, and the owner's trust in it."""
    said = {"behavior": verdict, **({"message": "no"} if verdict == "deny" else {})}
    output = {"hookEventName": "PermissionRequest", "decision": said}
    program = home.home.parent / "hook.py"
    program.write_text(f"print({json.dumps({'hookSpecificOutput': output})!r})")
    command = json.dumps(f"{sys.executable} {program}")
    config = home.home / "config.toml"
    hook = f"[[hooks.PermissionRequest.hooks]]\ntype = 'command'\ncommand = {command}\n"
    text = f"{config.read_text()}\n[[hooks.PermissionRequest]]\n{hook}"
    config.write_text(text)
    async with open_foreign(HERE[version], home.environ, cwd=home.workspace) as owner:
        found = await owner.request("hooks/list", {"cwds": [str(home.workspace)]})
    (listed,) = found["data"][0]["hooks"]
    state = f"[hooks.state.{json.dumps(listed['key'])}]\n"
    config.write_text(f"{text}\n{state}trusted_hash = '{listed['currentHash']}'\n")
