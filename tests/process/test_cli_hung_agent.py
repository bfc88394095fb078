"""An Agent that is there and says nothing is not said to be missing."""

import os
from functools import partial
from pathlib import Path

import pytest
import trio

from agent.lockfile import hold_folder
from clients.cli.doors import open_local
from clients.cli.exits import NotReachedError
from transport import kept_session
from transport.background import open_background
from transport.carriers import unix


async def test_an_agent_that_does_not_answer_is_told_from_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THREADGATE_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("THREADGATE_CONFIG", "THREADGATE_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(kept_session, "CALL_S", 0.2)
    with trio.fail_after(240):
        assert "no host is paired" in await _told()
        listeners = await unix.listen(tmp_path / "run" / "admin.sock")
        serve = partial(trio.serve_listeners, _keep_silent, list(listeners))
        async with open_background(serve):
            assert "does not answer (no session was opened" in await _told()
        with hold_folder(tmp_path):
            told = await _told()
        assert f"an Agent runs here (process {os.getpid()}, since" in told
        assert "it starts or closes" in told


async def _told() -> str:
    with pytest.raises(NotReachedError) as refused:
        async with open_local(asked=False):
            pass
    return refused.value.message


async def _keep_silent(stream: trio.SocketStream) -> None:
    async with stream:
        await trio.sleep_forever()
