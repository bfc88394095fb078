"""`threadgate demo` from outside: what a newcomer runs first."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
import trio

from tests.support.cli_runs import command_line, run_cli

LIMIT_S = 120  # the promise: under two minutes
PATIENCE_S = 60


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder of the test's own; codex warns of homes in the temp folder, no more."""
    return tmp_path_factory.mktemp("cache")


def environ(cache: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "XDG_CACHE_HOME": str(cache), **more}


def left_behind(cache: Path) -> list[str]:
    return [str(path) for path in (cache / "threadgate").glob("*")]


@pytest.mark.codex
async def test_the_demo_shows_the_main_job_and_leaves_nothing(cache: Path) -> None:
    with trio.fail_after(LIMIT_S):
        ran = await run_cli("demo", environ=environ(cache))
    assert ran.code == 0, ran.out + ran.err
    titles = re.findall(r"^\d+\. (.+)$", ran.out, re.MULTILINE)
    assert len([title for title in titles if title[0].isupper()]) >= 9
    for told in (
        "Both have got every line",
        "notes.txt is still there.",
        "After the yes there is: Tuesday to Saturday",
        "(exit code 4)",
        "<- from the desk",
        "All of it was as told",
        "For real",
    ):
        assert told in ran.out
    assert left_behind(cache) == []


async def test_a_demo_without_a_codex_that_works_says_where_it_stopped(
    cache: Path,
) -> None:
    with trio.fail_after(PATIENCE_S):
        ran = await run_cli(
            "demo", environ=environ(cache, THREADGATE_CODEX="/bin/false")
        )
    assert ran.code == 1
    assert "the demo went wrong at step “A workstation where Codex" in ran.err
    assert "Traceback" not in ran.err
    assert left_behind(cache) == []


@pytest.mark.codex
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_demo_that_is_stopped_leaves_nothing(
    cache: Path, number: signal.Signals
) -> None:
    with trio.fail_after(PATIENCE_S):
        process = await trio.lowlevel.open_process(
            command_line("demo"), env=environ(cache), stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        seen = b""
        async with process.stdout:
            while b"check" not in seen:  # while the phone is being paired
                more = await process.stdout.receive_some()
                assert more, seen
                seen += more
            process.send_signal(number)
            async for _ in process.stdout:
                pass
            assert await process.wait() == 128 + number
    assert left_behind(cache) == []
