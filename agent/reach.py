"""Where devices reach the Agent, as they are told it. Blocking I/O."""

import platform
from collections.abc import Sequence
from pathlib import Path


class Reach:
    """Where devices reach the Agent; known once its doors are open."""

    def __init__(self) -> None:
        self.urls: tuple[str, ...] = ()


def reachable(listening: Sequence[str], socket: Path) -> tuple[str, ...]:
    """Return where devices are told to come, if the config file does not say it.

    An address that means "every interface" is none to dial: this machine's name is.
    """
    name = platform.node()
    urls = [
        url.replace("//0.0.0.0:", f"//{name}:").replace("//[::]:", f"//{name}:")
        for url in listening
    ]
    return tuple(dict.fromkeys(urls)) or (f"unix://{socket}",)
