"""Commands of ours as processes that need not load Python and all of the program first.

To load takes a second, which tests that type dozens of commands would spend on nothing
else. A server that has loaded all of it forks for each command; `warm_start` stands for
the command: its arguments, environment, folder, input, output, signals and exit code are
the command's. The very start of the program is tested by those that start it plainly.
"""

import gc
import marshal
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from io import FileIO, TextIOWrapper
from pathlib import Path
from typing import Final

from clients.cli import demo_actors
from tests.support.leftovers import MARK_NAME

_ROOT: Final = Path(__file__).parents[2]
_START: Final = Path(__file__).with_name("warm_start.py")


@contextmanager
def warm_commands(folder: Path) -> Generator[tuple[str, ...]]:
    """Run the server; yield the beginning of a command's argv."""
    path = folder / "warm.sock"
    unmarked = {k: v for k, v in os.environ.items() if k != MARK_NAME}
    argv = [sys.executable, "-m", "tests.support.warm_cli", str(path)]
    with subprocess.Popen(  # noqa: TID251 - it outlives tests, and belongs to none
        argv, cwd=_ROOT, env=unmarked, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        try:
            yield _beginning(str(path))
        finally:
            server.stdin.close()


def _beginning(path: str) -> tuple[str, ...]:
    return (sys.executable, "-ISE", str(_START), path)


def serve(path: str) -> None:
    """Fork for each command until our input ends."""
    _load_all()
    setattr(demo_actors, "_COMMAND", _beginning(path))  # noqa: B010 - also of a warm demo
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # minders are reaped by the kernel
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        print("ready", flush=True)
        waited_for = [listener.fileno(), sys.stdin.fileno()]
        while sys.stdin.fileno() not in select.select(waited_for, [], [])[0]:
            asking, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _mind(asking)
            asking.close()


def _load_all() -> None:
    cli = import_module("clients.cli")
    for module in pkgutil.iter_modules(cli.__path__, "clients.cli."):
        import_module(module.name)
    gc.collect()
    gc.freeze()


def _mind(asking: socket.socket) -> None:
    """Start what is asked for, tell its pid and how it ends; kill it if nobody asks."""
    data, files, _, _ = socket.recv_fds(asking, 1 << 20, 3)
    pid = os.fork()
    if pid == 0:
        asking.close()
        os._exit(_run(files, *marshal.loads(data)))  # noqa: S302 - our own words
    for file in files:
        os.close(file)
    asking.sendall(pid.to_bytes(8))
    exits = os.pidfd_open(pid)
    if exits not in select.select([exits, asking.fileno()], [], [])[0]:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    asking.sendall(os.waitstatus_to_exitcode(status).to_bytes(8, signed=True))
    os._exit(0)


def _run(files: list[int], args: list[str], environ: dict[str, str], cwd: str) -> int:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    sys.stdin = TextIOWrapper(FileIO(0))
    sys.stdout = TextIOWrapper(FileIO(1, "w"), write_through=True)
    sys.stderr = TextIOWrapper(
        FileIO(2, "w"), errors="backslashreplace", write_through=True
    )
    main = import_module("clients.cli.__main__")
    sys.argv = [str(main.__file__), *args]
    try:
        main.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as Python's own end does
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    serve(sys.argv[1])
