"""`threadgate replay` on every recorded run: what people send with their bug reports."""

import json

import pytest

from clients.cli.exits import ExitCode
from clients.cli.replaying import replay
from tests.support.cli_runs import noted, paper, printed
from tests.support.replay import TRACES, trace_names


@pytest.mark.parametrize("name", trace_names())
def test_a_recorded_run_breaks_no_promise(name: str) -> None:
    screen = paper()
    code = replay(screen, TRACES / f"{name}.jsonl")
    assert (code, noted(screen)) == (ExitCode.OK, "")
    rows = [json.loads(line) for line in printed(screen).splitlines()]
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
