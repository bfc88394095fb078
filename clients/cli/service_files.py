"""What a service manager is told of the Agent: a systemd unit, a launchd agent. Sans-IO.

Both start the program by absolute paths: a service has a shorter PATH than a shell. The
first lines say who wrote the file, so that nothing of somebody else's is replaced unasked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import escape

UNIT: Final = "threadgate.service"
LABEL: Final = "threadgate"
OURS: Final = "Written by `threadgate service install`"
STOP_S: Final = 90  # above an act carried to its end (40 s) and the end of its writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What is to run: a whole command line, and the variables that it needs."""

    argv: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict[str, str])


def unit_text(service: Service) -> str:
    """Return a systemd user unit.

    SIGTERM goes to the Agent alone (`mixed`): it ends its app-servers itself, each in its
    own time. What is left after that, or after the deadline, is killed.
    """
    variables = "".join(
        f"Environment={_quoted(f'{name}={value}')}\n"
        for name, value in sorted(service.environ.items())
    )
    command = " ".join(_quoted(word, command=True) for word in service.argv)
    return (
        f"# {OURS}, which may replace it.\n"
        "[Unit]\nDescription=threadgate Agent\n\n"
        f"[Service]\nExecStart={command}\n{variables}"
        "Restart=on-failure\nRestartSec=5\n"
        f"KillMode=mixed\nTimeoutStopSec={STOP_S}\n\n"
        "[Install]\nWantedBy=default.target\n"
    )


def _quoted(word: str, *, command: bool = False) -> str:
    """Return a word as systemd reads it back: no specifier, no variable, no break."""
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{word.replace("$", "$$") if command else word}"'


def plist_text(service: Service, *, log: str) -> str:
    """Return a launchd agent that writes its log to the file `log`."""
    words = "".join(f"    <string>{escape(one)}</string>\n" for one in service.argv)
    variables = "".join(
        f"    <key>{escape(name)}</key><string>{escape(value)}</string>\n"
        for name, value in sorted(service.environ.items())
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<!-- {OURS}, which may replace it. -->\n"
        '<plist version="1.0">\n<dict>\n'
        f"  <key>Label</key><string>{LABEL}</string>\n"
        f"  <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n"
        f"  <key>EnvironmentVariables</key>\n  <dict>\n{variables}  </dict>\n"
        "  <key>RunAtLoad</key><true/>\n"
        "  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n"
        "  <key>ThrottleInterval</key><integer>5</integer>\n"
        f"  <key>ExitTimeOut</key><integer>{STOP_S}</integer>\n"
        f"  <key>StandardErrorPath</key><string>{escape(log)}</string>\n"
        "</dict>\n</plist>\n"
    )


def is_ours(text: str) -> bool:
    """Whether a file says that this program wrote it."""
    return any(OURS in line for line in text.splitlines()[:3])
