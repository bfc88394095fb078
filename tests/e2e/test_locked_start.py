"""An Agent that starts locked says so where it was started."""

import subprocess
from functools import partial

import pytest
import trio

from agent.gate.at_rest import mark_locked
from tests.support.codex import open_codex_home
from tests.support.served_agent import served_environ
from transport.background import open_background

pytestmark = pytest.mark.codex


async def test_whoever_starts_a_locked_agent_hears_what_ends_that() -> None:
    with trio.fail_after(240):
        async with open_codex_home() as home:
            state = home.home.parent / "state"
            state.mkdir(mode=0o700)
            mark_locked(state)
            argv, environ = served_environ(home)
            run = partial(
                trio.run_process,
                argv,
                env=environ,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                check=False,
            )
            async with open_background(run) as process:
                assert process.stderr is not None
                said = b""
                while b"threadgate unlock" not in said:
                    chunk = await process.stderr.receive_some()
                    assert chunk, said
                    said += chunk
                process.terminate()
                await process.wait()
            assert process.returncode == 0
