"""`threadgate replay FILE` as somebody runs it who has a bug report before them."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from tests.support.cli_runs import cli_environ, run_cli
from tests.support.replay import TRACES

pytestmark = pytest.mark.usefixtures("warm_runs")


async def test_a_sound_recording_gives_json_lines_and_0(tmp_path: Path) -> None:
    with trio.fail_after(240):
        trace = TRACES / "approval-command-accept.jsonl"
        ran = await run_cli("replay", str(trace), environ=cli_environ(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    events = [json.loads(line)["event"] for line in ran.out.splitlines()]
    assert "turn/started" in events
    assert events.count("approval/requested") == events.count("approval/resolved") == 1


async def test_a_broken_promise_is_named_and_ends_with_1(tmp_path: Path) -> None:
    lines = (TRACES / "approval-command-accept.jsonl").read_text().splitlines()
    began = ('"item/started"', '"commandExecution"')
    cut = [line for line in lines if not all(word in line for word in began)]
    assert len(cut) == len(lines) - 1
    file = tmp_path / "cut.jsonl"
    file.write_text("\n".join(cut))
    with trio.fail_after(240):
        ran = await run_cli("replay", str(file), environ=cli_environ(tmp_path))
    assert ran.code == 1
    assert "broken: approval-order: approval " in ran.err
    assert "promises of the protocol were broken" in ran.err.splitlines()[-1]


LOADED: Final[dict[str, Any]] = {"id": 1, "result": {"thread": {"id": 5, "turns": []}}}


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        '{"dir": "in"}',
        "[1]",
        "[" * 100_000,
        json.dumps({"dir": "out", "t": 0, "msg": {"id": 1, "method": "thread/resume"}})
        + "\n"
        + json.dumps({"dir": "in", "t": 0, "msg": LOADED}),
    ],
    ids=["text", "half", "list", "deep", "odd"],
)
async def test_what_is_no_recording_ends_with_2_and_names_the_line(
    tmp_path: Path, text: str
) -> None:
    good = (TRACES / "goal.jsonl").read_text().splitlines()[0]
    file = tmp_path / "x.jsonl"
    file.write_text(f"{good}\n{text}\n")
    with trio.fail_after(240):
        ran = await run_cli("replay", str(file), environ=cli_environ(tmp_path))
    assert ran.code == 2
    assert f"{file}, line {1 + len(text.splitlines())}" in ran.err
    assert "Traceback" not in ran.err


async def test_a_file_that_is_not_there_ends_with_2(tmp_path: Path) -> None:
    with trio.fail_after(240):
        ran = await run_cli("replay", "/no/file", environ=cli_environ(tmp_path))
    assert ran.code == 2
