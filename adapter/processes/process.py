"""One child process: started, read to its end, stopped in order, reaped. Trio shell.

PROTOCOL.md section 3, "Starting" and "Ending". The child leads its own process group.
Only we hold the write end of its input (Python's pipes are close-on-exec), so the end
of input reaches it whenever we die. No parent-death signal: it would follow a thread.

The output is handed over by a plain call, chunk by chunk: nobody can hold the reading
back, and a full pipe can neither stall a turn nor keep the child from ending.
"""

import logging
import os
import secrets
import signal
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import trio

from adapter.errors import (
    BinaryNotFoundError,
    ChildExitedError,
    ChildHungError,
    NotRecordedError,
)
from adapter.limits import (
    END_S,
    OUTPUT_AFTER_EXIT_S,
    SHELL_LOOK_S,
    SHELL_WAIT_S,
    STDOUT_CHUNK,
)
from adapter.processes.child_exit import hold_exit, wait_exit
from adapter.processes.identity import Identity
from adapter.processes.input_pipe import InputPipe
from adapter.processes.launch import Ears, Launch
from adapter.processes.log_ring import LogRing
from adapter.processes.login_shells import end_shells, snapshot_shells, still_living
from adapter.processes.process_table import identify
from adapter.processes.stragglers import end_stragglers, mark_environ
from adapter.processes.sweep import write_record
from adapter.runtime.acts import Guard
from transport.background import open_background

_LOG: Final = logging.getLogger(__name__)


