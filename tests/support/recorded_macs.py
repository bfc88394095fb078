"""Process tables of Macs, written down by hand, told in psutil's words.

`Recorded` stands in for the psutil module: what it does not tell (another user's
arguments, a hardened program's environment, the file of an updated app) is what macOS
does not tell either.
"""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import psutil

USER: Final = "/Users/u"
APP: Final = "/Applications/Codex.app/Contents"
NPM: Final = (
    "/opt/homebrew/lib/node_modules/@openai/codex/node_modules/@openai/"
    "codex-darwin-arm64/vendor/aarch64-apple-darwin/codex/codex"
)
CODE: Final = "/Applications/Visual Studio Code.app/Contents"
SERVER: Final = ("app-server", "--analytics-default-enabled")
DENIED: Final = None
ValueT = TypeVar("ValueT")


class Uids(NamedTuple):
    real: int
    effective: int
    saved: int


class OpenFile(NamedTuple):
    path: str
    fd: int


@dataclass(frozen=True, kw_only=True)
class Mac:
    """One process. `argv` without the program; `DENIED` (None): macOS does not say."""

    pid: int
    exe: str | None
    parent: int = 1
    argv: Sequence[str] | None = ()
    program: str | None = None  # argv[0], where it is not the executable
    home: str | None = None  # its CODEX_HOME
    environ: bool = True  # False: hidden, psutil then tells an empty one
    ours: bool = True
    started: float = 1_796_000_100.25
    status: str = psutil.STATUS_RUNNING
    files: Sequence[str] = ()


class Recorded:
    """The part of psutil that is used, over a written-down table."""

    Error = psutil.Error
    AccessDenied = psutil.AccessDenied
    STATUS_ZOMBIE = psutil.STATUS_ZOMBIE

    def __init__(self, *macs: Mac) -> None:
        self.table = {mac.pid: mac for mac in macs}
        self.denials = 0  # so often arguments are not told yet

    def become(self, *macs: Mac) -> None:
        """Be another table from now on."""
        self.table = {mac.pid: mac for mac in macs}

    def pids(self) -> list[int]:
        return [1, *self.table]

    def Process(self, pid: int) -> "RecordedProcess":  # noqa: N802 - psutil's name
        return RecordedProcess(self, pid)


class RecordedProcess:
    """One process of the table, with psutil's refusals."""

    def __init__(self, recorded: Recorded, pid: int) -> None:
        if pid not in recorded.table:
            raise psutil.NoSuchProcess(pid)
        self._recorded = recorded
        self._mac = recorded.table[pid]

    @contextmanager
    def oneshot(self) -> Generator[None]:
        yield

    def is_running(self) -> bool:
        now = self._recorded.table.get(self._mac.pid)
        return now is not None and now.started == self._mac.started

    def status(self) -> str:
        return self._mac.status

    def create_time(self) -> float:
        return self._mac.started

    def ppid(self) -> int:
        return self._mac.parent

    def name(self) -> str:
        return (self._mac.exe or self._mac.program or "?").rpartition("/")[2]

    def uids(self) -> Uids:
        uid = os.getuid() + (0 if self._mac.ours else 1)
        return Uids(uid, uid, uid)

    def exe(self) -> str:
        return _told(self._mac.exe, self._mac.pid)

    def cmdline(self) -> list[str]:
        if self._recorded.denials > 0:
            self._recorded.denials -= 1
            raise psutil.AccessDenied(self._mac.pid)
        argv = _told(self._mac.argv, self._mac.pid)
        return [self._mac.program or self._mac.exe or "", *argv]

    def environ(self) -> Mapping[str, str]:
        if not self._mac.environ:
            return {}
        told = {"HOME": USER, "PATH": "/usr/bin"}
        return told | ({"CODEX_HOME": self._mac.home} if self._mac.home else {})

    def open_files(self) -> list[OpenFile]:
        return [OpenFile(path, fd) for fd, path in enumerate(self._mac.files, 3)]


def _told(value: ValueT | None, pid: int) -> ValueT:
    if value is None:
        raise psutil.AccessDenied(pid)
    return value


def helper(pid: int, kind: str, *, app: str = APP, parent: int = 100) -> Mac:
    """Return a helper of an Electron app, as it is started."""
    name = app.rpartition("/Contents")[0].rpartition("/")[2].removesuffix(".app")
    named = f"{name} Helper ({kind})"
    exe = f"{app}/Frameworks/{named}.app/Contents/MacOS/{named}"
    return Mac(pid=pid, parent=parent, exe=exe, argv=(f"--type={kind.lower()}",))


