"""What an engine was started to do, read from its command line. Sans-IO.

PROTOCOL.md section 3 (Gate). `writes` errs towards "it writes": what is not known here
by name counts as a command that works in threads.
"""

import re
from collections.abc import Sequence
from typing import Final

_WRITES_NOTHING: Final = frozenset(
    {
        "apply",
        "completion",
        "debug",
        "doctor",
        "exec-server",
        "execpolicy",
        "features",
        "generate-internal-json-schema",
        "generate-json-schema",
        "generate-ts",
        "login",
        "logout",
        "mcp",
        "plugin",
        "proxy",
        "responses-api-proxy",
        "sandbox",
        "stdio-to-uds",
        "update",
    }
)
# `app-server daemon …` only controls; the server itself runs with `--listen`.
_SERVER_CONTROL: Final = _WRITES_NOTHING | {"daemon"}
_WRITES_ITSELF: Final = frozenset({"app-server", "exec", "e", "review", "mcp-server"})
# One binary, called by another name for another job.
_ALIASES: Final = frozenset(
    {"codex-linux-sandbox", "codex-execve-wrapper", "apply_patch", "applypatch"}
)
_ONLY_TELLS: Final = frozenset({"--version", "-V", "--help", "-h"})
_TAKES_VALUE: Final = frozenset(
    {"-c", "--config", "-m", "--model", "-p", "--profile", "-C", "--cd", "-s"}
    | {"--sandbox", "-a", "--ask-for-approval", "-i", "--image", "--add-dir"}
    | {
        "--enable",
        "--disable",
        "--listen",
        "--remote-auth-token-env",
        "--local-provider",
    }
)


def _args(argv: Sequence[str]) -> list[str]:
    """Return the arguments that are read as options and commands: none behind `--`."""
    args = list(argv[1:])
    return args[: args.index("--")] if "--" in args else args


def _words(argv: Sequence[str]) -> list[str]:
    """Return the arguments that are neither options nor their values."""
    words: list[str] = []
    skip = False
    for arg in _args(argv):
        if skip:
            skip = False
        elif arg.startswith("-"):
            skip = arg in _TAKES_VALUE
        else:
            words.append(arg)
    return words


def serves(path: str, argv: Sequence[str]) -> bool:
    """Whether it is an app-server, started by some program for itself or others."""
    return "app-server" in _words(argv)[:1] or "/codex-app-server" in path


def listens(argv: Sequence[str]) -> bool:
    """Whether it waits for clients on an address of its own."""
    return any(arg == "--listen" or arg.startswith("--listen=") for arg in argv)


def writes(argv: Sequence[str]) -> bool:
    """Whether an engine that was started like this can write threads."""
    alias = argv[0].rpartition("/")[2] if argv else ""
    if alias in _ALIASES or _ONLY_TELLS & set(_args(argv)):
        return False
    words = _words(argv)
    remote = any(
        one == "--remote" or one.startswith("--remote=") for one in _args(argv)
    )
    if remote and not _WRITES_ITSELF & set(words[:1]):
        return False  # a terminal that only shows what a server elsewhere does
    if not words:
        return True
    if words[0] == "app-server":
        return not words[1:2] or words[1] not in _SERVER_CONTROL
    return words[0] not in _WRITES_NOTHING


def read_version(text: str) -> tuple[int, int, int] | None:
    """Return the version in the answer to `--version` of a codex; `None` for others."""
    found = re.match(r"\s*codex[\w-]*\s+v?(\d+)\.(\d+)\.(\d+)", text)
    if found is None:
        return None
    return int(found.group(1)), int(found.group(2)), int(found.group(3))
