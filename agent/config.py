"""The owner's settings: one TOML file, its environment overrides. Blocking I/O.

Defaults are the safe end. A mistake is a `ConfigError` that names file, line and field:
a gateway must not start with a half-understood rule.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import platformdirs
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

from agent.access.scopes import DEFAULT_POLICIES, DEFAULT_SANDBOX
from agent.errors import ConfigError
from agent.limits import IDLE_S
from transport.protocol.gateway import ApprovalPolicyName, Ceiling, SandboxName

APP: Final = "threadgate"
_FOLDERS: Final = {
    "state_dir": "THREADGATE_STATE_DIR",
    "runtime_dir": "THREADGATE_RUNTIME_DIR",
    "codex_home": "CODEX_HOME",
}
_TEXTS: Final = {"codex": "THREADGATE_CODEX"}

Folder = Annotated[Path, Field(strict=False)]
_ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:]+\]|[^:\s\[\]]+):(\d{1,5})")
_MAX_PORT: Final = 65_535


def check_address(text: str) -> str:
    """Return a TCP address as it is. Raises: ValueError."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found.group(2)) > _MAX_PORT:
        message = f"{text!r} is no address: say host:port, such as 127.0.0.1:7130"
        raise ValueError(message)
    return text


Address = Annotated[str, AfterValidator(check_address)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DesktopPatterns(_Table):
    """More places where a desktop may lie: regular expressions over the executable's
    path in lower case. Added to the built-in ones."""

    apps: list[str] = []
    engines: list[str] = []

    @field_validator("apps", "engines")
    @classmethod
    def _compiles(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as exc:
                message = f"{pattern!r} is not a regular expression: {exc}"
                raise ValueError(message) from None
        return patterns


class Doors(_Table):
    """How many strangers may knock (SECURITY.md). Connections, and a second."""

    half_open: Annotated[int, Field(ge=1, le=1_024)] = 32
    half_open_per_source: Annotated[int, Field(ge=1, le=256)] = 8
    handshakes_per_second: Annotated[float, Field(gt=0, le=1_000, strict=False)] = 5.0
    handshake_burst: Annotated[int, Field(ge=1, le=1_000)] = 10
    handshakes_per_second_total: Annotated[
        float, Field(gt=0, le=10_000, strict=False)
    ] = 50.0
    sessions: Annotated[int, Field(ge=1, le=4_096)] = 256
    sessions_per_device: Annotated[int, Field(ge=1, le=256)] = 16


class Config(_Table):
    """Everything the owner can set. Folders are absolute; times in the unit named.

    `listen`: TCP addresses `host:port`, none by default. `read_only`: every mutation is
    refused. `sandbox` and `approval_policies` bound every device's ceiling: only here
    can `danger-full-access` or `never` be allowed to a device at all. `roots`: folders
    that a device paired without `--only` gets besides those of the threads.
    """

    state_dir: Folder
    runtime_dir: Folder
    codex_home: Folder
    codex: str | None = None
    name: Annotated[str, Field(min_length=1, max_length=40)] = "workstation"
    listen: list[Address] = []
    urls: list[Annotated[str, Field(max_length=200)]] = []
    read_only: bool = False
    sandbox: SandboxName = DEFAULT_SANDBOX
    approval_policies: list[ApprovalPolicyName] = [*DEFAULT_POLICIES]
    roots: list[Annotated[str, Field(pattern=r"^/", max_length=4_096)]] = []
    approval_ms: Annotated[int, Field(ge=10_000, le=3_600_000)] = 300_000
    idle_s: Annotated[float, Field(ge=1, le=3_600, strict=False)] = IDLE_S
    desktop: DesktopPatterns = DesktopPatterns()
    doors: Doors = Doors()

    def default_ceiling(self) -> Ceiling:
        """Return the ceiling of a device that is paired without saying more."""
        return Ceiling(
            sandbox=DEFAULT_SANDBOX if self.sandbox != "read-only" else "read-only",
            approval_policy=[
                policy
                for policy in DEFAULT_POLICIES
                if policy in self.approval_policies
            ],
            roots=[*self.roots],
        )


def load_config(environ: Mapping[str, str]) -> Config:
    """Return the settings of this environment; a missing default file is no mistake.

    Raises: ConfigError.
    """
    named = environ.get("THREADGATE_CONFIG")
    path = Path(named) if named else platformdirs.user_config_path(APP) / "config.toml"
    text = _read(path, required=named is not None)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        line = re.search(r"line (\d+)", str(exc))
        where = int(line.group(1)) if line else len(text.splitlines())
        raise ConfigError(str(path), where, "", f"this is not TOML: {exc}") from None
    values = {**_places(environ), **values, **_overrides(environ)}
    try:
        config = Config.model_validate(values)
    except ValidationError as exc:
        raise _explained(path, text, exc) from None
    _check_absolute(path, text, config)
    return config


def _read(path: Path, *, required: bool) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if not required:
            return ""
        reason = "THREADGATE_CONFIG names a file that is not there"
        raise ConfigError(str(path), None, "", reason) from None
    except OSError as exc:
        reason = f"cannot be read: {exc.strerror}"
        raise ConfigError(str(path), None, "", reason) from None
    except UnicodeDecodeError:
        raise ConfigError(str(path), None, "", "is not text in UTF-8") from None


def _places(environ: Mapping[str, str]) -> dict[str, Any]:
    home = Path(environ.get("HOME") or Path.home())
    runtime = environ.get("XDG_RUNTIME_DIR")
    state = environ.get("THREADGATE_STATE_DIR") or platformdirs.user_state_path(APP)
    return {
        "state_dir": Path(state),
        # Without a runtime folder of the login session (it is private and goes with
        # it) the sockets live beside the keys: /tmp is everybody's.
        "runtime_dir": Path(runtime) / APP
        if runtime and not environ.get("THREADGATE_STATE_DIR")
        else Path(state) / "run",
        "codex_home": home / ".codex",
    }


def _overrides(environ: Mapping[str, str]) -> dict[str, Any]:
    return {
        field: environ[variable]
        for field, variable in {**_FOLDERS, **_TEXTS}.items()
        if environ.get(variable)
    }


def _check_absolute(path: Path, text: str, config: Config) -> None:
    for field in _FOLDERS:
        if not getattr(config, field).is_absolute():
            reason = f"must be an absolute path (or set {_FOLDERS[field]})"
            raise ConfigError(str(path), _line_of(text, (field,)), field, reason)


def _explained(path: Path, text: str, exc: ValidationError) -> ConfigError:
    first = exc.errors(include_url=False, include_context=False)[0]
    place = tuple(str(part) for part in first["loc"])
    reason = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        reason = "there is no such setting"
    more = exc.error_count() - 1
    if more:
        reason += f" (and {more} more)"
    return ConfigError(str(path), _line_of(text, place), ".".join(place), reason)


def _line_of(text: str, place: tuple[str, ...]) -> int | None:
    """Return the line that sets a key: the last part of `place` below its table."""
    *tables, key = [part for part in place if not part.isdigit()] or [""]
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            table = header.group(1)
            if table == ".".join([*tables, key]):
                return number
        found = re.match(r"\s*([\w.-]+|\"[^\"]*\")\s*=", line)
        if found and [*table.split("."), found.group(1).strip('"')] in (
            [*tables, key],
            ["", *tables, key],
        ):
            return number
    return None
