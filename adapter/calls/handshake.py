"""The first words with an app-server: initialize, initialized. Trio shell."""

import os
from dataclasses import dataclass
from importlib import metadata
from typing import Final

from adapter.calls.peer import Peer
from adapter.calls.versions import version_of
from adapter.errors import AdapterError, HandshakeFailedError, OtherHomeError
from adapter.limits import INITIALIZE_S

NAME: Final = "threadgate"  # becomes the `originator` of threads that we start


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """What an app-server tells about itself. `home`: its CODEX_HOME."""

    version: str
    home: str


async def greet(peer: Peer) -> Greeting:
    """Initialize with the experimental methods (turns/list needs them on old versions).

    Raises: HandshakeFailedError.
    """
    params = {
        "clientInfo": {"name": NAME, "title": None, "version": own_version()},
        "capabilities": {"experimentalApi": True},
    }
    try:
        answer = await peer.call("initialize", params, timeout_s=INITIALIZE_S)
        await peer.notify("initialized")
    except AdapterError as exc:
        raise HandshakeFailedError(f"codex did not initialize: {exc}") from exc
    agent, home = answer.get("userAgent"), answer.get("codexHome")
    version = version_of(agent) if isinstance(agent, str) else None
    if version is None or not isinstance(home, str):
        raise HandshakeFailedError(f"unexpected answer to initialize: {answer!r:.200}")
    return Greeting(version=version, home=home)


def check_home(asked: str | None, told: str) -> None:
    """Raise OtherHomeError where a home was named and another one is told.

    Links are followed: what is asked and told may be two names of one folder.
    """
    if asked and os.path.realpath(asked) != os.path.realpath(told):
        raise OtherHomeError(asked, told)


def own_version() -> str:
    """Return the version of this package."""
    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:
        return "0"
