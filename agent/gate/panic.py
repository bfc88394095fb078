"""The owner's panic switch: `gateway/lock` and `gateway/unlock`. Trio shell.

PROTOCOL.md section 3, SECURITY.md. Locked means: no device has a session, handshakes meet
silence, nothing is written, and what a device had begun before is not carried on, also
not after an unlock. The memory comes first, all of it before the first checkpoint, then
the disk; what has begun is carried to its end, also where the asking session ends before.
It holds over restarts: a file in the state folder, whose being there is all that counts.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import trio

from agent.access.rights import Rights
from agent.changes import Changes
from agent.errors import AuditUnavailableError
from agent.gate.gatekeeper import GateKeeper
from agent.mutations.refusals import storage_failed
from agent.offload import in_thread
from agent.records.audit import Audit
from agent.records.reserve import Insist, at_once
from agent.sessions.acts import Acts
from agent.sessions.eviction import Evicted, Eviction
from agent.sessions.router import Call
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

    `devices`: the ids of all devices, and of all whose messages wait; not the
    workstation's own. `withdraw_offer` ends a pairing that is under way.
    """

    def __init__(
        self,
        file: LockFile,
        *,
        keeper: GateKeeper,
        acts: Acts,
        audit: Audit,
        eviction: Eviction,
        devices: Callable[[], Iterable[str]],
        withdraw_offer: Callable[[str], None],
    ) -> None:
        self._file = file
        self._keeper = keeper
        self._acts = acts
        self._audit = audit
        self._eviction = eviction
        self._devices = devices
        self._withdraw_offer = withdraw_offer
        self._alone = trio.Lock()
        self._times = 0  # locked since this Agent runs
        self._under_way = 0  # locks that are not carried to their end yet
        self._ended = Changes()
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

    async def recall(self) -> None:
        """At a start that finds the gate locked: what devices had queued is dropped."""
        if self.is_locked:
            dropped = self._eviction.drop_queues(self._devices())
            await self._eviction.write_down(dropped)

    async def lock(self, call: Call, params: GatewayLockParams) -> GatewayLockResult:
        """`gateway/lock`: nothing of any device happens any more when this answers."""
        del call
        gone = self._shut(stop=params.stop)
        return await self._acts.carry(partial(self._lock, gone)).wait()

    async def _lock(self, gone: Evicted) -> GatewayLockResult:
        try:
            kept = await self._keep(stop=gone.turns)
            await self._eviction.finish(gone)
        finally:
            self._under_way -= 1
            self._ended.ring()
        if not kept:
            raise Internal(
                "The gate is locked now, but that could not be written: make room in "
                "the state folder before the Agent restarts. It is written then by itself."
            )
        return GatewayLockResult(gate=self._keeper.state)

    async def _keep(self, *, stop: bool) -> bool:
        """Write it down, also where the Agent closes; return whether it is written."""
        kept = False
        with trio.CancelScope(shield=True):
            async with self._alone:
                kept = await _written(self._file)
                self._audit.note("gateway/lock", stop=stop)
        return kept

    async def unlock(
        self, call: Call, params: GatewayUnlockParams
    ) -> GatewayLockResult:
        """`gateway/unlock`: devices may come again. A lock that comes meanwhile wins.

        A lock that is not carried to its end yet is waited for: it ends what devices
        had begun, and must not meet what they begin now.
        """
        del call, params
        return await self._acts.carry(partial(self._unlock, self._times)).wait()

    async def _unlock(self, times: int) -> GatewayLockResult:
        while self._under_way:
            await self._ended.wait()
        async with self._alone:
            if self._times == times:
                await self._unwrite()
            if self._times == times:
                self.is_locked = False
                self._keeper.set_locked(locked=False)
        return GatewayLockResult(gate=self._keeper.state)

    async def _unwrite(self) -> None:
        # Else the next Agent would find the gate open, and send it.
        if not await self._eviction.write_down({}):
            raise storage_failed("ledger")
        try:
            await in_thread(lambda: self._audit.record("gateway/unlock"))
            await in_thread(self._file.remove)
        except (AuditUnavailableError, OSError) as exc:
            raise storage_failed("state folder") from exc

    def _shut(self, *, stop: bool) -> Evicted:
        """Lock in memory, and put every device out. No checkpoint."""
        self.is_locked = True
        self._times += 1
        self._under_way += 1
        # First: only the workstation sees this gate.
        gone = self._eviction.begin(self._devices(), CloseCode.GOING_AWAY, stop=stop)
        self._keeper.set_locked(locked=True)
        self._withdraw_offer("The gate was locked.")
        return gone


async def _written(file: LockFile) -> bool:
    try:
        await in_thread(file.put)
    except (OSError, KeyFileError):
        return False
    return True
