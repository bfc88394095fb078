"""Who else can write Codex threads now. Trio shell over the process table.

PROTOCOL.md section 3 (Gate). `look()` reads everything anew and has no checkpoint: it
stands right before an act. `serve()` keeps an eye on the table in between, cheaply: the
kernel's fork counter says whether any process was made at all. Two traps are known: an
`exec` changes a program under its old pid (so young pids are looked at again, and all of
them in every full look), and a pid is used again (so a pid counts with its start time).
"""

import logging
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, NoReturn, Protocol

import trio

from adapter.runtime.program import RuntimeInfo
from agent.clocks import boot_s
from agent.errors import ProcessTableError
from agent.gate.binary_versions import Versions
from agent.gate.engines import Foreign, Look, Named, Process, Programs, Role
from agent.gate.proctable import HERE, ProcessTable
from agent.limits import ASK_AGAIN_S, FULL_SCAN_S, LOOK_S, YOUNG_S
from transport.background import open_background
from transport.protocol.gateway import Writer, WriterKind

_UNREADABLE: Final = (OSError, ProcessTableError)
_LOG: Final = logging.getLogger(__name__)


class Watch(Protocol):
    """What the door needs to know about other programs."""

    def look(self) -> Look:
        """Look at everything, now."""
        ...

    def holders(self, thread_ids: Collection[str]) -> dict[str, Writer]:
        """Return which of these threads another process has locked."""
        ...


