"""`service`: the Agent as a service of this user, by systemd or launchd. Trio shell.

It writes one file and removes only what it wrote. Where no manager answers, such as in a
container, it says what to type instead of typing it.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from clients.cli import asking
from clients.cli.exits import ExitCode, FailedError, UsageProblemError
from clients.cli.lines.contents import text_lines
from clients.cli.screen import Screen
from clients.cli.service_files import (
    LABEL,
    UNIT,
    Service,
    is_ours,
    plist_text,
    unit_text,
)
from clients.cli.workstation import check_listening

PASSED: Final = (  # what decides which Agent it is
    "CODEX_HOME",
    "THREADGATE_CONFIG",
    "THREADGATE_RUNTIME_DIR",
    "THREADGATE_STATE_DIR",
)
MANAGER_S: Final = 120.0  # a stop may take as long as the unit allows


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """A service manager: its file of ours, and what to call it with."""

    file: Path
    log: str
    probe: Sequence[str]
    start: Sequence[Sequence[str]]
    stop: Sequence[Sequence[str]]
    forget: Sequence[Sequence[str]] = ()
    enabled: Sequence[str]
    active: Sequence[str]
    hint: str = ""

    @property
    def is_launchd(self) -> bool:
        """Whether it is macOS's."""
        return self.probe[0] == "launchctl"


def manager_here(platform: str = sys.platform) -> Manager:
    """Return the one of this platform. Raises: FailedError."""
    if platform.startswith("linux"):
        return _systemd()
    if platform == "darwin":
        return _launchd()
    raise FailedError("services are written for Linux (systemd) and macOS (launchd)")


def _systemd() -> Manager:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    call = ("systemctl", "--user")
    return Manager(
        file=Path(base) / "systemd" / "user" / UNIT,
        log="journalctl --user -u threadgate",
        probe=(*call, "show-environment"),
        start=(
            (*call, "daemon-reload"),
            (*call, "enable", UNIT),
            (*call, "restart", UNIT),
        ),
        stop=((*call, "disable", "--now", UNIT),),
        forget=((*call, "daemon-reload"),),
        enabled=(*call, "is-enabled", UNIT),
        active=(*call, "is-active", UNIT),
        hint="To have it run while you are not logged in: loginctl enable-linger",
    )


def _launchd() -> Manager:
    home, domain = Path.home(), f"gui/{os.getuid()}"
    file = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    shown = ("launchctl", "print", f"{domain}/{LABEL}")
    return Manager(
        file=file,
        log=str(home / "Library" / "Logs" / "threadgate.log"),
        probe=("launchctl", "print", domain),
        start=(("launchctl", "bootstrap", domain, str(file)),),
        stop=(("launchctl", "bootout", f"{domain}/{LABEL}"),),
        enabled=shown,
        active=shown,
    )


def service_of(
    tcp: Sequence[str], codex: str | None, environ: Mapping[str, str] = os.environ
) -> Service:
    """Return the Agent's command line with absolute paths. Raises: UsageProblemError."""
    named = codex or environ.get("THREADGATE_CODEX")
    found = shutil.which(os.path.expanduser(named or "codex"), path=environ.get("PATH"))
    if named and found is None:
        raise UsageProblemError(f"{named} is no program: name the codex to run")
    argv = [*_program(), "serve"]
    for address in tcp:
        argv += ["--tcp", check_listening(address)]
    if found is not None:
        argv += ["--codex", os.path.abspath(found)]
    passed = {name: environ[name] for name in PASSED if environ.get(name)}
    if any("\n" in word for word in (*argv, *passed.values())):
        raise UsageProblemError("a path with a line break cannot be in a service")
    return Service(argv=argv, environ=passed)


def _program() -> list[str]:
    """Return what runs this very program, by absolute paths, links kept: an upgrade
    puts its new program behind the same link."""
    name = Path(sys.argv[0])
    if name.name == "threadgate" and (found := shutil.which(sys.argv[0])):
        return [os.path.abspath(found)]
    return [sys.executable, "-m", "clients.cli"]


