"""`stdio`: copies bytes between stdin, stdout and agent.sock, and nothing else. Trio shell.

The far end of `ssh HOST threadgate stdio`. What it carries is sealed: whoever runs it
can cut the line and no more.
"""

import os
from functools import partial

import trio

from clients.cli.exits import ExitCode, NotReachedError, UsageProblemError
from clients.cli.screen import Screen
from clients.cli.workstation import agent_sockets
from transport.background import open_background
from transport.carriers import unix
from transport.errors import UnreachableError
from transport.limits import RECEIVE_CHUNK

_STDIN, _STDOUT = 0, 1


async def carry(_screen: Screen) -> ExitCode:
    """Copy until either side ends. Raises: NotReachedError (no Agent runs here)."""
    if os.isatty(_STDIN):
        raise UsageProblemError(
            "this is what ssh runs: on the other device say `threadgate connect --via "
            '"ssh HOST threadgate stdio"`'
        )
    stdin = trio.lowlevel.FdStream(os.dup(_STDIN))
    stdout = trio.lowlevel.FdStream(os.dup(_STDOUT))
    async with await _connect() as agent, stdin, stdout:
        over = trio.Event()
        async with (
            open_background(partial(_copy, stdin, agent, over)),
            open_background(partial(_copy, agent, stdout, over)),
        ):
            await over.wait()
    return ExitCode.OK


async def _connect() -> trio.SocketStream:
    failures: list[str] = []
    for path in agent_sockets():
        try:
            return await unix.connect(path)
        except UnreachableError as error:
            failures.append(str(error))
    raise NotReachedError(f"no Agent runs here: {'; '.join(failures)}")


async def _copy(
    source: trio.abc.ReceiveStream,
    sink: trio.abc.SendStream,
    over: trio.Event,
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    """Copy to the end of `source`, or until nobody takes it any more."""
    task_status.started()
    try:
        while data := await source.receive_some(RECEIVE_CHUNK):
            await sink.send_all(data)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    over.set()