class WriterWatch:
    """The process table, as far as it concerns our CODEX_HOME.

    `own_pids`: our app-servers alive now; they and what they started do not count.
    `on_look` is called with what each tick of `serve` saw; it must not block.
    """

    def __init__(
        self,
        *,
        own_pids: Callable[[], Collection[int]],
        home: Path,
        programs: Programs | None = None,
        on_look: Callable[[Look], None] | None = None,
        table: ProcessTable = HERE,
    ) -> None:
        self._own_pids = own_pids
        self._home = Path(os.path.realpath(home))
        self._programs = programs or Programs()
        self.on_look = on_look
        self._table = table
        self._versions = Versions(table)
        self._boot_ms = self._table.boot_ms()
        self._interesting: dict[str, bool] = {}
        self._seen: dict[int, float] = {}  # pid → when it was first seen (boot_s)
        self._candidates: dict[int, Process] = {}
        self._forks = b""
        self._is_blind = False

    def look(self) -> Look:
        """Read the whole table anew and return everybody else who can write."""
        try:
            self._read_all()
        except _UNREADABLE as exc:
            return self._blinded(exc)
        self._is_blind = False
        return self._judged()

    def glance(self) -> Look:
        """Look at what can have changed since the last look."""
        if self._is_blind:
            return self.look()
        try:
            self._read_news()
        except _UNREADABLE as exc:
            return self._blinded(exc)
        return self._judged()

    def _read_all(self) -> None:
        forks = self._table.fork_counter()
        now = boot_s()
        alive = self._table.pids()
        self._seen = {pid: self._seen.get(pid, now) for pid in alive}
        self._candidates = {}
        for pid in alive:
            self._examine(pid)
        self._forks = forks

    def _read_news(self) -> None:
        now = boot_s()
        forks = self._table.fork_counter()
        if forks != self._forks:
            alive = self._table.pids()
            self._seen = {pid: self._seen.get(pid, now) for pid in alive}
            self._forks = forks
        for pid in [pid for pid, at in self._seen.items() if now - at < YOUNG_S]:
            self._examine(pid)
        for pid, process in list(self._candidates.items()):
            if self._table.started(pid) != process.started:
                del self._candidates[pid]

    def _blinded(self, exc: Exception) -> Look:
        """No descriptors left, say: until a look at everything, anybody may write."""
        if not self._is_blind:
            _LOG.warning("the process table cannot be read: %s", exc)
        self._is_blind = True
        return Look(blind=True)

    def know(self, info: RuntimeInfo) -> None:
        """Our own codex: others that run the same file need not be asked."""
        self._versions.know(info.pid, locks=info.locks_threads)

    def settling_s(self) -> float:
        """Return for how long a desktop that starts right now should go first."""
        newest = max(
            (one.since for one in self.look().foreign if one.is_desktop), default=0
        )
        if not newest:
            return 0.0
        try:
            age = self._table.uptime_s() - (newest - self._boot_ms) / 1_000
        except _UNREADABLE:
            return YOUNG_S
        # Bounded above too: the wall clock, which some platforms tell by, can go back.
        return min(YOUNG_S, max(0.0, YOUNG_S - age))

    def holders(self, thread_ids: Collection[str]) -> dict[str, Writer]:
        """Return which of these threads a process that is not ours has locked.

        None where that cannot be read: Codex's own locks stand all the same.
        """
        try:
            return self._held_by_others(thread_ids)
        except _UNREADABLE:
            return {}

    def _held_by_others(self, thread_ids: Collection[str]) -> dict[str, Writer]:
        owners = self._table.lock_owners()
        held = {
            thread_id: self._table.thread_holder(self._home, thread_id, owners)
            for thread_id in thread_ids
        }
        return {
            thread_id: writer
            for thread_id, pid in held.items()
            if pid is not None and (writer := self._holder(pid)) is not None
        }

    async def look_closely(self) -> Look:
        """Look, ask the binaries that are not known yet (`VERSION_S` each), look again."""
        self.look()
        await self._versions.ask()
        return self.look()

    def lock_holders(self) -> dict[int, int]:
        """Return who else holds threads: pid → how many.

        Raises: OSError, ProcessTableError where that cannot be read.
        """
        pids = set(self._table.lock_owners().values()) - set(self._own_pids())
        held = {pid: self._table.held_locks(self._home, pid) for pid in pids}
        return {pid: count for pid, count in held.items() if count}

    async def serve(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Look four times a second until cancelled."""
        await self._learn_versions()
        self._publish(self.look())
        async with open_background(self._keep_learning):
            task_status.started()
            await self._keep_looking()

    async def _keep_looking(self) -> NoReturn:
        full_at = trio.current_time() + FULL_SCAN_S
        while True:
            await trio.sleep(LOOK_S)
            if trio.current_time() >= full_at:
                self._publish(self.look())
                full_at = trio.current_time() + FULL_SCAN_S
            else:
                self._publish(self.glance())

    async def _keep_learning(self, *, task_status: trio.TaskStatus[None]) -> NoReturn:
        """Beside the looks: a binary may take its time to answer."""
        task_status.started()
        again_at = trio.current_time() + ASK_AGAIN_S
        while True:
            if not self._versions.has_questions:
                with trio.move_on_at(again_at):
                    await self._versions.wanted.wait()
            await self._learn_versions()
            if trio.current_time() >= again_at:
                self._versions.forget_failures()
                again_at = trio.current_time() + ASK_AGAIN_S

    async def _learn_versions(self) -> None:
        if await self._versions.ask():
            self._publish(self.look())

    def _publish(self, look: Look) -> None:
        if self.on_look is not None:
            self.on_look(look)

    def _examine(self, pid: int) -> None:
        exe = self._table.read_exe(pid)
        if exe is None or not self._is_interesting(exe):
            self._candidates.pop(pid, None)
            return
        process = self._table.read_process(pid, exe)
        if process is None:
            self._candidates.pop(pid, None)
        else:
            self._candidates[pid] = process

    def _is_interesting(self, exe: str) -> bool:
        known = self._interesting.get(exe)
        if known is None:
            if len(self._interesting) > 10_000:  # paths of all programs ever run
                self._interesting.clear()
            known = self._interesting[exe] = self._programs.interesting(exe)
        return known

    def _judged(self) -> Look:
        own = frozenset(self._own_pids())
        found = [
            foreign
            for process in self._candidates.values()
            if (foreign := self._judge(process, own)) is not None
        ]
        return Look(foreign=tuple(sorted(found, key=lambda one: (one.since, one.pid))))

    def _judge(self, process: Process, own: frozenset[int]) -> Foreign | None:
        if process.pid in own or not self._is_ours(process.home):
            return None
        line = self._table.ancestors(process)
        if any(parent.pid in own for parent in line):
            return None
        named = self._programs.name(process, line)
        if named is None:
            return None
        return self._with_locks(process, named)

    def _is_ours(self, home: str | None) -> bool:
        """Whether it is our CODEX_HOME; one that cannot be told counts as ours."""
        if home is None or home == str(self._home):
            return True
        try:  # one folder can have two names where case does not count
            return os.path.samefile(home, self._home)
        except OSError:
            return False

    def _with_locks(self, process: Process, named: Named) -> Foreign | None:
        locks = False
        if named.role is Role.ENGINE and named.kind is not WriterKind.DESKTOP:
            answer = self._versions.of(process.pid)
            if answer is not None and answer.is_other and not named.sure:
                return None  # another program that happens to have that name
            locks = answer is not None and answer.locks
        since = self._boot_ms + round(process.started * 1_000)
        return Foreign(pid=process.pid, since=since, named=named, locks=locks)

    def _holder(self, pid: int) -> Writer | None:
        own = frozenset(self._own_pids())
        exe = self._table.read_exe(pid)
        if pid in own:
            return None
        process = self._table.read_process(pid, exe) if exe is not None else None
        if process is None:
            name = "another process"
            return Writer(kind=WriterKind.UNKNOWN, name=name, pid=pid, since=0)
        line = self._table.ancestors(process)
        if any(parent.pid in own for parent in line):
            return None
        since = self._boot_ms + round(process.started * 1_000)
        named = self._programs.name(process, line)
        kind = named.kind if named else WriterKind.UNKNOWN
        name = named.name if named else Path(process.exe).name[:40]
        return Writer(kind=kind, name=name, pid=pid, since=since)