async def install(
    screen: Screen,
    *,
    tcp: Sequence[str],
    codex: str | None,
    yes: bool,
    manager: Manager | None = None,
) -> ExitCode:
    """Write the file, have it started now and at each login."""
    manager = manager or manager_here()
    service = service_of(tcp, codex)
    text = (
        plist_text(service, log=manager.log)
        if manager.is_launchd
        else unit_text(service)
    )
    screen.say(f"{manager.file}:")
    screen.lines(text_lines(text))
    before = _read(manager.file)
    if before is not None and not is_ours(before) and not yes:
        await _ask_to_replace(manager.file)
    if before != text:
        _write(manager.file, text)
    if await _answers(manager):
        if manager.is_launchd:  # what runs is of the old file
            await _call(manager.stop[0])
        for command in manager.start:
            await _must(command)
        screen.say(f"It runs, and starts at each login. Its log: {manager.log}")
    else:
        _say_to_type(screen, "To start it, type:", manager.start)
    if manager.hint:
        screen.say(manager.hint)
    return ExitCode.OK


async def _ask_to_replace(file: Path) -> None:
    if not asking.at_terminal():
        raise UsageProblemError(f"{file} is not ours; --yes replaces it")
    if not await asking.confirm(f"{file} is not ours. Replace it?"):
        raise FailedError("nothing was written")


async def uninstall(screen: Screen, *, manager: Manager | None = None) -> ExitCode:
    """Stop it, and remove the file that we wrote."""
    manager = manager or manager_here()
    before = _read(manager.file)
    if before is None:
        screen.say("No service is installed.")
        return ExitCode.OK
    if not is_ours(before):
        raise FailedError(f"{manager.file} is not ours; it was left as it is")
    answers = await _answers(manager)
    if answers:
        for command in manager.stop:
            await (_call if manager.is_launchd else _must)(command)
    try:
        manager.file.unlink()
    except OSError as error:
        raise FailedError(f"{manager.file}: {error.strerror}") from error
    screen.say(f"{manager.file} is removed.")
    if answers:
        for command in manager.forget:
            await _must(command)
    else:
        _say_to_type(
            screen, "If it runs, end it:", [*manager.stop[:1], *manager.forget]
        )
    return ExitCode.OK


async def status(screen: Screen, *, manager: Manager | None = None) -> ExitCode:
    """Say whether it is installed, enabled and running, and where its log is."""
    manager = manager or manager_here()
    before = _read(manager.file)
    told: dict[str, str | bool | None] = {
        "installed": before is not None,
        "ours": before is not None and is_ours(before),
        "enabled": None,
        "running": None,
        "file": str(manager.file),
        "log": manager.log,
    }
    if await _answers(manager):
        told["enabled"] = not (await _call(manager.enabled)).returncode
        active = await _call(manager.active)
        running = not active.returncode
        if manager.is_launchd:
            running = running and b"state = running" in active.stdout
        told["running"] = running
    if screen.as_json:
        screen.json(told)
    words = {True: "yes", False: "no", None: "nobody here knows (no service manager)"}
    screen.lines(
        text_lines(
            "\n".join(
                f"{name:<10} {value if isinstance(value, str) else words[value]}"
                for name, value in told.items()
            )
        )
    )
    return ExitCode.OK


def _say_to_type(screen: Screen, why: str, commands: Sequence[Sequence[str]]) -> None:
    screen.say(f"No service manager answers here. {why}")
    for command in commands:
        screen.say("  " + shlex.join(command))


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FailedError(f"{file}: {error.strerror}") from error


def _write(file: Path, text: str) -> None:
    """Write it whole or not at all."""
    new = file.with_name(f".{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise FailedError(f"{file}: {error.strerror}") from error


async def _answers(manager: Manager) -> bool:
    """Whether there is a service manager of this user to talk to."""
    return not (await _call(manager.probe)).returncode


async def _must(command: Sequence[str]) -> None:
    done = await _call(command)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip() or "no reason given"
        raise FailedError(f"{' '.join(command)} failed: {said}")


async def _call(command: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
    """Run a command to its end; one that is not there has failed."""
    try:
        with trio.fail_after(MANAGER_S):
            return await trio.run_process(
                list(command), capture_stdout=True, capture_stderr=True, check=False
            )
    except FileNotFoundError:
        return subprocess.CompletedProcess(list(command), 127, b"", b"not found")
    except trio.TooSlowError:
        raise FailedError(f"{' '.join(command)}: no answer") from None
