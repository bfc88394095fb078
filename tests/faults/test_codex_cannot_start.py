"""A codex that does not start: the Agent serves, and says so where it was started."""

import subprocess
from functools import partial

import trio

from tests.support.codex import open_codex_home
from tests.support.served_agent import served_environ
from transport.background import open_background


async def read_until(stream: trio.abc.ReceiveStream, words: bytes) -> str:
    said = b""
    async for chunk in stream:
        said += chunk
        if words in said:
            break
    return said.decode()


async def test_whoever_starts_the_agent_hears_that_codex_does_not_run() -> None:
    with trio.fail_after(240):
        async with open_codex_home() as home:
            argv, environ = served_environ(home)
            environ["CODEX_HOME"] = str(home.home / "gone")
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
                said = await read_until(process.stderr, b"tells more")
                assert "codex does not run yet" in said
                assert "does not exist" in said  # codex's own reason
                process.terminate()
                await process.wait()
            assert process.returncode == 0
