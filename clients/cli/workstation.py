"""What only the workstation does: start an Agent, find its socket, the demo. Shell.

The one module of the front doors that may import `agent`, and only inside functions: a
device needs none of it.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clients.cli.exits import ExitCode, FailedError
from clients.cli.folders import STATE_DIR

if TYPE_CHECKING:
    from agent.config import Config
    from clients.cli.screen import Screen


def admin_socket(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the Agent of this machine listens for its owner."""
    return _config(environ).runtime_dir / "admin.sock"


def _config(environ: Mapping[str, str]) -> "Config":
    from agent.config import load_config
    from agent.errors import ConfigError

    try:
        return load_config(environ)
    except ConfigError as error:
        raise FailedError(str(error)) from None


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
    screen: "Screen", *, tcp: Sequence[str], state: Path | None, codex: str | None
) -> int:
    """Run the Agent until a signal ends it."""
    del screen
    _serving(tcp, state, codex)
    return ExitCode.FAILED
