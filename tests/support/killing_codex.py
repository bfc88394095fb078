"""A codex that is killed some ms after it has answered: the real one, behind a pipe.

`place_killing(folder, codex)` writes an executable that stands where codex stands and
hands every line on, both ways. `kill_after(folder, method, ms)` arms it: the process
that is asked that method next is killed so long after its answer went through.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from adapter.processes.binary import Codex

ROOT: Final = Path(__file__).parents[2]
ARMED: Final = "armed.json"
LAST_WORDS_S: Final = 1.0  # what codex started may keep its output open


def place_killing(folder: Path, codex: Codex) -> Codex:
    """Write the program."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "codex"
    program.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.support.killing_codex import main\n"
        f"main({str(folder)!r}, {str(codex.path)!r})\n"
    )
    program.chmod(0o755)
    return replace(codex, path=program)


def kill_after(folder: Path, method: str, ms: float) -> None:
    """Arm it, for one answer."""
    staged = folder / "staged"
    staged.write_text(json.dumps({"method": method, "ms": ms}))
    staged.replace(folder / ARMED)


def is_armed(folder: Path) -> bool:
    """Whether nobody was asked that method since."""
    return (folder / ARMED).exists()


class _Between:
    """The pipe between our Agent and a codex."""

    def __init__(self, folder: Path, child: "subprocess.Popen[bytes]") -> None:  # noqa: TID251 - see `main`
        self._armed = folder / ARMED
        self._child = child
        self._answer: object = None  # its id
        self._ms = 0.0

    def hand_in(self) -> None:
        """Hand requests on until the end of input."""
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):  # it has ended: `hand_out` tells
            for line in sys.stdin.buffer:
                self._look(json.loads(line))
                self._child.stdin.write(line)
                self._child.stdin.flush()
            self._child.stdin.close()

    def _look(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            return
        with suppress(FileNotFoundError):  # not armed, or another codex was faster
            armed = json.loads(self._armed.read_text())
            if armed["method"] == message.get("method"):
                self._armed.unlink()
                self._ms = armed["ms"]
                self._answer = message["id"]

    def hand_out(self) -> None:
        """Hand answers on until the end of output, or until codex has said that one."""
        assert self._child.stdout is not None
        for line in self._child.stdout:
            os.write(sys.stdout.fileno(), line)
            if self._answer is None:
                continue
            message = json.loads(line)
            if "method" not in message and message.get("id") == self._answer:
                threading.Event().wait(self._ms / 1_000)
                self._child.kill()
                self._child.wait()
                os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, codex: str) -> None:
    """Be codex."""
    argv = [codex, *sys.argv[1:]]
    if "app-server" not in argv:
        os.execv(codex, argv)  # noqa: S606 - it is the codex of the test
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: TID251 - a process of its own, without our code
    between = _Between(Path(folder), child)
    threading.Thread(target=between.hand_in, daemon=True).start()
    out = threading.Thread(target=between.hand_out, daemon=True)
    out.start()
    status = child.wait()
    out.join(LAST_WORDS_S)
    os._exit(status if status >= 0 else 128 - status)
