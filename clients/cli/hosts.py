"""The book of hosts that this device is paired with. Blocking I/O.

A record holds the key that both sides made while pairing: the file is as secret as the
device's own key. The format is a book of many, though commands need only one.
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
    """All records. A later version may add keys: they are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    version: Literal[1] = 1
    hosts: list[HostRecord] = []

    def with_host(self, record: HostRecord) -> "HostBook":
        """Return the book with this record; an older one of the same Agent goes."""
        others = [h for h in self.hosts if h.agent_id != record.agent_id]
        return self.model_copy(update={"hosts": [*others, record]})


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
    fit = [h for h in book.hosts if wanted is None or _means(h, wanted)]
    if len(fit) == 1:
        return fit[0]
    if not fit:
        raise UsageProblemError(
            f"no paired host is called “{one_line(wanted or '', 60)}”: these are known",
            [_choice(host) for host in book.hosts],
        )
    raise UsageProblemError(
        "several hosts fit: name one with `--host`", [_choice(host) for host in fit]
    )


def _means(host: HostRecord, word: str) -> bool:
    return host.name == word or (len(word) >= 4 and host.agent_id.startswith(word))


def _choice(host: HostRecord) -> Line:
    return line("  ", Span(host.agent_id[:8], "name"), f"  {host.name}  {host.urls[0]}")
