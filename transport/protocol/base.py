"""The pydantic bases that every v2 model is built on. Sans-IO. PROTOCOL.md section 1.

On the wire: camelCase keys, milliseconds since the epoch (`…At`), opaque ids of
printable ASCII up to 128 bytes. In Python: snake_case fields of frozen models.
"""

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

ID_PATTERN = r"^[\x21-\x7e]{1,128}$"

WireId = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
RequestKey = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{16,64}$")]
WaitMs = Annotated[int, Field(ge=0, le=90_000)]


class WireModel(BaseModel):
    """A value that the Agent sends: readers ignore keys that they do not know."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        frozen=True,
        extra="ignore",
    )

    def wire(self) -> dict[str, Any]:
        """Return plain values for the codec; what is `None` is left out."""
        return self.model_dump(by_alias=True, exclude_none=True)


class Params(WireModel):
    """What a client sends: strict types, and an unknown key is refused.

    A safety key (`expectedLastTurnId`) must never be ignored by an older Agent.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    def wire(self) -> dict[str, Any]:
        """Return plain values for the codec; what has its default is left out.

        So a client of tomorrow does not name a new key to an Agent of today.
        """
        return self.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)


class NoParams(Params):
    """For methods that take nothing."""


class MutationParams(Params):
    """What every mutation takes: one outcome for each key, and how long its client has
    patience with a refusal that may pass."""

    request_key: RequestKey
    wait_ms: WaitMs = 0

    def wire(self) -> dict[str, Any]:
        """As of all params; what is meant comes first, so published bytes stay as they are."""
        values = super().wire()
        names = [name for name in ("requestKey", "waitMs") if name in values]
        last = {name: values.pop(name) for name in names}
        return values | last


class ThreadMutationParams(MutationParams):
    """What every mutation of a stored thread takes."""

    thread_id: WireId


def thread_of(params: MutationParams) -> str | None:
    """Return the stored thread that a mutation is about, if there is one yet."""
    return params.thread_id if isinstance(params, ThreadMutationParams) else None


class OpenEnum(StrEnum):
    """An enum that grows: a value that this build does not know reads as `other`."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls("other") if isinstance(value, str) and value != "other" else None
