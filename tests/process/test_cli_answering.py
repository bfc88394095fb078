"""`answer`, `approve` and `deny` for each kind of question, at a terminal and in scripts."""

import json
from pathlib import Path

import pytest

from tests.support import cli_asked
from tests.support.cli_runs import cli_environ, run_cli
from tests.support.fake_agent import FakeAgent, fake
from tests.support.terminals import open_terminal
from transport.protocol.approvals import (
    Approval,
    ApprovalListResult,
    ApprovalResult,
    ApprovalState,
)

pytestmark = pytest.mark.usefixtures("warm_runs")


def asking(agent: FakeAgent, asked: Approval) -> None:
    """Let this approval wait, and whatever is answered be taken."""
    ended = asked.model_copy(
        update={"state": ApprovalState.ANSWERED, "choice": "answer"}
    )
    waiting = ApprovalListResult(approvals=[asked], head=1)
    agent.answers["approval/list"] = lambda _: waiting
    agent.answers["approval/answer"] = lambda _: ApprovalResult(approval=ended)


async def test_answer_asks_each_question_at_a_terminal_and_shows_no_secret(
    state: Path,
) -> None:
    asked = cli_asked.question_approval(secret=True)
    async with fake(state) as agent:
        asking(agent, asked)
        async with open_terminal(state, "answer", asked.id, NO_COLOR="1") as terminal:
            await terminal.wait_for("or     a text of your own\r\n  > ")
            await terminal.type("2\n")
            await terminal.wait_for("not shown while you type)\r\n  > ")
            await terminal.type("hunter2\n")
            await terminal.wait_for("Send this? [y/N]")
            await terminal.type("y\n")
            shown = await terminal.wait_for("answered")
            assert await terminal.end() == 0
    assert "hunter2" not in shown
    (call,) = agent.called("approval/answer")
    assert call["answers"] == {"colour": ["Blue"], "name": ["hunter2"]}


async def test_answer_asks_for_each_field_until_it_fits_and_enter_is_a_no(
    state: Path,
) -> None:
    asked = cli_asked.form_approval()
    typed = ["5", "1", "", "x", "3", "y", "1,2"]
    async with fake(state) as agent:
        asking(agent, asked)
        for end, code in (("\n", 1), ("y\n", 0)):
            async with open_terminal(
                state, "answer", asked.id, NO_COLOR="1"
            ) as terminal:
                for number, text in enumerate(typed, 1):
                    await terminal.wait_count("  > ", number)
                    await terminal.type(f"{text}\n")
                await terminal.wait_for("Send this? [y/N]")
                await terminal.type(end)
                assert await terminal.end() == code
    (call,) = agent.called("approval/answer")
    assert call["content"] == {
        "colour": "r",
        "count": 3,
        "gift": True,
        "extras": ["ribbon", "card"],
    }


async def test_a_script_gives_answers_as_json_and_secrets_by_stdin(state: Path) -> None:
    asked = cli_asked.question_approval(secret=True)
    async with fake(state) as agent:
        asking(agent, asked)
        given = json.dumps({"colour": "Red", "name": ["hunter2"]}).encode()
        ran = await run_cli(
            "answer",
            asked.id,
            "--answers",
            "-",
            environ=cli_environ(state),
            stdin=given,
        )
        assert ran.code == 0, ran.err
        assert "hunter2" not in ran.out
        asking(agent, cli_asked.form_approval())
        content = json.dumps({"colour": "r", "count": 2})
        ran = await run_cli(
            "answer", asked.id, "--content", content, environ=cli_environ(state)
        )
        assert ran.code == 0, ran.err
    first, second = agent.called("approval/answer")
    assert first["answers"] == {"colour": ["Red"], "name": ["hunter2"]}
    assert second["content"] == {"colour": "r", "count": 2}


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        ((), 2, "no terminal"),
        (("--answers", "Red"), 2, "no JSON"),
        (("--answers", "[]"), 2, "object"),
        (("--answers", '{"a": 1}'), 2, "answers"),
        (("--answers", "{}", "--content", "{}"), 2, "--content for forms"),
        (("--answers", "{}", "--digest", "x"), 1, "not what you saw"),
    ],
)
async def test_an_answer_that_cannot_be_meant_is_not_sent(
    state: Path, args: tuple[str, ...], code: int, says: str
) -> None:
    asked = cli_asked.question_approval()
    async with fake(state) as agent:
        asking(agent, asked)
        ran = await run_cli("answer", asked.id, *args, environ=cli_environ(state))
        assert (ran.code, says in ran.err) == (code, True), ran.err
    assert agent.called("approval/answer") == []


async def test_each_kind_says_which_command_is_for_it(state: Path) -> None:
    async with fake(state) as agent:
        asking(agent, cli_asked.question_approval())
        ran = await run_cli("approve", "0123", "--yes", environ=cli_environ(state))
        assert "threadgate answer" in ran.err
        ran = await run_cli("deny", "0123", "--stop", environ=cli_environ(state))
        assert "threadgate interrupt" in ran.err
        asking(agent, cli_asked.command_approval())
        ran = await run_cli(
            "answer", "0123", "--answers", "{}", environ=cli_environ(state)
        )
        assert "offered is" in ran.err
    assert agent.called("approval/answer") == []
