"""Change what a thread's later turns run with. Trio shell. PROTOCOL.md section 4."""

from adapter.runtime.threads import Wishes
from adapter.shapes.settings import settings_shown
from agent.access.scopes import Caller, check_wishes
from agent.mutations.carry import Sent
from agent.mutations.taking import Taking, Wanted
from agent.mutations.way import Way
from agent.records.flight import Flight
from transport.errors import InvalidParams
from transport.protocol.threads import ThreadResult, ThreadSettingsParams


def check_settings_change(caller: Caller, params: ThreadSettingsParams) -> None:
    """Raise `InvalidParams`, `Forbidden` for what can be set on no thread."""
    _check_names_something(params)
    check_wishes(caller, sandbox=params.sandbox, policy=params.approval_policy)


class SettingsChange:
    """`thread/settings`, under the lock of its thread."""

    def __init__(self, way: Way, taking: Taking) -> None:
        self._way = way
        self._taking = taking

    async def run(
        self, caller: Caller, params: ThreadSettingsParams, flight: Flight
    ) -> ThreadResult:
        """Change them; return the thread as it is then. Raises: Refusal."""
        wanted = Wanted(thread_id=params.thread_id, allow_pending=params.allow_pending)
        wishes = Wishes(
            model=params.model,
            effort=params.effort,
            mode=params.mode,
            cwd=await self._way.folder(caller, params.cwd),
            sandbox=params.sandbox,
            approval_policy=params.approval_policy,
        )
        async with self._taking.taken(caller, wanted, flight) as lease:

            async def steps(sent: Sent) -> ThreadResult:
                await self._way.ledger.hand(flight)
                now = await lease.started_writer.change_settings(
                    wishes,
                    guard=sent.behind(self._way.guard(caller, params.thread_id)),
                )
                shown = {"settings": settings_shown(now), "cwd": now.cwd}
                thread = self._way.now(lease).model_copy(update=shown)
                result = ThreadResult(thread=thread)
                await self._way.ledger.done(flight, result, None)
                return result

            return await self._way.carrier.carry(flight, lease, steps)


def _check_names_something(params: ThreadSettingsParams) -> None:
    named = (
        params.model,
        params.effort,
        params.mode,
        params.sandbox,
        params.approval_policy,
        params.cwd,
    )
    if not any(named):
        raise InvalidParams(
            "Name at least one setting to change.",
            data={"field": "model", "reason": "nothing is named"},
        )
