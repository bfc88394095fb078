"""Which process can write Codex threads, told by executable and ancestry. Sans-IO.

PROTOCOL.md section 3 (Gate). Two kinds of program count: Codex's *engine* (it writes),
and the desktop's main *app* (its engine is there or about to be). Their helpers, crash
reporters and updaters do not, nor do engine commands that write nothing. Where a rule
could err, it errs towards "it writes".
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agent.gate.engine_commands import listens, serves, writes
from transport.protocol.gateway import Writer, WriterKind


class Role(StrEnum):
    """What a program is to us."""

    APP = "app"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process as the platform tells it. `started` in s of the table's own clock,
    `home`: its CODEX_HOME, `None` where that cannot be read."""

    pid: int
    parent: int
    started: float
    exe: str
    argv: tuple[str, ...]
    home: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a process is. `sure`: the place of its executable says so, not only a name."""

    role: Role
    kind: WriterKind
    name: str
    sure: bool


# All patterns match the executable's path in lower case, from anywhere to its end.
_PREFIX: Final = (
    r"/(?:usr/(?:local/)?(?:lib(?:64)?|share)|opt|\.local/(?:lib|share|opt))"
)
_BUNDLE: Final = (
    rf"(?:{_PREFIX}/(?:chatgpt|codex-desktop)(?:-[^/]*)?"
    r"|/\.mount_(?:chatgpt|codex)[^/]*(?:/usr/lib/[^/]+|/app)?)"
)
# macOS, also while the system runs it from elsewhere or an update has moved it away.
_MAC_APP: Final = r"/(?:chatgpt|codex)(?: [^/]*)?\.app/contents"
_APPS: Final = (
    rf"{_BUNDLE}/(?:chatgpt|codex|codex-desktop|electron)(?:-bin)?$",
    rf"{_MAC_APP}/macos/(?:chatgpt|codex)(?: \(?(?:alpha|beta|dev|nightly)\)?)?$",
)
_DESKTOP_ENGINES: Final = (
    rf"{_BUNDLE}/(?:.*/)?resources/(?:.*/)?codex$",
    rf"{_MAC_APP}/resources/(?:.*/)?codex(?:-(?:aarch64|x86_64)-apple-darwin)?$",
)
_IDE_ENGINES: Final = (
    r"/extensions/openai\.chatgpt-[^/]+/bin/[^/]+/codex$",
    r"/jetbrains/[^/]+/acp-agents/codex[^/]*/.*/codex$",
)
_CLI_ENGINES: Final = (
    r"/@openai/codex[^/]*/.*/codex$",
    r"/\.codex/packages/.*/codex$",
    r"/codex_cli_bin/bin/codex$",
    r"/(?:caskroom|cellar)/codex/.*/codex[^/]*$",
)
_MAC_EDITORS: Final = (
    "visual studio code|vscodium|cursor|windsurf|positron|trae|antigravity"
)
_IDE_ANCESTORS: Final = (
    r"/(?:code|cursor|windsurf|codium|code-oss|code-insiders|positron|trae)$",
    r"/\.(?:vscode|cursor|windsurf)-server/.*node$",
    # macOS: the main program of some is called after its framework or the product
    rf"/(?:{_MAC_EDITORS})[^/]*\.app/contents/(?:macos|frameworks)/.+$",
    r"/xcode[^/]*\.app/contents/macos/xcode$",
    r"/(?:idea|pycharm|webstorm|goland|rustrover|clion|rider|phpstorm|rubymine)[^/]*$",
)
_ENGINE_NAME: Final = re.compile(
    r"codex(?:-(?:app-server|exec|tui|mcp-server))?(?:-(?:x86_64|aarch64)-[a-z0-9_-]+)?$"
)


def _compiled(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in patterns)


def _any(patterns: Sequence[re.Pattern[str]], path: str) -> bool:
    return any(pattern.search(path) for pattern in patterns)


class Programs:
    """The rules, with what the owner added to them."""

    def __init__(
        self, *, apps: Sequence[str] = (), engines: Sequence[str] = ()
    ) -> None:
        self._apps = _compiled((*_APPS, *apps))
        self._desktop = _compiled((*_DESKTOP_ENGINES, *engines))
        self._ide = _compiled(_IDE_ENGINES)
        self._cli = _compiled(_CLI_ENGINES)
        self._ide_ancestors = _compiled(_IDE_ANCESTORS)

    def interesting(self, exe: str) -> bool:
        """Whether the path alone makes a closer look worth while."""
        path = exe.lower()
        name = path.rpartition("/")[2]
        return (
            _ENGINE_NAME.match(name) is not None
            or _any(self._apps, path)
            or _any(self._desktop, path)
        )

    def name(self, process: Process, ancestors: Sequence[Process]) -> Named | None:
        """Return what the process is; `None` where it cannot write threads.

        `ancestors`: its parent first.
        """
        path = process.exe.lower()
        if any(arg.startswith("--type=") for arg in process.argv):
            return None  # a helper of the app's browser engine
        if not self._is_engine(path):
            return _named(Role.APP, WriterKind.DESKTOP, path)
        if not writes(process.argv):
            return None
        kind = self._place(path)
        if kind in (None, WriterKind.CLI) and serves(path, process.argv):
            kind = self._owner(ancestors) or kind
            if kind in (None, WriterKind.CLI) and listens(process.argv):
                kind = WriterKind.DAEMON
        return _named(Role.ENGINE, kind, path)

    def _is_engine(self, path: str) -> bool:
        if _any(self._desktop, path):
            return True
        if _any(self._apps, path):
            return False
        return _ENGINE_NAME.match(path.rpartition("/")[2]) is not None

    def _place(self, path: str) -> WriterKind | None:
        if _any(self._desktop, path):
            return WriterKind.DESKTOP
        if _any(self._ide, path):
            return WriterKind.IDE
        return WriterKind.CLI if _any(self._cli, path) else None

    def _owner(self, ancestors: Sequence[Process]) -> WriterKind | None:
        for process in ancestors:
            path = process.exe.lower()
            if _any(self._apps, path):
                return WriterKind.DESKTOP
            if _any(self._ide_ancestors, path):
                return WriterKind.IDE
        return None


_NAMES: Final = {
    WriterKind.DESKTOP: "Codex desktop",
    WriterKind.IDE: "Codex in an editor",
    WriterKind.CLI: "Codex in a terminal",
    WriterKind.DAEMON: "Codex's background server",
}


def _named(role: Role, kind: WriterKind | None, path: str) -> Named:
    known = kind or WriterKind.UNKNOWN
    name = _NAMES.get(known, f"an unknown program ({path.rpartition('/')[2][:40]})")
    return Named(role=role, kind=known, name=name, sure=kind is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A process of somebody else that can write. `since` in ms since the epoch.

    `locks`: it takes Codex's lock per thread; False also where nobody knows.
    """

    pid: int
    since: int
    named: Named
    locks: bool

    @property
    def is_desktop(self) -> bool:
        """Whether the desktop is here with it, whatever it may hold."""
        return self.named.kind is WriterKind.DESKTOP

    def writer(self) -> Writer:
        """Return it as clients see it."""
        named = self.named
        return Writer(kind=named.kind, name=named.name, pid=self.pid, since=self.since)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Everybody else who can write on our CODEX_HOME, as of one look; oldest first.

    `blind`: the look failed, so anybody may be there.
    """

    foreign: tuple[Foreign, ...] = ()
    blind: bool = False

    @property
    def desktop(self) -> Foreign | None:
        """The desktop, where it runs: its app before its engine."""
        found = [one for one in self.foreign if one.is_desktop]
        apps = [one for one in found if one.named.role is Role.APP]
        return next(iter([*apps, *found]), None)

    @property
    def is_crowded(self) -> bool:
        """Whether somebody may be at work in a thread whose lock nobody has."""
        return self.blind or (self.lockless(ours_lock=True) or self.desktop) is not None

    def lockless(self, *, ours_lock: bool) -> Foreign | None:
        """Return an engine that no lock keeps apart from us."""
        for one in self.foreign:
            if not one.is_desktop and not (one.locks and ours_lock):
                return one
        return None