class Child:
    """A running child. `open_child` makes and ends it."""

    def __init__(self, launch: Launch, ears: Ears) -> None:
        self.name = launch.name
        self.log = LogRing()
        self._launch = launch
        self._ears = ears
        self._mark = secrets.token_hex(16)
        # A direct call, not trio's worker thread: so a guard's look and the start have
        # no checkpoint between them. It takes about a millisecond (vfork).
        self._popen = subprocess.Popen(  # noqa: TID251, S603 - this is open_child
            list(launch.argv),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**launch.environ, **mark_environ(self._mark)},
            cwd=launch.cwd,
            start_new_session=True,
        )
        self.pid = self._popen.pid
        try:
            self._pipes, self._exit = self._take_over()
        except OSError:  # no descriptor is left
            self._abandon()
            raise
        ears.started(self.pid)
        self._exited = trio.Event()
        self._over = trio.Event()
        self._output_ended = trio.Event()
        self._hurry = trio.Event()
        self.shells: Sequence[Identity] = ()  # as of the last look
        self._record: Path | None = None
        self._fault: Exception | None = None
        self._hangs = False
        assert self._popen.stdin is not None
        self.input = InputPipe(self._popen.stdin)

    def _take_over(self) -> tuple[Sequence[int], int | None]:
        """Return descriptors of its output and its log, and what tells of its exit."""
        with ExitStack() as undo:
            fds: list[int] = []
            for pipe in (self._popen.stdout, self._popen.stderr):
                assert pipe is not None
                fds.append(os.dup(pipe.fileno()))
                undo.callback(os.close, fds[-1])
                pipe.close()
            held = hold_exit(self.pid)
            undo.pop_all()
        return fds, held

    def _abandon(self) -> None:
        """End and reap it before anybody has seen it; it is some microseconds old."""
        self._signal_group(signal.SIGKILL)
        self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()

    @property
    def returncode(self) -> int | None:
        """The exit status once it is reaped; negative: the signal."""
        return self._popen.returncode

    def hurry(self) -> None:
        """From now on, end without waiting for the login shell."""
        self._hurry.set()

    def give_up(self) -> None:
        """Kill it: it hangs. It leaves its block with ChildHungError."""
        self._hangs = True
        self._signal_group(signal.SIGKILL)

    def shells_alive(self) -> bool:
        """Look whether a login shell of Codex's snapshot still runs (≈ 3 ms)."""
        try:
            self.shells = snapshot_shells(self.pid)
        except OSError:
            return True  # no descriptor is left to look; it is asked again
        return bool(self.shells)

    async def serve(self, *, task_status: trio.TaskStatus["Child"]) -> None:
        """Own the child until it is reaped. Cancelling this is how it is stopped."""
        asked = True
        try:
            asked = await self._run(task_status)
        finally:
            # Right before the error leaves, so that whoever is told now cannot leave
            # the block with a lesser error first.
            self._ears.ended(None if asked else self._exit_error())
        raise self._fault or self._exit_error()

    async def _run(self, task_status: trio.TaskStatus["Child"]) -> bool:
        """Read until it is over, end it, reap it; return False: nobody asked for that."""
        asked = True
        reading = trio.CancelScope(shield=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, reading)
            try:
                if self._write_record():
                    task_status.started(self)
                    await self._over.wait()
                    asked = False
            finally:
                try:
                    with trio.CancelScope(shield=True):
                        await self._end(asked=asked)
                finally:
                    reading.cancel(reason="the child is reaped")
        return asked

    def _exit_error(self) -> ChildExitedError:
        kind = ChildHungError if self._hangs else ChildExitedError
        return kind(self.name, self.returncode, self.log.tail())

    def _write_record(self) -> bool:
        """Note who it is. Without its record nobody could sweep it: then it ends."""
        try:
            identity = identify(self.pid)
            if identity is not None:
                self._record = write_record(
                    self._launch.records, identity, mark=self._mark
                )
        except OSError as exc:
            if self._launch.unrecorded:
                _LOG.warning("%s runs without a record: %s", self.name, exc)
                return True
            self._fault = NotRecordedError(self.name)
            self._fault.__cause__ = exc
            return False
        return True

    async def _read(self, scope: trio.CancelScope) -> None:
        """Read both pipes and wait for the exit, cancelled by `scope` alone."""
        out, log = (trio.lowlevel.FdStream(fd) for fd in self._pipes)
        with scope:
            async with out, log, trio.open_nursery() as nursery:
                nursery.start_soon(self._read_output, out)
                nursery.start_soon(self._read_log, log)
                nursery.start_soon(self._wait_exit)

    async def _read_output(self, stream: trio.lowlevel.FdStream) -> None:
        while data := await _receive(stream):
            self._tell(bytes(data))
        self._tell(b"")
        self._output_ended.set()
        self._over.set()  # without its output it is of no use any more

    def _tell(self, data: bytes) -> None:
        if self._fault is not None:
            return  # only drained: a full pipe would keep it from ending
        try:
            self._ears.output(data)
        except Exception as exc:  # noqa: BLE001 - raised by `serve`
            self._fault = exc
            self._over.set()

    async def _read_log(self, stream: trio.lowlevel.FdStream) -> None:
        while data := await _receive(stream):
            self.log.add(data)

    async def _wait_exit(self) -> None:
        """Wait for the exit and leave it unreaped, so that its pid stays its own."""
        await wait_exit(self.pid, self._exit)
        self._exited.set()
        self._over.set()

    async def _end(self, *, asked: bool) -> None:
        if asked:
            await self._let_shells_finish()
        shells = self._living_shells()
        self.input.close_input()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with trio.move_on_after(END_S):
                await self._exited.wait()
                break
            if number is signal.SIGKILL:  # they would live on as orphans
                shells = self._living_shells() or shells
            self._signal_group(number)
        await self._exited.wait()  # after SIGKILL: without it the lease is not free
        self._signal_group(signal.SIGKILL)  # what outlived its leader
        killed = self._popen.wait() != 0
        if self._record is not None:
            with suppress(OSError):  # a record of the dead ends nobody
                self._record.unlink()
        with trio.move_on_after(OUTPUT_AFTER_EXIT_S):
            await self._output_ended.wait()
        try:
            await end_shells(shells)
            end = partial(end_stragglers, self._mark, self.name, killed=killed)
            await trio.to_thread.run_sync(end)
        except OSError as exc:
            text = "what %s may have left could not be looked for: %s"
            _LOG.warning(text, self.name, exc.strerror)

    def _living_shells(self) -> Sequence[Identity]:
        with suppress(OSError):  # no descriptor is left: it ends all the same
            return snapshot_shells(self.pid) or still_living(self.shells)
        return self.shells

    async def _let_shells_finish(self) -> None:
        with trio.move_on_after(SHELL_WAIT_S):
            while not self._hurry.is_set() and self.shells_alive():
                with trio.move_on_after(SHELL_LOOK_S):
                    await self._hurry.wait()

    def _signal_group(self, number: signal.Signals) -> None:
        if self._popen.returncode is None:  # not reaped: the pid is still its own
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


async def _receive(stream: trio.lowlevel.FdStream) -> bytes | bytearray:
    try:
        return await stream.receive_some(STDOUT_CHUNK)
    except trio.BrokenResourceError:
        return b""


@asynccontextmanager
async def open_child(
    launch: Launch, ears: Ears, *, guard: Guard | None = None
) -> AsyncGenerator[Child]:
    """Run a child for the length of the block; leaving it stops and reaps the child.

    `guard` is called right before the start, with no checkpoint in between. A child
    that ends unasked leaves the block with ChildExitedError, whatever its exit status.
    """
    if guard is not None:
        guard()
    try:
        child = Child(launch, ears)
    except OSError as exc:
        raise BinaryNotFoundError(f"{launch.argv[0]} cannot be run: {exc}") from exc
    async with open_background(child.serve) as running:
        yield running
