"""What is typed or piped in and cannot be sent: one line, an exit code, nothing sent."""

from pathlib import Path

import pytest
import trio

from tests.support.cli_runs import cli_environ, run_cli
from tests.support.cli_samples import SHOP
from tests.support.fake_agent import FakeAgent, open_fake_agent

NO_TEXT = b"\xff\xfe".decode("utf-8", "surrogateescape")  # as Python has such arguments


def nested(depth: int) -> str:
    return '{"of":' * depth + "1" + "}" * depth


@pytest.mark.parametrize(
    ("args", "stdin", "code"),
    [
        (["send", SHOP, NO_TEXT], b"", 2),
        (["send", SHOP, "-"], b"\xff\xfe", 2),
        (["rename", SHOP, NO_TEXT], b"", 2),
        (["send", SHOP, "x", "--schema", nested(5_000)], b"", 2),
        (["send", SHOP, "x", "--schema", nested(100)], b"", 1),
        (["send", SHOP, "x", "--schema", '{"most": 1' + "0" * 40 + "}"], b"", 1),
    ],
)
async def test_words_that_cannot_be_sent_are_said_in_one_line(
    tmp_path: Path, args: list[str], stdin: bytes, code: int
) -> None:
    if "--schema" in args:
        file = tmp_path / "schema.json"
        file.write_text(args[-1])
        args = [*args[:-1], str(file)]
    agent = FakeAgent()
    environ = cli_environ(tmp_path) | {"PYTHONUTF8": "1"}
    with trio.fail_after(240):
        async with open_fake_agent(tmp_path / "run" / "admin.sock", agent):
            ran = await run_cli(*args, environ=environ, stdin=stdin)
    assert (ran.code, ran.out) == (code, ""), ran
    assert ran.err.startswith("threadgate: ")
    assert ran.err.count("\n") == 1
    sent = {name for name, _ in agent.calls}
    assert not sent & {"turn/start", "thread/rename"}


async def test_ctrl_c_while_the_program_is_still_loading_ends_it_quietly(
    tmp_path: Path,
) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    environ = cli_environ(tmp_path) | {"PYTHONPATH": str(tmp_path)}
    with trio.fail_after(240):
        ran = await run_cli("status", environ=environ)
    assert (ran.code, ran.out, ran.err) == (130, "", "")
