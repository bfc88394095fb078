"""What was done here, by whom: append-only JSON lines. Blocking I/O.

SECURITY.md. Content-free: ids, kinds, sizes; never a text, path, command or diff. An
entry is on the disk before what it stands for happens; where it cannot be, mutations and
allowing answers are refused, while what ends or denies something is carried out and
written down later.
"""

import json
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from agent.errors import AuditUnavailableError
from agent.limits import (
    AUDIT_BYTES,
    AUDIT_FILES,
    AUDIT_LATER,
    AUDIT_LINE,
    AUDIT_TEXT,
)
from agent.records.audit_reading import read_entries

Value = str | int | bool | None
_MODE: Final = 0o600
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Audit:
    """The log file `path`, rotated to `path.1` … by size. Any thread may write.

    `may_begin`: whether the disk has the room without which nothing new is begun.
    """

    def __init__(
        self,
        path: Path,
        *,
        now_ms: Callable[[], int],
        max_bytes: int = AUDIT_BYTES,
        files: int = AUDIT_FILES,
        may_begin: Callable[[], bool] = lambda: True,
    ) -> None:
        self._path = path
        self._now_ms = now_ms
        self._max_bytes = max_bytes
        self._files = files
        self._may_begin = may_begin
        self._descriptor: int | None = None
        self._later: deque[bytes] = deque(maxlen=AUDIT_LATER)
        self._left: deque[bytes] = deque(maxlen=AUDIT_LATER)  # for `_later`
        self._alone = threading.Lock()

    def record(self, event: str, **fields: Value) -> None:
        """Write one entry; it is durable when this returns.

        Raises: AuditUnavailableError. Then nothing of this entry stays.
        """
        if not self._may_begin():
            raise AuditUnavailableError(str(self._path), "the disk is full")
        with self._alone:
            self._flush()
            self._write(self._line(event, fields))

    def note(self, event: str, **fields: Value) -> None:
        """Write one entry now or, where the disk does not take it, later."""
        with self._alone:
            self._collect()
            self._later.append(self._line(event, fields))
            with suppress(AuditUnavailableError):
                self._flush()

    def leave(self, event: str, **fields: Value) -> None:
        """Take in one entry for whoever writes next; waits for no disk, and for nobody
        who does. It is `catch_up` that is to be called then."""
        self._left.append(self._line(event, fields))

    @property
    def is_left(self) -> bool:
        """Whether nobody has tried yet to write what was left."""
        return bool(self._left)

    @property
    def owes(self) -> bool:
        """Whether entries wait for the disk."""
        return bool(self._later or self._left)

    def catch_up(self) -> None:
        """Write what waits, as far as the disk takes it."""
        with self._alone, suppress(AuditUnavailableError):
            self._flush()

    def read(
        self, *, cursor: str | None, limit: int
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Return a page of entries, newest first, and the cursor of the next; what was
        left is written before. Raises: InvalidParams, AuditUnavailableError.
        """
        self.catch_up()
        try:
            return read_entries(
                self._path, files=self._files, cursor=cursor, limit=limit
            )
        except OSError as exc:
            raise AuditUnavailableError(str(self._path), str(exc)) from exc

    def close(self) -> None:
        """Write what waits, as far as that goes, and close the file."""
        with self._alone:
            with suppress(AuditUnavailableError):
                self._flush()
            self._close()

    def _line(self, event: str, fields: Mapping[str, Value]) -> bytes:
        entry = {"at": self._now_ms(), "event": event}
        entry |= {name: _short(value) for name, value in fields.items()}
        line = json.dumps(entry, ensure_ascii=True, separators=(",", ":"))
        if len(line) > AUDIT_LINE:
            raise ValueError(f"{event}: an audit entry must not carry content")
        return line.encode() + b"\n"

    def _collect(self) -> None:
        while self._left:
            self._later.append(self._left.popleft())

    def _flush(self) -> None:
        self._collect()
        while self._later:
            self._write(self._later[0])
            self._later.popleft()

    def _write(self, line: bytes) -> None:
        try:
            descriptor = self._opened(len(line))
            before = os.fstat(descriptor).st_size
            try:
                if os.write(descriptor, line) != len(line):
                    raise OSError("the entry was cut short")  # noqa: TRY301 - undone below
                os.fsync(descriptor)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(descriptor, before)
                raise
        except OSError as exc:
            self._close()
            raise AuditUnavailableError(str(self._path), str(exc)) from exc

    def _opened(self, size: int) -> int:
        if self._descriptor is not None and not _leads_to(self._path, self._descriptor):
            self._close()  # somebody has moved or removed it
        if self._descriptor is None:
            self._descriptor = os.open(self._path, _FLAGS, _MODE)
            os.fchmod(self._descriptor, _MODE)
            _end_line(self._path, self._descriptor)
        if os.fstat(self._descriptor).st_size + size > self._max_bytes:
            self._close()
            self._rotate()
            self._descriptor = os.open(self._path, _FLAGS, _MODE)
        return self._descriptor

    def _rotate(self) -> None:
        def named(number: int) -> Path:
            return self._path.with_name(f"{self._path.name}.{number}")

        for number in range(self._files - 2, 0, -1):
            with suppress(FileNotFoundError):
                named(number).replace(named(number + 1))
        self._path.replace(named(1))

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _leads_to(path: Path, descriptor: int) -> bool:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    held = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)


def _end_line(path: Path, descriptor: int) -> None:
    """After a crash in the middle of an entry, the next one begins on its own line."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return
    with path.open("rb") as log:
        log.seek(size - 1)
        last = log.read(1)
    if last != b"\n":
        os.write(descriptor, b"\n")


def _short(value: Value) -> Value:
    """Keep a field to one short printable line: no log is forged by a device's name."""
    if not isinstance(value, str):
        return value
    return "".join(c if c.isprintable() else "?" for c in value[:AUDIT_TEXT])
