"""The book of hosts that this device is paired with. Blocking I/O.

A record holds the key that both sides made while pairing: the file is as secret as the
device's own key. A command that names no host means the default, or the only one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
)

from clients.cli.exits import FailedError, UsageProblemError
from clients.cli.plain import one_line
from clients.cli.style import Line, Span, line
from transport.client import Paired, Target
from transport.keys import PrivateKey, Secret, read_secret_file, write_secret_file
from transport.pairing import PairingText


def _from_hex(value: object) -> object:
    return bytes.fromhex(value) if isinstance(value, str) else value


HexBytes = Annotated[
    bytes, BeforeValidator(_from_hex), PlainSerializer(bytes.hex, return_type=str)
]
LOCAL = "local"  # the Agent on this machine, over admin.sock; no record has this name


class HostRecord(BaseModel):
    """One paired Agent. `psk`: 32 secret bytes. `urls`: where it was, the best first."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str
    agent_id: str
    agent_key: HexBytes
    psk: HexBytes = Field(repr=False)
    urls: Annotated[list[str], Field(min_length=1)]
    device_id: str
    device_name: str
    paired_at: int

    def targets(self, identity: PrivateKey) -> list[Target]:
        """Return where to try to reach it, in order."""
        secret = Secret(self.psk)
        return [
            Target(url=url, agent_key=self.agent_key, identity=identity, psk=secret)
            for url in self.urls
        ]


class HostBook(BaseModel):
    """All records. A later version may add keys: they are kept.

    `default`: the agent id of the host that is meant where none is named.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    version: Literal[1] = 1
    hosts: list[HostRecord] = []
    default: str | None = None

    def with_host(self, record: HostRecord) -> "HostBook":
        """Return the book with this record; an older one of the same Agent goes."""
        others = [h for h in self.hosts if h.agent_id != record.agent_id]
        return self.model_copy(update={"hosts": [*others, record]})

    def without(self, record: HostRecord) -> "HostBook":
        """Return the book without this record."""
        others = [h for h in self.hosts if h.agent_id != record.agent_id]
        default = None if self.default == record.agent_id else self.default
        return self.model_copy(update={"hosts": others, "default": default})

    def renamed(self, record: HostRecord, name: str) -> "HostBook":
        """Return the book with another name for this record.

        Raises: UsageProblemError where the name cannot tell it from others.
        """
        name = one_line(name, 60)
        others = [h for h in self.hosts if h.agent_id != record.agent_id]
        if not name or name == LOCAL or any(_means(h, name) for h in others):
            raise UsageProblemError(
                "another name is needed: this one is empty, `local`, or another host's"
            )
        hosts = [
            h.model_copy(update={"name": name}) if h is record else h
            for h in self.hosts
        ]
        return self.model_copy(update={"hosts": hosts})

    def with_default(self, record: HostRecord | None) -> "HostBook":
        """Return the book with this default, or with none."""
        agent_id = None if record is None else record.agent_id
        return self.model_copy(update={"default": agent_id})

    def is_default(self, record: HostRecord) -> bool:
        """Whether commands mean this host when they name none."""
        return len(self.hosts) == 1 or record.agent_id == self.default


def load_book(path: Path) -> HostBook:
    """Return the book; an empty one where there is no file.

    Raises: KeyFileError (open to others), FailedError (not a book).
    """
    if not path.exists():
        return HostBook()
    try:
        return HostBook.model_validate_json(read_secret_file(path))
    except ValidationError:
        raise FailedError(
            f"{path} is not a book of hosts of this version: move it away and pair again"
        ) from None


def save_book(path: Path, book: HostBook) -> None:
    """Write the book, readable by its owner alone."""
    write_secret_file(path, book.model_dump_json(indent=2).encode() + b"\n")


def record_of(paired: Paired, text: PairingText, *, paired_at: int) -> HostRecord:
    """Return the record of a pairing that was just confirmed; its url comes first."""
    others = [url for url in text.urls if url != paired.url]
    return HostRecord(
        name=one_line(paired.agent.name, 60) or paired.agent.id,
        agent_id=paired.agent.id,
        agent_key=text.agent_key,
        psk=paired.psk.reveal(),
        urls=[paired.url, *others],
        device_id=paired.device.id,
        device_name=paired.device.name,
        paired_at=paired_at,
    )


def choose_host(
    book: HostBook, wanted: str | None, environ: Mapping[str, str]
) -> HostRecord | None:
    """Return which host a command means; None is the Agent on this machine.

    Raises: UsageProblemError where none fits or several do.
    """
    wanted = wanted or environ.get("THREADGATE_HOST") or None
    if wanted == LOCAL or (wanted is None and not book.hosts):
        return None
    if wanted is None:
        fit = [h for h in book.hosts if book.is_default(h)] or book.hosts
        if len(fit) == 1:
            return fit[0]
        raise UsageProblemError(
            "several hosts are paired: name one with `--host`, or `threadgate hosts "
            "default NAME`",
            [_choice(host) for host in fit],
        )
    return named_host(book, wanted)


def named_host(book: HostBook, wanted: str) -> HostRecord:
    """Return the host of this name, or whose id begins so (4 characters at least).

    Raises: UsageProblemError where none fits or several do.
    """
    fit = [h for h in book.hosts if _means(h, wanted)]
    if len(fit) == 1:
        return fit[0]
    if not fit:
        known = "these are known" if book.hosts else "none is known (`connect` pairs)"
        raise UsageProblemError(
            f"no paired host is called “{one_line(wanted, 60)}”: {known}",
            [_choice(host) for host in book.hosts],
        )
    raise UsageProblemError(
        "several hosts fit: name one with `--host`", [_choice(host) for host in fit]
    )


def _means(host: HostRecord, word: str) -> bool:
    return host.name == word or (len(word) >= 4 and host.agent_id.startswith(word))


def _choice(host: HostRecord) -> Line:
    return line("  ", Span(host.agent_id[:8], "name"), f"  {host.name}  {host.urls[0]}")
