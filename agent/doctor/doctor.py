"""Examines this workstation and says what to do, line by line. Trio shell.

It changes nothing and needs no Agent; one that runs is left alone. Only what this user's
process table shows is seen: a Codex in a container of its own is not.
"""

import errno
import platform
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import trio

from adapter.processes.sweep import read_record
from agent.clocks import wall_ms
from agent.config import Config
from agent.doctor.doctor_codex import look_at_codex
from agent.doctor.doctor_files import (
    look_at_clock,
    look_at_codex_home,
    look_at_disk,
    look_at_state,
)
from agent.doctor.findings import Finding, fail, ok, warn
from agent.edge import own_version
from agent.errors import ProcessTableError
from agent.gate.engines import Foreign, Look, Programs
from agent.gate.panic import LockFile
from agent.gate.writers import WriterWatch
from agent.lockfile import holder_of
from transport.carriers import unix
from transport.errors import UnreachableError

_UNTRIED: Final = (
    "macOS support is written but was never run on a Mac; untested there are the watch "
    "for other writers, who holds a thread, the end of leftover processes, and the "
    "check of who connects to the socket"
)
_TRY_FIRST: Final = (
    "before devices may write, open the desktop app and see whether the lines `desktop` "
    "and `writers` below tell of it"
)
MADE_MS: Final = 1_796_000_000_000  # this program was not there before


async def examine(config: Config, environ: Mapping[str, str]) -> list[Finding]:
    """Return all findings, in the order in which a person mends things."""
    running = await _agent_runs(config)
    found = [system_finding(platform.system()), _agent(config, running=running)]
    found += _lock(config.state_dir)
    found += [await trio.to_thread.run_sync(look_at_state, config)]
    found += [await trio.to_thread.run_sync(look_at_disk, config.state_dir)]
    found += [look_at_clock(config, now_ms=wall_ms(), oldest_ms=MADE_MS)]
    found += _ports(config, running=running)
    found += [look_at_codex_home(config.codex_home)]
    found += await look_at_codex(config, environ)
    found += await _others(config)
    return found


def system_finding(system: str) -> Finding:
    """Whether the Agent is made for this operating system, and was tried on it."""
    text = f"threadgate {own_version()}, Python {platform.python_version()}, {system}"
    if system == "Linux":
        return ok("system", text)
    if system == "Darwin":
        return warn("system", f"{text}: {_UNTRIED}", _TRY_FIRST)
    return fail("system", f"{text}: not supported yet", "run the Agent on Linux")


async def _agent_runs(config: Config) -> bool:
    try:
        stream = await unix.connect(config.runtime_dir / "admin.sock")
    except UnreachableError:
        return False
    await stream.aclose()
    return True


def _agent(config: Config, *, running: bool) -> Finding:
    if running:
        return ok("agent", "one runs on this state folder")
    if (holder := holder_of(config.state_dir)) is not None:
        advice = "look again in a moment; else end that process and start it anew"
        return fail("agent", f"one runs and cannot be reached ({holder})", advice)
    return ok("agent", "none runs (`threadgate serve` starts one)")


def _lock(folder: Path) -> list[Finding]:
    if not LockFile(folder).is_there():
        return []
    text = "the owner has locked the Agent, or its next start: no device gets in"
    return [warn("lock", text, "`threadgate unlock` lets paired devices in again")]


def _ports(config: Config, *, running: bool) -> list[Finding]:
    if not config.listen:
        return [ok("port", "the config file names none; `serve --tcp` adds one")]
    return [_port(address, running=running) for address in config.listen]


def _port(address: str, *, running: bool) -> Finding:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, int(port)))
    except OSError as exc:
        if exc.errno == errno.EADDRINUSE and running:
            return ok("port", f"{address} is in use, by the Agent that runs")
        advice = "name another address in `listen` of the config file"
        return fail("port", f"{address} cannot be used: {exc.strerror}", advice)
    if running:
        advice = "restart the Agent: it does not listen where the config file says"
        return warn("port", f"{address} is free though an Agent runs", advice)
    return ok("port", f"{address} is free")


async def _others(config: Config) -> list[Finding]:
    """Everybody else who can write, once their versions are known."""
    records = config.state_dir / "processes"
    known = [read_record(path) for path in records.glob("*.json")]
    own = {one.pid for one in known if one is not None}
    patterns = config.desktop
    watch = WriterWatch(
        own_pids=lambda: own,
        home=config.codex_home,
        programs=Programs(apps=patterns.apps, engines=patterns.engines),
    )
    look = await watch.look_closely()
    return [_desktop(look), _writers(look), _locks(watch)]


def _unseen(name: str, what: str) -> Finding:
    advice = "run it where this user sees its processes; until then devices only read"
    return fail(name, f"{what} cannot be seen here", advice)


def _desktop(look: Look) -> Finding:
    if look.blind:
        return _unseen("desktop", "whether Codex desktop runs")
    if (desktop := look.desktop) is None:
        return ok("desktop", "Codex desktop does not run: threads can be written")
    advice = "close it where devices are to write; reading works all the same"
    return warn("desktop", f"Codex desktop runs (pid {desktop.pid})", advice)


def _writers(look: Look) -> Finding:
    if look.blind:
        return _unseen("writers", "who else writes")
    others = [one for one in look.foreign if not one.is_desktop]
    without = [one for one in others if not one.locks]
    if without:
        text = f"without thread locks: {_list(without)}"
        return warn("writers", text, "close it, or update it to 0.147 or newer")
    if others:
        return ok("writers", f"others that keep Codex's thread locks: {_list(others)}")
    return ok("writers", "no other Codex runs on this CODEX_HOME")


def _list(foreign: list[Foreign]) -> str:
    return ", ".join(f"{one.named.name} (pid {one.pid})" for one in foreign)


def _locks(watch: WriterWatch) -> Finding:
    try:
        held = watch.lock_holders()
    except (OSError, ProcessTableError):
        return _unseen("locks", "who holds threads")
    if not held:
        return ok("locks", "no thread is held by another process")
    names = ", ".join(f"{count} by pid {pid}" for pid, count in sorted(held.items()))
    return ok("locks", f"threads held elsewhere: {names}; devices can read them")
