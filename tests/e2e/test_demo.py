"""`threadgate demo` from outside: what a newcomer runs first."""

import os
import re
import signal
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.support.cli_runs import cli_environ, command_line, run_cli
from tests.support.measures import in_time
from tests.support.terminals import open_terminal

LIMIT_S = 120  # the promise: under two minutes
PATIENCE_S = 240


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
    with trio.fail_after(in_time(LIMIT_S)):
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


@pytest.mark.codex
@pytest.mark.usefixtures("warm_runs")
async def test_a_demo_that_stays_can_be_typed_by_hand_until_it_is_stopped(
    cache: Path, warm: tuple[str, ...]
) -> None:
    with trio.fail_after(PATIENCE_S):
        async with started(cache, *warm, "demo", "--stay") as process:
            seen = await told(process, "Ctrl-C here")
            assert "A second device is paired" not in seen
            desk, phone = re.findall(r"export THREADGATE_STATE_DIR=(\S+)", seen)
            (pair,) = re.findall(r"threadgate (pair .+)", seen)
            await type_by_hand(Path(desk), Path(phone), pair.split())
            await open_and_close_the_desktop(Path(desk), seen)
            theirs = dict(re.findall(r"export ([A-Z]+_[A-Z_]+)=(\S+)", seen)[:3])
            ran = await run_cli("doctor", environ=environ(cache, **theirs))
            assert (ran.code, "warn  codex home" in ran.out) == (0, False), ran.out
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 128 + signal.SIGINT
    assert left_behind(cache) == []


@pytest.mark.codex
@pytest.mark.usefixtures("warm_runs")
async def test_a_demo_that_told_its_story_can_stay_with_the_phone_paired(
    cache: Path, warm: tuple[str, ...]
) -> None:
    with trio.fail_after(PATIENCE_S):
        async with started(cache, *warm, "demo", "--story", "--stay") as process:
            seen = await told(process, "Ctrl-C here")
            assert "This is what the model was sent" in seen
            phone = re.findall(r"export THREADGATE_STATE_DIR=(\S+)", seen)[1]
            ran = await run_cli("threads", environ=cli_environ(Path(phone)))
            assert "Name six breads" in ran.out, ran.err
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 128 + signal.SIGINT
    assert left_behind(cache) == []


@asynccontextmanager
async def started(cache: Path, *args: str) -> AsyncGenerator[trio.Process]:
    process = await trio.lowlevel.open_process(
        args, env=environ(cache), stdout=subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        with trio.CancelScope(shield=True):
            await process.wait()


async def told(process: trio.Process, text: str) -> str:
    """Return all that was said, once `text` was."""
    assert process.stdout is not None
    seen = b""
    while text.encode() not in seen:
        more = await process.stdout.receive_some()
        assert more, seen
        seen += more
    return seen.decode()


async def open_and_close_the_desktop(desk: Path, seen: str) -> None:
    """Type the two lines of the stand-in into a shell, and see the gate close and open."""
    opens, closes = re.findall(r"^  (\(CODEX_HOME=.+|kill .+)$", seen, re.MULTILINE)
    shell = await trio.lowlevel.open_process(["bash"], stdin=subprocess.PIPE)
    assert shell.stdin is not None
    async with shell.stdin:
        await shell.stdin.send_all(f"{opens}\n".encode())
        while "is the writer" not in await status(desk):
            pass  # each look is a process
        await shell.stdin.send_all(f"{closes}\n".encode())
        while not (await status(desk)).startswith("Open"):
            pass
    await shell.wait()


async def status(desk: Path) -> str:
    return (await run_cli("status", environ=cli_environ(desk))).out


async def type_by_hand(desk: Path, phone: Path, pair: list[str]) -> None:
    """Pair as the demo says, at a terminal, and ask for the breads."""
    async with open_terminal(desk, *pair) as offering:
        seen = await offering.wait_for("Ctrl-C withdraws")
        code = "".join(re.findall(r"TGATE:\w+", seen)).encode()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connect_phone, phone, code)
            await offering.wait_for("[y/N]")
            await offering.type("y\n")
            await offering.wait_for("Paired: phone")
        assert await offering.end() == 0
    breads = "Name six breads, one on each line."
    for _ in range(2):
        ran = await run_cli(
            "new", "--cwd", pair[-1], breads, environ=cli_environ(phone)
        )
        assert "6. Brioche" in ran.out, ran.out + ran.err


async def connect_phone(phone: Path, code: bytes) -> None:
    ran = await run_cli(
        "connect", "--name", "phone", environ=cli_environ(phone), stdin=code
    )
    assert ran.code == 0, ran.err
