"""The owner's panic switch: `gateway/lock` and `gateway/unlock`. Trio shell.

PROTOCOL.md section 3, SECURITY.md. Locked means: no device has a session, handshakes meet
silence, nothing is written, and what a device had begun before is not carried on, also
not after an unlock. The memory comes first, then the sessions, then the disk. It holds
over restarts: a file in the state folder, whose being there is all that counts.
"""

import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import trio

from agent.access.rights import Rights
from agent.access.scopes import LOCAL
from agent.edge_limits import REVOKING_S
from agent.errors import AuditUnavailableError
from agent.gate.gatekeeper import GateKeeper
from agent.mutations.refusals import storage_failed
from agent.offload import in_thread
from agent.records.audit import Audit
from agent.records.reserve import Insist, at_once
from agent.sessions.acts import Acts
from agent.sessions.router import Call
from agent.sessions.session_table import SessionTable
from agent.sessions.sessions import Session
from transport.errors import CloseCode, CodexUnavailable, Internal, KeyFileError
from transport.keys import write_secret_file
from transport.protocol.admin import (
    GatewayLockParams,
    GatewayLockResult,
    GatewayUnlockParams,
)

_NAME = "locked"


class LockFile:
    """Remembers over restarts that the owner locked the gate.

    `insist`: runs a write for which a full disk has kept room.
    """

    def __init__(self, folder: Path, *, insist: Insist = at_once) -> None:
        self._path = folder / _NAME
        self._insist = insist
        self._owed = False
        self._alone = threading.Lock()

    def is_there(self) -> bool:
        """Whether the gate is to be locked. What cannot be looked at counts as a yes."""
        try:
            self._path.lstat()
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return True

    def put(self) -> None:
        """Write it; durable when this returns. Raises: OSError, KeyFileError."""
        with self._alone:
            self._owed = True
            self._insist(self._write)

    def remove(self) -> None:
        """Remove it; twice is harmless. Raises: OSError."""
        with self._alone:
            self._path.unlink(missing_ok=True)
            self._owed = False

    @property
    def is_owed(self) -> bool:
        """Whether a full disk did not take it."""
        return self._owed

    def catch_up(self) -> None:
        """Write it where that is owed, if the disk takes it now."""
        with self._alone, suppress(OSError, KeyFileError):
            if self._owed:
                self._insist(self._write)

    def _write(self) -> None:
        write_secret_file(self._path, b"`threadgate unlock` removes this file.\n")
        self._owed = False


class PanicSwitch:
    """Locks and unlocks the whole Agent.

    `devices`: the ids of all devices. `withdraw_offer` ends a pairing that is under way.
    """

    def __init__(
        self,
        file: LockFile,
        *,
        keeper: GateKeeper,
        table: SessionTable[Session],
        acts: Acts,
        audit: Audit,
        devices: Callable[[], Iterable[str]],
        withdraw_offer: Callable[[str], None],
        stop_turns_of: Callable[[str], Awaitable[object]],
        drop_queue_of: Callable[[str], Awaitable[None]],
    ) -> None:
        self._file = file
        self._keeper = keeper
        self._table = table
        self._acts = acts
        self._audit = audit
        self._devices = devices
        self._withdraw_offer = withdraw_offer
        self._stop_turns_of = stop_turns_of
        self._drop_queue_of = drop_queue_of
        self._alone = trio.Lock()
        self._times = 0  # locked since this Agent runs
        self.is_locked = file.is_there()
        keeper.set_locked(locked=self.is_locked)

    def check(self) -> None:
        """Raise `CodexUnavailable` while it is locked."""
        if self.is_locked:
            raise CodexUnavailable(
                "The gate is locked: unlock it first (`threadgate unlock`).",
                data={"gate": self._keeper.state.wire()},
            )

    def bound(self, rights: Rights) -> Rights:
        """Return a device's rights, which end for good when the gate is locked."""
        times, alive = self._times, rights.caller.alive

        def lives() -> bool:
            return self._times == times and not self.is_locked and alive()

        return replace(rights, caller=replace(rights.caller, alive=lives))

    async def lock(self, call: Call, params: GatewayLockParams) -> GatewayLockResult:
        """`gateway/lock`: nothing of any device happens any more when this answers."""
        del call
        sessions = self._shut()
        async with self._alone:
            kept = await _written(self._file)
            self._audit.note("gateway/lock", stop=params.stop)
        with trio.move_on_after(REVOKING_S):
            for device_id in self._devices():
                await self._drop_queue_of(device_id)
            for session in sessions:
                await session.wait_gone()
            for device_id in self._devices():
                await self._acts.stop(device_id)
                if params.stop:
                    await self._stop_turns_of(device_id)
        if not kept:
            raise Internal(
                "The gate is locked now, but that could not be written: make room in "
                "the state folder before the Agent restarts. It is written then by itself."
            )
        return GatewayLockResult(gate=self._keeper.state)

    async def unlock(
        self, call: Call, params: GatewayUnlockParams
    ) -> GatewayLockResult:
        """`gateway/unlock`: devices may come again. A lock that comes meanwhile wins."""
        del call, params
        times = self._times
        async with self._alone:
            try:
                await in_thread(lambda: self._audit.record("gateway/unlock"))
                await in_thread(self._file.remove)
            except (AuditUnavailableError, OSError) as exc:
                raise storage_failed("state folder") from exc
            if self._times == times:
                self.is_locked = False
                self._keeper.set_locked(locked=False)
        return GatewayLockResult(gate=self._keeper.state)

    def _shut(self) -> list[Session]:
        """Lock in memory, and hang up on every device. No checkpoint."""
        self.is_locked = True
        self._times += 1
        sessions = [one for one in self._table if one.device_id != LOCAL]
        for session in sessions:  # first: only the workstation sees this gate
            session.end(CloseCode.GOING_AWAY)
        self._keeper.set_locked(locked=True)
        self._withdraw_offer("The gate was locked.")
        return sessions


async def _written(file: LockFile) -> bool:
    try:
        await in_thread(file.put)
    except (OSError, KeyFileError):
        return False
    return True
