"""What is done to the loaded thread as a whole: compacted, reviewed, set back. Trio shell.

PROTOCOL.md section 4. For each of these Codex interrupts whatever runs in the thread,
without a word: who calls has made sure that nothing does.
"""

from typing import Final

from adapter.calls import thread_commands
from adapter.calls.commands import Command
from adapter.calls.proof import RunProof
from adapter.calls.refusals import NO_BOUNDARY
from adapter.errors import CodexRefusedError
from adapter.runtime.acts import Guard
from adapter.servers.app_server import AppServer
from adapter.servers.review_turns import inner_turn
from adapter.servers.running import see_running, seen_turn
from generated.codex import ReviewTarget as CodexTarget
from transport.errors import UnavailableFeature
from transport.protocol.reviews import (
    BranchTarget,
    CommitTarget,
    CustomTarget,
    ReviewTarget,
    UncommittedTarget,
)
from transport.protocol.turns import Turn

_COMPACTION: Final = "contextCompaction"
_REVIEW: Final = "enteredReviewMode"


class WholeThread:
    """Acts on the thread of one app-server."""

    def __init__(self, server: AppServer) -> None:
        self._server = server

    async def compact(self, thread_id: str, *, guard: Guard) -> Turn:
        """Have a summary written. Raises: AdapterError."""
        command = thread_commands.compact(thread_id)
        return await self._run(thread_id, command, _COMPACTION, guard)

    async def review(
        self, thread_id: str, target: ReviewTarget, *, guard: Guard
    ) -> Turn:
        """Have changes reviewed. Raises: AdapterError, UnavailableFeature."""
        if not self._server.traits.joins_reviews:
            raise UnavailableFeature(
                "The Codex that runs here is too old for reviews from afar: it tells one "
                "as two turns, and which belong together it does not say.",
                data={"feature": "review/start", "since": "0.163"},
            )
        command = thread_commands.review(thread_id, _target(target))
        return await self._run(thread_id, command, _REVIEW, guard)

    async def revert(
        self, thread_id: str, before: str, *, left: str, guard: Guard
    ) -> None:
        """Take a turn and all behind it back. `left`: the newest turn that stays.

        Raises: AdapterError; TurnUnknownError, which changed nothing.
        """
        try:
            await self._server.call(
                thread_commands.revert(thread_id, before), guard=guard
            )
        except CodexRefusedError as exc:
            inner = await start_of_review(self._server, thread_id, before, exc)
            await self._server.call(
                thread_commands.revert(thread_id, inner), guard=guard
            )
        self._server.reverted(thread_id, left)

    async def _run(
        self, thread_id: str, command: Command, item_type: str, guard: Guard
    ) -> Turn:
        """Send it, and wait until its turn is seen to run (10 s)."""
        proof = RunProof(thread_id, item_type)
        turn_id = await see_running(self._server, command, proof, guard=guard)
        return seen_turn(self._server, thread_id, turn_id)


async def start_of_review(
    server: AppServer, thread_id: str, turn_id: str, refusal: CodexRefusedError
) -> str:
    """Return the id by which Codex finds the beginning of a turn that it refused so.

    Raises: the refusal, where it means something else or the turn is not found;
    AdapterError.
    """
    if NO_BOUNDARY not in refusal.message:
        raise refusal
    inner = await inner_turn(server.call, thread_id, turn_id)
    if inner is None:
        raise refusal
    return inner


def _target(target: ReviewTarget) -> CodexTarget:
    match target:
        case UncommittedTarget():
            return {"type": "uncommittedChanges"}
        case BranchTarget(base=base):
            return {"type": "baseBranch", "branch": base}
        case CommitTarget(sha=sha):
            return {"type": "commit", "sha": sha}
        case CustomTarget(text=words):
            return {"type": "custom", "instructions": words}