# The desktop with all that belongs to it: only the app and its engine can write.
DESKTOP: Final = (
    Mac(pid=100, exe=f"{APP}/MacOS/Codex"),
    helper(101, "Renderer"),
    helper(102, "GPU"),
    Mac(
        pid=103,
        parent=100,
        exe=f"{APP}/Frameworks/Electron Framework.framework/Helpers/"
        "chrome_crashpad_handler",
        argv=("--no-rate-limit",),
    ),
    Mac(pid=104, parent=100, exe=f"{APP}/Resources/codex", argv=SERVER),
    Mac(pid=105, parent=104, exe="/bin/zsh", argv=("-lc", "make")),
)
# Updaters live on for a while after the app is closed; so may a crash reporter.
UPDATERS: Final = (
    Mac(
        pid=110,
        exe=f"{APP}/Frameworks/Sparkle.framework/Versions/B/Autoupdate",
        argv=("com.openai.codex",),
    ),
    Mac(
        pid=111,
        exe=f"{APP}/Frameworks/Sparkle.framework/Versions/B/Updater.app/Contents/"
        "MacOS/Updater",
    ),
    Mac(
        pid=112,
        exe=f"{APP}/Frameworks/Squirrel.framework/Resources/ShipIt",
        argv=("com.openai.codex.ShipIt",),
    ),
    helper(113, "Plugin", parent=1),
    Mac(
        pid=114,
        exe=f"{APP}/Frameworks/Codex Helper.app/Contents/MacOS/Codex Helper",
        argv=DENIED,
    ),
)
CODE_EXTENSION: Final = (
    Mac(pid=200, exe=f"{CODE}/MacOS/Electron"),
    Mac(
        pid=201,
        parent=200,
        exe=f"{CODE}/Frameworks/Code Helper (Plugin).app/Contents/MacOS/"
        "Code Helper (Plugin)",
        argv=("--type=utility",),
    ),
    Mac(
        pid=202,
        parent=201,
        exe=f"{USER}/.vscode/extensions/openai.chatgpt-26.1127.0-darwin-arm64/bin/"
        "macos-aarch64/codex",
        argv=SERVER,
    ),
)
CODE_OWN_NPM: Final = (
    *CODE_EXTENSION[:2],
    Mac(pid=203, parent=201, exe=NPM, argv=SERVER),
)
CURSOR: Final = (
    Mac(pid=210, exe="/Applications/Cursor.app/Contents/MacOS/Cursor"),
    helper(211, "Plugin", app="/Applications/Cursor.app/Contents", parent=210),
    Mac(
        pid=212,
        parent=211,
        exe=f"{USER}/.cursor/extensions/openai.chatgpt-26.1127.0-universal/bin/"
        "macos-aarch64/codex",
        argv=SERVER,
    ),
    Mac(pid=213, parent=211, exe=NPM, argv=SERVER),
)
JETBRAINS: Final = (
    Mac(pid=220, exe="/Applications/PyCharm.app/Contents/MacOS/pycharm"),
    Mac(
        pid=221,
        parent=220,
        exe=f"{USER}/Library/Caches/JetBrains/PyCharm2026.3/acp-agents/codex/1.4.0/"
        "node_modules/@openai/codex-darwin-arm64/vendor/aarch64-apple-darwin/codex/codex",
        argv=SERVER,
    ),
)
TERMINAL: Final = (
    Mac(pid=300, exe="/Applications/iTerm.app/Contents/MacOS/iTerm2"),
    Mac(pid=301, parent=300, exe="/bin/zsh", program="-zsh"),
)
HOMEBREW: Final = (
    *TERMINAL,
    Mac(
        pid=302,
        parent=301,
        exe="/opt/homebrew/Caskroom/codex/0.171.0/codex-aarch64-apple-darwin",
        program="codex",
        argv=("resume", "--last"),
    ),
)
CELLAR: Final = (
    Mac(pid=303, exe="/usr/local/Cellar/codex/0.163.0/bin/codex", program="codex"),
)
NODE: Final = (
    *TERMINAL,
    Mac(
        pid=304,
        parent=301,
        exe="/opt/homebrew/Cellar/node/25.1.0/bin/node",
        program="node",
        argv=("/opt/homebrew/bin/codex",),
    ),
    Mac(pid=305, parent=304, exe=NPM),
)
PYPI: Final = (
    Mac(
        pid=306,
        exe=f"{USER}/.local/share/uv/tools/x/lib/python3.13/site-packages/"
        "codex_cli_bin/bin/codex",
        argv=("exec", "do it"),
    ),
)
STANDALONE: Final = (
    Mac(
        pid=307,
        exe=f"{USER}/.codex/packages/standalone/releases/0.171.0/codex",
        argv=("app-server", "--listen", "unix://"),
    ),
)
# Run by the system from a random place, moved away by an update, deleted by one, beta.
TRANSLOCATED: Final = (
    Mac(
        pid=120,
        exe="/private/var/folders/zz/T/AppTranslocation/0A1B/d/Codex.app/Contents/"
        "MacOS/Codex",
    ),
)
MOVED_AWAY: Final = (
    Mac(
        pid=121,
        exe=f"{USER}/Library/Caches/com.openai.codex.ShipIt/update.x/Codex.app/"
        "Contents/Resources/codex",
        argv=SERVER,
    ),
)
DELETED: Final = (
    Mac(pid=122, exe="", program=f"{APP}/MacOS/Codex"),
    Mac(pid=123, exe="", program=f"{APP}/Resources/codex", argv=SERVER),
)
BETA: Final = (
    Mac(
        pid=124,
        exe="/Applications/Codex (Beta).app/Contents/MacOS/Codex (Beta)",
    ),
)
COMMANDS: Final = (
    Mac(pid=130, exe=NPM, argv=("login",)),
    Mac(pid=131, exe=NPM, argv=("mcp", "list")),
    Mac(pid=132, exe=NPM, argv=("--version",)),
    Mac(pid=133, exe=NPM, argv=("app-server", "generate-json-schema")),
    Mac(pid=134, exe=NPM, argv=("--remote", "ws://127.0.0.1:9")),
)
