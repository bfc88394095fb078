"""A program's stdin and stdout as a carrier: `ssh HOST threadgate stdio`. Trio shell.

PROTOCOL.md section 1. It carries ciphertext only, whoever runs the other end. The program
leads its own process group and has no terminal, so it cannot ask for a password. Nothing
secret is in its arguments or its environment. Closing the stream ends it.
"""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import trio

from transport.errors import UnreachableError
from transport.limits import CHILD_END_S, CHILD_WORDS, RECEIVE_CHUNK

SSH: Final = "ssh"
STDIO: Final = "stdio"
_SSH_OPTIONS: Final = (
    "-T",  # no terminal there
    "-oBatchMode=yes",  # nobody is here to type a password
    "-oClearAllForwardings=yes",
    "-oServerAliveInterval=15",
)
# A host or a user that begins with a dash would be an option of ssh.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*$")
_HOST: Final = re.compile(
    r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*|[0-9a-fA-F:]*:[0-9a-fA-F:.]*)$"
)
_PROGRAM: Final = re.compile(r"/[A-Za-z0-9/._-]+$")  # a shell there reads it


def is_stdio(url: str) -> bool:
    """Whether a program has to be started to dial this."""
    try:
        return urlsplit(url).scheme in {SSH, STDIO}
    except ValueError:  # no url at all
        return False


def command_of(url: str) -> list[str]:
    """Return what to run for `ssh://[user@]host[:port][/path/of/threadgate]` or `stdio:COMMAND`.

    Raises: UnreachableError where it cannot be dialled.
    """
    parts = urlsplit(url)
    if parts.scheme == STDIO:
        words = _words(unquote(parts.path))
        if words:
            return words
    elif parts.scheme == SSH and not (parts.query or parts.fragment or parts.password):
        with suppress(ValueError):
            return _ssh(parts.username, parts.hostname, parts.port, parts.path)
    raise UnreachableError(f"this client cannot dial {url}")


def url_of(command: Sequence[str]) -> str:
    """Return the url of a command, to be kept in a book of hosts."""
    return f"{STDIO}:{quote(shlex.join(command), safe='/ =@:,+')}"


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _ssh(user: str | None, host: str | None, port: int | None, path: str) -> list[str]:
    program = "threadgate" if path in {"", "/"} else path
    if not host or not _HOST.match(host) or (user and not _NAME.match(user)):
        raise ValueError(host)
    if program.startswith("/") and not _PROGRAM.match(program):
        raise ValueError(program)
    words = ["ssh", *_SSH_OPTIONS]
    words += [f"-p{port}"] if port else []
    words += [f"-l{user}"] if user else []
    return [*words, "--", host, f"{program} stdio"]


async def connect(url: str) -> "ChildStream":
    """Start the program of `url`; whether it leads anywhere shows the first answer.

    Raises: UnreachableError: it cannot be started.
    """
    words = command_of(url)
    try:
        process = await trio.lowlevel.open_process(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as exc:
        raise UnreachableError(f"{words[0]} cannot be run ({exc.strerror})") from exc
    return ChildStream(process, url)


class ChildStream(trio.abc.Stream):
    """The child's stdout to read, its stdin to write; its stderr is read beside.

    A system task reads stderr, since a stream has no nursery: it ends with the stream.
    """

    def __init__(self, process: trio.Process, url: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._stderr = process.stderr
        self._url = url
        self._said = b""
        self._drained = trio.Event()
        self._gone = False
        trio.lowlevel.spawn_system_task(self._drain)

    @property
    def pid(self) -> int:
        """The child, and the leader of its process group."""
        return self._process.pid

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write to the child."""
        await self._stdin.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Return when the child might take more."""
        await self._stdin.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Read what the child wrote; `b""` when it has closed its stdout."""
        return await self._stdout.receive_some(max_bytes)

    async def aclose(self) -> None:
        """End the child: end of input, TERM after a second, KILL after one more."""
        # A pipe's close only gives way, which must not keep the rest from ending.
        with trio.CancelScope(shield=True):
            await self._stdin.aclose()
            await self._stdout.aclose()
        try:
            with trio.move_on_after(CHILD_END_S):
                await self._process.wait()
        finally:
            if self._process.returncode is None:
                self._signal(signal.SIGTERM)
                with trio.move_on_after(CHILD_END_S, shield=True):
                    await self._process.wait()
            self._signal(signal.SIGKILL)  # and whatever it has left of its group
            self._gone = True
            with trio.move_on_after(CHILD_END_S, shield=True):
                await self._process.wait()
            with trio.move_on_after(CHILD_END_S, shield=True):
                await self._stderr.aclose()

    def _signal(self, number: signal.Signals) -> None:
        if self._gone:
            return  # closed before: the group's number may be another's by now
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    async def failure(self) -> UnreachableError | None:
        """Return why the child failed, where it did by itself; waits a second for it."""
        with trio.move_on_after(CHILD_END_S):
            await self._process.wait()
            await self._drained.wait()
        code = self._process.returncode
        if code is None or code <= 0:
            return None
        lines = self._said.decode(errors="replace").strip().splitlines()
        said = "".join(c if c.isprintable() else " " for c in lines[-1:] and lines[-1])
        return UnreachableError(f"{self._url}: {said or f'it ended with {code}'}")

    async def _drain(self) -> None:
        try:
            while data := await self._stderr.receive_some(RECEIVE_CHUNK):
                self._said = (self._said + data)[-CHILD_WORDS:]
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            pass
        finally:
            self._drained.set()
