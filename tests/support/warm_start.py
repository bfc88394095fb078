"""Stands for a command that runs in a process which has loaded all of it; see `warm_cli`.

It loads next to nothing itself, and imports nothing of ours.
"""

import marshal
import os
import signal
import socket
import sys

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(path: str, *args: str) -> None:
    """Ask for the command, pass signals on, and end as it ends."""
    if args[:1] == ("serve",):  # an Agent is known by its own environment
        plain = [sys.executable, "-u", "-m", "clients.cli", *args]
        os.execv(sys.executable, plain)  # noqa: S606 - no shell is wanted
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        asked = marshal.dumps((list(args), dict(os.environ), os.getcwd()))
        signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
        socket.send_fds(server, [asked], [0, 1, 2])
        pid = int.from_bytes(server.recv(8))
        for number in _FORWARDED:
            signal.signal(number, lambda number, _: os.kill(pid, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
        for file in (0, 1, 2):
            os.close(file)
        code = int.from_bytes(server.recv(8), signed=True)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main(*sys.argv[1:])
