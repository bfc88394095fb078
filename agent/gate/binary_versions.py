"""Which codex a running program is: its own file is asked, once. Trio shell.

PROTOCOL.md section 3 (Gate): a codex before 0.147 takes no lock on a thread, so whether
a terminal's codex may run beside our writers depends on its version.
"""

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass

import trio

from adapter.calls.versions import FIRST_LOCKING
from adapter.processes.binary import NO_HOME
from agent.changes import Changes
from agent.gate.engine_commands import read_version
from agent.gate.proctable import HERE, ProcessTable
from agent.limits import VERSION_S, VERSIONS_KEPT

Binary = tuple[int, int, int]  # device, inode, time of change


@dataclass(frozen=True, slots=True)
class Answer:
    """What a binary said to `--version`. `known`: it said anything at all."""

    known: bool
    is_codex: bool
    locks: bool

    @property
    def is_other(self) -> bool:
        """Whether it said that it is something else."""
        return self.known and not self.is_codex


class Versions:
    """Which binaries take Codex's lock per thread; each is asked once."""

    def __init__(self, table: ProcessTable = HERE) -> None:
        self._table = table
        self._answers: dict[Binary, Answer] = {}
        self._unasked: dict[Binary, int] = {}
        self.wanted = Changes()

    def know(self, pid: int, *, locks: bool) -> None:
        """The binary of this process is a codex that we know without asking."""
        key = self._binary(pid)
        if key is not None:
            self._answers[key] = Answer(known=True, is_codex=True, locks=locks)

    def of(self, pid: int) -> Answer | None:
        """Return what is known of the binary that this process runs."""
        key = self._binary(pid)
        if key is None:
            return None
        answer = self._answers.get(key)
        if answer is None:
            self._unasked[key] = pid
            self.wanted.ring()
        return answer

    @property
    def has_questions(self) -> bool:
        """Whether a binary waits to be asked."""
        return bool(self._unasked)

    async def ask(self) -> bool:
        """Ask the binaries that nobody has asked; return whether anything was learnt."""
        asked = list(self._unasked.items())
        self._unasked.clear()
        for key, pid in asked:
            answer = await _asked(self._table.running_file(pid))
            if self._binary(pid) == key:  # else it may be of what that pid became
                self._answers[key] = answer
        for old in list(self._answers)[: -VERSIONS_KEPT or None]:
            del self._answers[old]
        return bool(asked)

    def forget_failures(self) -> None:
        """Let those be asked again that did not answer (the machine was busy)."""
        self._answers = {key: one for key, one in self._answers.items() if one.known}

    def _binary(self, pid: int) -> Binary | None:
        file = self._table.running_file(pid)
        try:
            found = os.stat(file) if file is not None else None
        except OSError:
            return None
        return found and (found.st_dev, found.st_ino, found.st_mtime_ns)


async def _asked(file: str | None) -> Answer:
    """Run the very file that the process runs, even where an update has deleted it."""
    output = ""
    if file is None:
        return Answer(known=False, is_codex=False, locks=False)
    with suppress(OSError, subprocess.SubprocessError), trio.move_on_after(VERSION_S):
        done = await trio.run_process(
            ["codex", "--version"],
            executable=file,
            env={"PATH": os.defpath, "CODEX_HOME": NO_HOME},
            stdin=subprocess.DEVNULL,
            capture_stdout=True,
            capture_stderr=True,
            start_new_session=True,
        )
        output = done.stdout.decode(errors="replace")
    version = read_version(output)
    return Answer(
        known=bool(output),
        is_codex=version is not None,
        locks=version is not None and version >= FIRST_LOCKING,
    )
