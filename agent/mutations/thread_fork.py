"""Go on from a copy of a thread, as one act. Trio shell. PROTOCOL.md sections 3 and 4.

A fork is stored before its first turn. So its id is written down as soon as Codex has
told it, and where its message is not sent it is deleted again, by that id alone.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import trio

from adapter.errors import AdapterError, TurnUnknownError
from adapter.runtime.acts import Guard
from adapter.runtime.threads import Loaded
from adapter.runtime.writer import ThreadWriter
from agent.access.scopes import Caller, check_alive, check_settings
from agent.limits import UNDO_S
from agent.mutations.carry import Sent
from agent.mutations.refusals import turn_not_found
from agent.mutations.sizes import check_schema, check_size
from agent.mutations.way import Way, turn_wishes
from agent.records.flight import Flight
from transport.errors import InvalidParams, OutcomeUnknown, Refusal
from transport.protocol.thread_acts import ThreadForkParams, ThreadForkResult
from transport.protocol.threads import Thread


def check_thread_fork(_caller: Caller, params: ThreadForkParams) -> None:
    """Raise `TooLarge`, `InvalidParams` for what can be asked of no thread."""
    check_size(params.input)
    check_schema(params.output_schema)
    _check_turns(params)


@dataclass(slots=True)
class _Made:
    """The fork, once there is one."""

    thread_id: str | None = None


class ThreadFork:
    """`thread/fork`."""

    def __init__(self, way: Way) -> None:
        self._way = way

    async def look(
        self, caller: Caller, params: ThreadForkParams, source: Thread
    ) -> None:
        """Look at the gate and the message before a writer is started. Raises: Refusal."""
        check_alive(caller)
        self._way.keeper.check(params.thread_id)
        folder = await self._way.folder(caller, params.cwd)
        await self._way.inputs.prepare(caller, params.input, folder or source.cwd)

    async def run(
        self, caller: Caller, params: ThreadForkParams, flight: Flight
    ) -> ThreadForkResult:
        """Go the way, from the copy to the record. Raises: Refusal."""
        folder = await self._way.folder(caller, params.cwd)
        guard = self._way.guard(caller)
        lease = await self._way.open(caller, None, guard)
        made = _Made()

        async def steps(sent: Sent) -> ThreadForkResult:
            async def stored(fork_id: str) -> None:
                made.thread_id = fork_id
                sent.can_be_undone()
                await self._way.ledger.note_thread(flight, fork_id)

            await self._way.ledger.hand(flight)
            writer = lease.started_writer
            loaded = await _fork(writer, params, sent.behind(guard), stored)
            check_settings(caller, loaded.settings, self._way.inside(caller))
            where = folder or loaded.settings.cwd
            parts = await self._way.inputs.prepare(caller, params.input, where)
            send = partial(
                writer.start_turn,
                parts,
                client_key=params.request_key,
                guard=sent.behind(guard),
                wishes=turn_wishes(params, folder),
                output_schema=params.output_schema,
            )
            thread, turn = await self._way.first_turn(lease, loaded, send)
            result = ThreadForkResult(thread=thread, turn=turn)
            await self._way.record(caller, flight, result, turn)
            return result

        try:
            with lease.used():
                return await self._way.carrier.carry(flight, lease, steps)
        except OutcomeUnknown:
            raise  # its turn may run
        except Exception:
            if made.thread_id is not None:
                await self._undo(made.thread_id)  # noqa: ASYNC120 - shields itself
            raise

    async def _undo(self, fork_id: str) -> None:
        """Delete a fork that nobody got to know; its writer has ended."""
        with trio.move_on_after(UNDO_S, shield=True):
            try:
                acts = self._way.supervisor.reader.acts
                await acts.delete(fork_id, guard=lambda: None)
            except (AdapterError, Refusal):
                self._way.notice(
                    "forkLeft",
                    "A fork was made whose message was not sent, and it could not be "
                    "deleted again. It holds nothing new: delete it.",
                    fork_id,
                )


async def _fork(
    writer: ThreadWriter,
    params: ThreadForkParams,
    guard: Guard,
    stored: Callable[[str], Awaitable[None]],
) -> Loaded:
    try:
        return await writer.fork_thread(
            params.thread_id,
            through=params.through_turn_id,
            before=params.before_turn_id,
            guard=guard,
            stored=stored,
        )
    except TurnUnknownError as exc:
        wanted = params.through_turn_id or params.before_turn_id
        raise turn_not_found(wanted) from exc


def _check_turns(params: ThreadForkParams) -> None:
    if params.through_turn_id is not None and params.before_turn_id is not None:
        reason = "a fork ends with one turn or before one, not both"
        raise InvalidParams(
            f"beforeTurnId: {reason}.",
            data={"field": "beforeTurnId", "reason": reason},
        )
