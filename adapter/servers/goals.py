"""A thread's goal, of a loaded thread and of any other. Trio shell. PROTOCOL.md section 4.

A goal that is active starts turns by itself, one after another.
"""

from adapter.calls import goals
from adapter.calls.goals import answered_goal
from adapter.calls.refusals import no_goal_is_fine, not_offered
from adapter.errors import AnswerShapeError, CodexRefusedError
from adapter.runtime.acts import Guard
from adapter.servers.app_server import AppServer
from adapter.servers.reads import Read
from transport.protocol.goals import Goal, GoalStatus


class Goals:
    """The goals of threads, as one app-server has them."""

    def __init__(self, server: AppServer) -> None:
        self._server = server

    async def get(self, thread_id: str) -> Goal | None:
        """Return the goal. Raises: AdapterError."""
        command = goals.get_goal(thread_id)
        return answered_goal(await self._server.call(command), command.method)

    async def active(self, thread_id: str) -> str | None:
        """Return the objective of an active goal: only such a one starts turns."""
        goal = await self.get(thread_id)
        if goal is None or goal.status is not GoalStatus.ACTIVE:
            return None
        return goal.objective

    async def pause(self, thread_id: str, *, guard: Guard | None) -> None:
        """Pause the active goal; nothing where there is none. Raises: AdapterError.

        Through the reader it holds under a writer of ours too: that one obeys.
        """
        if await self.active(thread_id) is None:
            return
        with no_goal_is_fine():  # cleared in between
            await self._server.call(goals.pause_goal(thread_id), guard=guard)

    async def clear(self, thread_id: str, *, guard: Guard) -> None:
        """Take the goal away; nothing where there is none. Raises: AdapterError."""
        with no_goal_is_fine():
            await self._server.call(goals.clear_goal(thread_id), guard=guard)


class LoadedGoals(Goals):
    """The goals of threads that one app-server has loaded."""

    async def set(self, thread_id: str, objective: str, *, guard: Guard) -> Goal:
        """Give the thread an active goal. Raises: AdapterError."""
        command = goals.set_goal(thread_id, objective)
        answer = await self._server.call(command, guard=guard)
        goal = answered_goal(answer, command.method)
        if goal is None:
            raise AnswerShapeError(command.method, "no goal was told")
        return goal


class StoredGoals(Goals):
    """The goals of threads as the store has them, loaded elsewhere or not at all."""

    def __init__(self, server: AppServer, read: Read) -> None:
        super().__init__(server)
        self._read = read

    async def get(self, thread_id: str) -> Goal | None:
        """Return the goal; none where this codex has no goals. Raises: AdapterError."""
        command = goals.get_goal(thread_id)
        try:
            return answered_goal(await self._read(command), command.method)
        except CodexRefusedError as exc:
            if not_offered(exc):
                return None
            raise
