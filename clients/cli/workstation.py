"""What only the workstation does: start an Agent, find its socket. Trio shell.

The one module of the front doors that may import `agent` and `adapter`, and only inside
functions: a device needs none of them.
"""

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clients.cli.exits import ExitCode, FailedError, UsageProblemError
from clients.cli.folders import STATE_DIR

if TYPE_CHECKING:
    from agent.app import Running
    from agent.config import Config
    from clients.cli.screen import Screen


@dataclass(frozen=True, slots=True)
class AgentProcess:
    """Who has this machine's state folder. `text`: its process, and since when."""

    text: str
    pid: int | None

    @property
    def end(self) -> str:
        """What a person does to end it."""
        return "end it" if self.pid is None else f"end it (`kill {self.pid}`)"


def admin_socket(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the Agent of this machine listens for its owner."""
    return _config(environ).runtime_dir / "admin.sock"


def admin_sockets(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Return where that may be, the likeliest first."""
    return [folder / "admin.sock" for folder in _socket_folders(environ)]


def agent_sockets(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Return where the Agent of this machine may listen for devices, the likeliest first."""
    return [folder / "agent.sock" for folder in _socket_folders(environ)]


def _socket_folders(environ: Mapping[str, str]) -> list[Path]:
    """A command that ssh runs often lacks the login session's runtime folder; an Agent
    may have been started without one, too."""
    config = _config(environ)
    folders = [config.runtime_dir]
    if not environ.get(STATE_DIR) and not environ.get("THREADGATE_RUNTIME_DIR"):
        folders.append(config.state_dir / "run")
        folders.append(Path(f"/run/user/{os.getuid()}/threadgate"))
    return list(dict.fromkeys(folders))


def _config(environ: Mapping[str, str]) -> "Config":
    from agent.config import load_config
    from agent.errors import ConfigError

    try:
        return load_config(environ)
    except ConfigError as error:
        raise FailedError(str(error)) from None


def check_listening(address: str) -> str:
    """Return an address to listen at as it is. Raises: UsageProblemError."""
    from agent.config import check_address

    try:
        return check_address(address)
    except ValueError as error:
        raise UsageProblemError(str(error)) from None


def _serving(tcp: Sequence[str], state: Path | None, codex: str | None) -> "Config":
    """Settings as the file has them, with what was said on the command line."""
    environ = dict(os.environ)
    if state is not None:
        environ[STATE_DIR] = str(state.absolute())
    if codex is not None:
        environ["THREADGATE_CODEX"] = codex
    config = _config(environ)
    return config.model_copy(update={"listen": [*config.listen, *tcp]})


def serve(
    screen: "Screen",
    *,
    tcp: Sequence[str],
    state: Path | None,
    codex: str | None,
    verbose: bool,
) -> int:
    """Run the Agent until a signal ends it; it hears signals itself."""
    import trio

    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(message)s")
    trio.run(_serve, screen, _serving(tcp, state, codex))
    screen.say("stopped: no codex of ours runs any more")
    return ExitCode.OK


async def _serve(screen: "Screen", config: "Config") -> None:
    import trio

    from agent.app import run_agent
    from transport.background import open_background

    over = trio.Event()

    async def run(*, task_status: "trio.TaskStatus[Running]") -> None:
        await run_agent(config, task_status=task_status)
        over.set()

    ready = False
    try:
        async with open_background(run) as running:
            ready = True
            _announce(screen, running)
            await over.wait()
    except Exception as error:
        if ready:
            raise
        logging.getLogger(__name__).info("cannot start", exc_info=True)
        raise FailedError(f"the Agent cannot start: {_cause(error)}") from error


def _announce(screen: "Screen", running: "Running") -> None:
    where = ", ".join(running.tcp) or "no network address (--tcp adds one)"
    screen.say(f"ready: {running.agent.name}, for devices at {where}")
    if running.locked:
        screen.note("it is locked: no device gets in; `threadgate unlock` ends that")
    if running.runtime.state != "ready":
        why = running.runtime.error or "it takes long to start"
        screen.note(f"codex does not run yet ({why}); `threadgate status` tells more")
    screen.say("Pair one with `threadgate pair`. Ctrl-C stops the Agent.")


def _cause(error: BaseException) -> BaseException:
    """The one error in nested groups of one: what a person has to hear."""
    inside: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return _cause(inside[0]) if len(inside) == 1 else error


async def examine(*, report: bool) -> list[dict[str, Any]]:
    """Return what `doctor` finds: rows of name, level (ok, warn, fail), text, advice?.

    `report`: without paths, addresses, pids and names of people and machines.
    """
    import getpass
    import platform

    from agent.config import load_config
    from agent.doctor.doctor import examine as examine_all
    from agent.doctor.findings import fail, redacted
    from agent.errors import ConfigError

    try:
        config = load_config(os.environ)
    except ConfigError as error:
        findings = [fail("config", str(error), "mend the config file")]
    else:
        findings = await examine_all(config, os.environ)
    if report:
        private = (getpass.getuser(), platform.node(), Path.home().name)
        findings = redacted(findings, private=private)
    return [one.wire() for one in findings]


def replay_lines(
    file: Path,
) -> "Iterator[tuple[dict[str, Any] | None, list[tuple[str, str]]]]":
    """Yield what a recording tells, event by event, each with the promises it broke.

    The last has no event. Raises: UsageProblemError (no file, or no recording).
    """
    from adapter.events.replay import RecordingError, checked

    number = 0

    def lines() -> "Iterator[Any]":
        nonlocal number
        with file.open(encoding="utf-8") as recording:
            for number, line in enumerate(recording, 1):  # noqa: B007 - told below
                if line.strip():
                    yield json.loads(line)

    try:
        for event, broken in checked(lines()):
            yield event, [(str(one.rule), one.what) for one in broken]
    except OSError as error:
        raise UsageProblemError(f"{file}: {error.strerror}") from error
    except (RecordingError, ValueError, RecursionError) as error:
        why = "not a line of a recording ({dir, t, msg} as JSON)"
        raise UsageProblemError(f"{file}, line {number}: {why}") from error


def mark_locked() -> bool:
    """Have the next start of an Agent find the gate locked; return whether it will."""
    from agent.gate import at_rest
    from transport.errors import KeyFileError

    try:
        at_rest.mark_locked(_config(os.environ).state_dir)
    except (KeyFileError, OSError):
        return False
    return True


async def lock_at_rest(*, locked: bool) -> "AgentProcess | None":
    """Lock or unlock the gate of an Agent that does not run: its next start finds it.

    Returns None when it is done, else who runs after all. Raises: FailedError (the
    folder cannot be written).
    """
    import trio

    folder = _config(os.environ).state_dir
    return await trio.to_thread.run_sync(_lock_at_rest, folder, locked)


def _lock_at_rest(folder: Path, locked: bool) -> "AgentProcess | None":
    from agent.errors import StorageError
    from agent.gate import at_rest
    from agent.lockfile import FolderInUseError
    from transport.errors import KeyFileError

    act = at_rest.lock_at_rest if locked else at_rest.unlock_at_rest
    try:
        act(folder)
    except FolderInUseError as error:
        return AgentProcess(str(error.holder), error.holder.pid)
    except (KeyFileError, StorageError, OSError) as error:
        raise FailedError(str(error)) from error
    return None


def running_agent() -> "AgentProcess | None":
    """Return the process that has this machine's state folder, if there is one."""
    from agent.lockfile import holder_of

    holder = holder_of(_config(os.environ).state_dir)
    return None if holder is None else AgentProcess(str(holder), holder.pid)
