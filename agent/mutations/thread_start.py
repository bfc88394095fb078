"""Make a thread with its first turn, as one act. Trio shell.

PROTOCOL.md sections 3 and 4. Without a turn Codex stores no thread: a refusal on the way
leaves nothing.
"""

from functools import partial

from adapter.runtime.threads import NewThread, Wishes
from agent.access.scopes import Caller, check_alive, check_settings, check_wishes
from agent.mutations.carry import Sent
from agent.mutations.sizes import check_schema, check_size
from agent.mutations.way import Way
from agent.records.flight import Flight
from transport.protocol.threads import ThreadStartParams, ThreadStartResult


def check_thread_start(caller: Caller, params: ThreadStartParams) -> None:
    """Raise `TooLarge`, `Forbidden` for what can be begun nowhere."""
    check_size(params.input)
    check_schema(params.output_schema)
    check_wishes(caller, sandbox=params.sandbox, policy=params.approval_policy)


class ThreadStart:
    """`thread/start`."""

    def __init__(self, way: Way) -> None:
        self._way = way

    async def run(
        self, caller: Caller, params: ThreadStartParams, flight: Flight
    ) -> ThreadStartResult:
        """Go the way, from the first look to the record. Raises: Refusal."""
        folder = await self._way.sight.folder(caller, params.cwd)
        check_alive(caller)
        self._way.keeper.check()
        await self._way.inputs.prepare(caller, params.input, folder)
        guard = self._way.guard(caller)
        lease = await self._way.open(caller, None, guard)

        async def steps(sent: Sent) -> ThreadStartResult:
            await self._way.ledger.hand(flight)
            writer = lease.started_writer
            # Without a turn no thread is stored: until then nothing has happened.
            new = _new_thread(params, folder)
            loaded = await writer.start_thread(new, guard=guard)
            check_settings(caller, loaded.settings, self._way.inside(caller))
            parts = await self._way.inputs.prepare(caller, params.input, folder)
            await self._way.ledger.note_thread(flight, loaded.thread.id)
            send = partial(
                writer.start_turn,
                parts,
                client_key=params.request_key,
                guard=sent.behind(guard),
                wishes=Wishes(mode=params.mode),
                output_schema=params.output_schema,
            )
            thread, turn = await self._way.first_turn(lease, loaded, send)
            result = ThreadStartResult(thread=thread, turn=turn)
            await self._way.record(caller, flight, result, turn)
            return result

        with lease.used():
            return await self._way.carrier.carry(flight, lease, steps)


def _new_thread(params: ThreadStartParams, folder: str) -> NewThread:
    return NewThread(
        cwd=folder,
        name=params.name,
        model=params.model,
        effort=params.effort,
        sandbox=params.sandbox,
        approval_policy=params.approval_policy,
    )
