"""A codex that is killed, and whose pipes are kept open by what it had started.

End of file never comes, and all that is written goes in: only its process tells.
"""

import os
import signal
import sys
from pathlib import Path

import pytest
import trio

from adapter.calls.peer import Listener, Peer
from adapter.errors import ChildExitedError, DiedUnansweredError
from adapter.processes.launch import Ears, Launch
from adapter.processes.process import open_child

SOON_S = 30.0  # it takes half a second; the request would wait for a minute
CODEX = """
import os, signal, subprocess, sys
sys.stdin.readline()
wait = [sys.executable, "-c", "import signal; signal.pause()"]
heir = subprocess.Popen(wait, start_new_session=True)
with open(sys.argv[1], "w") as file:
    file.write(str(heir.pid))
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_a_killed_codex_is_noticed_though_its_heir_keeps_the_pipes_open(
    tmp_path: Path,
) -> None:
    heir = tmp_path / "heir"
    peer = Peer(
        Listener(
            notified=lambda _method, _params: None,
            asked=lambda _: None,
            unread=lambda _: None,
        )
    )
    output: list[bytes] = []
    told: list[str] = []

    async def ask() -> None:
        try:
            await peer.call("thread/fork", {}, timeout_s=60)
        except DiedUnansweredError as exc:
            told.append(exc.method)

    launch = Launch(
        name="codex writer",
        argv=[sys.executable, "-c", CODEX, str(heir)],
        environ=os.environ,
        records=tmp_path / "records",
    )
    ears = Ears(
        started=lambda _: None, output=output.append, ended=lambda _: peer.close()
    )
    try:
        with trio.fail_after(SOON_S):
            async with trio.open_nursery() as nursery:
                with pytest.raises(ChildExitedError) as caught:
                    async with open_child(launch, ears) as child:
                        peer.attach(child.input)
                        nursery.start_soon(ask)
                        await trio.sleep_forever()
        assert caught.value.returncode == -signal.SIGKILL
        assert told == ["thread/fork"]
        assert output == [], "no end of output was seen"
        os.kill(int(heir.read_text()), 0)  # it lives on, as it was meant to
    finally:
        os.kill(int(heir.read_text()), signal.SIGKILL)
