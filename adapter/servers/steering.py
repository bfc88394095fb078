"""More words for a turn that runs. Trio shell. PROTOCOL.md section 4, turn/steer.

Codex takes them at once and gives them to the model with its next call, which a long
command can hold off for minutes. What is taken is no outcome yet: when the turn is
interrupted before that call, Codex forgets the words without saying so. We say it.
"""

from collections.abc import Sequence
from contextlib import ExitStack, suppress

import trio

from adapter.calls import turn_commands
from adapter.calls.jsonrpc import Json
from adapter.calls.peer import OVERLOADED
from adapter.calls.proof import SteerProof
from adapter.errors import AnswerShapeError, CodexOverloadedError, NoAnswerError
from adapter.limits import PROOF_S, STEERS_WATCHED
from adapter.runtime.acts import Guard, InputPart, Steered
from adapter.servers.app_server import AppServer
from adapter.servers.running import seen_turn


class Steering:
    """All steers of one app-server; those that the model has not taken are watched on."""

    def __init__(self, server: AppServer) -> None:
        self._server = server
        self._taken: list[SteerProof] = []
        self._watch: ExitStack | None = None

    async def run(
        self,
        thread_id: str,
        turn_id: str,
        parts: Sequence[InputPart],
        *,
        client_key: str,
        guard: Guard,
    ) -> Steered:
        """Steer, and wait until the model has the words, or ended without them.

        Raises: AdapterError; NoAnswerError: taken and lost, or nobody knows;
        CodexOverloadedError: as many as can be watched wait for the model already.
        """
        if len(self._taken) >= STEERS_WATCHED:
            text = f"{STEERS_WATCHED} messages wait for the model already"
            raise CodexOverloadedError("turn/steer", OVERLOADED, text)
        proof = SteerProof(thread_id, turn_id, client_key)
        command = turn_commands.steer(thread_id, turn_id, parts, client_key)
        with self._server.watching(proof.notified):
            # An odd answer is no refusal: the stream tells what came of it.
            with suppress(AnswerShapeError):
                await self._server.call(command, guard=guard)
            with trio.move_on_after(PROOF_S):
                await self._server.wait_until(
                    lambda: proof.seen or proof.over or self._server.gone
                )
        if not proof.seen and (proof.over or self._server.gone):
            raise NoAnswerError(command.method)
        if not proof.seen:
            self._watch_on(proof)
        turn = seen_turn(self._server, thread_id, turn_id)
        return Steered(turn=turn, pending=not proof.seen)

    def _watch_on(self, proof: SteerProof) -> None:
        self._taken.append(proof)
        if self._watch is None:
            self._watch = ExitStack()
            self._watch.enter_context(self._server.watching(self._notified))

    def _notified(self, method: str, params: Json) -> None:
        for proof in tuple(self._taken):
            proof.notified(method, params)
            if proof.seen or proof.over:
                self._taken.remove(proof)
            if proof.over and not proof.seen:
                self._server.notice(
                    "steerLost",
                    "A turn ended before the model took what was sent into it. Send the "
                    "message again if it is still wanted.",
                    proof.thread_id,
                )
