"""What is done to the loaded thread as a whole: compacted, reviewed, set back. Trio shell.

PROTOCOL.md section 4. For each of these Codex interrupts whatever runs in the thread,
without a word: who calls has made sure that nothing does.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import trio

from adapter.calls import thread_commands
from adapter.calls.commands import Command
from adapter.calls.proof import RunProof
from adapter.calls.refusals import NO_BOUNDARY
from adapter.errors import AnswerShapeError, CodexRefusedError, NoAnswerError
from adapter.limits import PROOF_S
from adapter.runtime.acts import Guard
from adapter.servers.app_server import AppServer
from adapter.servers.review_turns import inner_turn
from generated.codex import ReviewTarget as CodexTarget
from transport.errors import UnavailableFeature
from transport.protocol.reviews import (
    BranchTarget,
    CommitTarget,
    CustomTarget,
    ReviewTarget,
    UncommittedTarget,
)
from transport.protocol.turns import Turn, TurnStatus

_COMPACTION: Final = "contextCompaction"
_REVIEW: Final = "enteredReviewMode"


class WholeThread:
    """Acts on the thread of one app-server. `turn`: a turn that runs here, or did."""

    def __init__(self, server: AppServer, turn: Callable[[str], Turn | None]) -> None:
        self._server = server
        self._turn = turn

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
        with self._server.watching(proof.notified):
            # An odd answer is no refusal: the stream tells whether the turn runs.
            with suppress(AnswerShapeError):
                proof.accepted(await self._server.call(command, guard=guard))
            with trio.move_on_after(PROOF_S):
                await self._server.wait_until(
                    lambda: proof.turn_id is not None or self._server.gone
                )
        if proof.turn_id is None:
            raise NoAnswerError(command.method)
        return self._turn(proof.turn_id) or Turn(
            id=proof.turn_id, thread_id=thread_id, status=TurnStatus.IN_PROGRESS
        )


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
