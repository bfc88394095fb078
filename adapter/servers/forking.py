"""A copy of a thread is made in an app-server. Trio shell. PROTOCOL.md section 4.

The source is neither loaded nor locked, and its turn, if one runs, goes on. What is read
of it can be behind what it is writing: then Codex refuses, and the next try works.
"""

from typing import Any

import trio

from adapter.calls import thread_commands
from adapter.calls.refusals import BEHIND, NO_BOUNDARY
from adapter.errors import CodexRefusedError
from adapter.limits import FORK_PAUSE_S, FORK_TRIES
from adapter.runtime.acts import Guard
from adapter.servers.app_server import AppServer
from adapter.servers.whole_thread import start_of_review


async def take_fork(
    server: AppServer,
    thread_id: str,
    *,
    through: str | None,
    before: str | None,
    guard: Guard,
) -> dict[str, Any]:
    """Fork the thread and return Codex's answer; the fork is loaded in `server`."""
    command = thread_commands.fork(thread_id, through=through, before=before)
    for _ in range(FORK_TRIES - 1):
        try:
            return await server.call(command, guard=guard)
        except CodexRefusedError as exc:
            refused = exc
        if before is not None and NO_BOUNDARY in refused.message:
            before = await start_of_review(server, thread_id, before, refused)
            command = thread_commands.fork(thread_id, through=None, before=before)
        elif BEHIND not in refused.message:
            raise refused
        await trio.sleep(FORK_PAUSE_S)
    return await server.call(command, guard=guard)
