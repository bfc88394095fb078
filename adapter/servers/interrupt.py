"""Stopping one turn of a writer, with all that runs below it. Trio shell.

PROTOCOL.md section 4, turn/interrupt. Codex stops the named turn alone: not its
sub-agents, and an active goal would start the next turn within milliseconds.
"""

import trio

from adapter.calls import goals, turn_commands
from adapter.calls.goals import active_goal
from adapter.errors import (
    AdapterError,
    CodexRefusedError,
    NoAnswerError,
    NotDeliveredError,
)
from adapter.limits import PAUSE_GOAL_S, TURN_END_S
from adapter.servers.app_server import AppServer
from transport.errors import NotFound
from transport.protocol.turns import Turn


class Interrupt:
    """One interrupt in one app-server; `root`: the thread that is loaded there."""

    def __init__(self, server: AppServer, root: str | None) -> None:
        self._server = server
        self._root = root

    async def run(self, turn_id: str) -> Turn:
        """Stop this turn and its sub-agents' turns; return it, ended.

        One that has just ended by itself is returned as it ended. Raises: NotFound,
        AdapterError; NoAnswerError: stopped for all we know, and never seen to end.
        """
        known = self._server.normalizer
        thread_id = self._thread_of(turn_id)
        if thread_id is None or self._root is None:
            if (ended := known.ended_turn(turn_id)) is not None:
                return ended
            raise NotFound("This turn does not run here.", data={"id": turn_id})
        tree = known.tree(thread_id)
        await self._pause_goal(self._root)
        await self._stop(thread_id, turn_id)
        for child in tree - {thread_id}:
            if (running := known.running_turn(child)) is not None:
                await self._stop(child, running)
        self._server.withdraw(tree)
        return await self._wait_ended(turn_id)

    def _thread_of(self, turn_id: str) -> str | None:
        """Return the thread of our tree in which this turn runs."""
        if self._root is None or not turn_id:
            return None
        known = self._server.normalizer
        tree = known.tree(self._root)
        return next((t for t in tree if known.running_turn(t) == turn_id), None)

    async def _pause_goal(self, root: str) -> None:
        try:
            goal = goals.get_goal(root, timeout_s=PAUSE_GOAL_S)
            if active_goal(await self._server.call(goal)) is not None:
                pause = goals.pause_goal(root, timeout_s=PAUSE_GOAL_S)
                await self._server.call(pause)
        except AdapterError:
            return  # the turn is stopped all the same

    async def _stop(self, thread_id: str, turn_id: str) -> None:
        while not await self._ask_to_stop(thread_id, turn_id):
            pass  # each round asks under another name

    async def _ask_to_stop(self, thread_id: str, turn_id: str) -> bool:
        """Return False where the turn, a review that just begins, has got another name."""
        known = self._server.normalizer
        named = known.codex_turn(turn_id)
        try:
            await self._server.call(turn_commands.interrupt(thread_id, named))
        except CodexRefusedError:
            if known.codex_turn(turn_id) != named:
                return False
            # It may have ended by itself in this moment; else the refusal is the answer.
            if known.running_turn(thread_id) == turn_id:
                raise
        except (NoAnswerError, NotDeliveredError):
            if not self._server.gone:  # else the turn has ended with its process
                raise
        return True

    async def _wait_ended(self, turn_id: str) -> Turn:
        known = self._server.normalizer
        with trio.move_on_after(TURN_END_S):
            await self._server.wait_until(lambda: known.ended_turn(turn_id) is not None)
        ended = known.ended_turn(turn_id)
        if ended is None:
            raise NoAnswerError("turn/interrupt")
        return ended
