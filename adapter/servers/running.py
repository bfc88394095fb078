"""A request that makes a turn run, until that turn is seen. Trio shell.

PROTOCOL.md section 4. The answer alone is no proof: see `adapter/calls/proof.py`.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

import trio

from adapter.calls.commands import Command
from adapter.errors import AnswerShapeError, NoAnswerError
from adapter.limits import PROOF_S
from adapter.runtime.acts import Guard
from adapter.servers.app_server import AppServer
from transport.protocol.turns import Turn, TurnStatus


class Proof(Protocol):
    """What looks at the answer and at the stream, until one turn is certain."""

    @property
    def turn_id(self) -> str | None:
        """The turn, once it is certain that it runs."""
        ...

    def accepted(self, answer: Mapping[str, Any]) -> None:
        """Note the answer."""
        ...

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Look at one notification."""
        ...


async def see_running(
    server: AppServer, command: Command, proof: Proof, *, guard: Guard
) -> str:
    """Send it; return the id of the turn that is seen to run then (10 s).

    Raises: AdapterError; NoAnswerError: nobody knows whether one runs.
    """
    with server.watching(proof.notified):
        # An odd answer is no refusal: the stream tells whether the turn runs.
        with suppress(AnswerShapeError):
            proof.accepted(await server.call(command, guard=guard))
        with trio.move_on_after(PROOF_S):
            await server.wait_until(lambda: proof.turn_id is not None or server.gone)
    if proof.turn_id is None:
        raise NoAnswerError(command.method)
    return proof.turn_id


def seen_turn(server: AppServer, thread_id: str, turn_id: str) -> Turn:
    """Return a turn as far as Codex told of it; of one that it only named, that it runs."""
    known = server.normalizer
    return (
        known.live_turn(turn_id)
        or known.ended_turn(turn_id)
        or Turn(id=turn_id, thread_id=thread_id, status=TurnStatus.IN_PROGRESS)
    )
