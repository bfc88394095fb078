"""Runs `threadgate serve` with an audit hook: what it opens and starts goes to a file.

`python -m tests.support.audited_agent LOG HOME -- serve …`. Every audit event of the
interpreter that names a path below HOME, and every program that is started, is written
to LOG as one JSON line. It is a program of its own because a hook cannot be taken away.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

FILES: Final = frozenset(
    {
        "open",
        "sqlite3.connect",
        "os.listdir",
        "os.scandir",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.link",
        "os.symlink",
        "os.truncate",
        "os.chmod",
        "os.utime",
    }
)


def install(log_path: str, home: str) -> None:
    """Begin to write down."""
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    home = os.path.realpath(home)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        note: dict[str, Any]
        if event == "subprocess.Popen":
            note = {"argv": [os.fspath(word) for word in args[1]]}
        elif event in FILES and any(_below(arg, home) for arg in args):
            note = {"event": event, "args": [str(arg) for arg in args]}
        else:
            return
        os.write(log, json.dumps(note).encode() + b"\n")

    sys.addaudithook(hook)


def _below(arg: object, home: str) -> bool:
    if not isinstance(arg, str | bytes | Path):
        return False
    path = os.path.realpath(os.fsdecode(arg))
    return path == home or path.startswith(home + os.sep)


if __name__ == "__main__":
    install(sys.argv[1], sys.argv[2])
    from clients.cli.app import main

    sys.argv = ["threadgate", *sys.argv[4:]]
    main()
