"""What goes with a message: files, a schema, how it is to be taken. Trio shell."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

import trio

from clients.cli.exits import UsageProblemError
from clients.cli.pictures import upload
from clients.cli.plain import one_line
from clients.cli.screen import Screen
from transport.client import Client
from transport.protocol.turns import (
    ImageInput,
    InputPart,
    MentionInput,
    ModeName,
    TextInput,
)

_SCHEMA: Final = 1_000_000  # bytes read of a schema; the Agent's own limit is lower


def request_key() -> str:
    """Return a fresh key: the Agent does one thing for it, however often it is sent."""
    return f"cli-{secrets.token_hex(16)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosed:
    """What comes with the text. `schema`: a file that the answer has to fit."""

    images: Sequence[Path] = ()
    mentions: Sequence[str] = ()
    schema: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a message is to be taken. `delivery`: start, steer or queue; the rest holds
    for later turns too, `None` changes nothing."""

    delivery: Literal["start", "steer", "queue"] = "start"
    model: str | None = None
    effort: str | None = None
    mode: ModeName | None = None
    cwd: str | None = None


NOTHING: Final = Enclosed()
PLAIN: Final = Manner()


async def message_parts(
    screen: Screen, client: Client, text: str, enclosed: Enclosed
) -> list[InputPart]:
    """Return a message's parts; its pictures are uploaded first.

    Raises: UsageProblemError, FailedError, Refusal.
    """
    parts: list[InputPart] = [TextInput(type="text", text=text)]
    for path in enclosed.images:
        blob_id = await upload(screen, client, path)
        parts.append(ImageInput(type="image", blob_id=blob_id))
    mentions = [MentionInput(type="mention", path=path) for path in enclosed.mentions]
    return [*parts, *mentions]


async def output_schema(enclosed: Enclosed) -> dict[str, Any] | None:
    """Return the JSON Schema of the file, if one was named. Raises: UsageProblemError."""
    if enclosed.schema is None:
        return None
    return await trio.to_thread.run_sync(_read_schema, enclosed.schema)


def _read_schema(path: Path) -> dict[str, Any]:
    name = one_line(str(path))
    try:
        with path.open("rb") as file:
            found = cast("object", json.loads(file.read(_SCHEMA)))
    except OSError as exc:
        raise UsageProblemError(f"{name} cannot be read: {exc.strerror}") from exc
    except (ValueError, RecursionError) as exc:  # the latter: nested very deep
        raise UsageProblemError(f"{name} is no JSON: {exc}") from exc
    if not isinstance(found, dict):
        raise UsageProblemError(f"{name} holds no JSON Schema: that is an object")
    return cast("dict[str, Any]", found)
