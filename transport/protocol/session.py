"""Opening a session, subscribing, pairing. Sans-IO. PROTOCOL.md sections 1 and 2."""

from typing import Annotated, Literal

from pydantic import Field

from transport.protocol.base import Params, WireId, WireModel
from transport.protocol.events import Open
from transport.protocol.gateway import (
    AgentInfo,
    DeviceInfo,
    GateState,
    Limits,
    RuntimeState,
)

PROTOCOL_VERSION = "2.0"
Version = Annotated[str, Field(pattern=r"^\d{1,3}\.\d{1,3}$")]
ShortText = Annotated[str, Field(min_length=1, max_length=100)]


class VersionRange(Params):
    """Versions a client speaks, `major.minor`, compared as integers."""

    min: Version
    max: Version


class ClientInfo(Params):
    """Who connects. `instance`: random, 128 bits of hex, kept over reconnects."""

    name: ShortText
    version: ShortText
    platform: ShortText
    instance: WireId


class SessionOpenParams(Params):
    """`session/open`, the first request of every session."""

    protocol: VersionRange
    client: ClientInfo


class SessionOpenResult(WireModel):
    """What a client needs to begin."""

    protocol: str
    agent: AgentInfo
    device: DeviceInfo
    runtime: RuntimeState
    gate: GateState
    epoch: str
    head: int
    now: int
    limits: Limits


class ResumeFrom(Params):
    """A cursor: the seq of the last event handled, in an epoch."""

    epoch: WireId
    seq: Annotated[int, Field(ge=0)]


class SubscribeParams(Params):
    """`events/subscribe`: replaces the session's one subscription."""

    threads: Literal["all"] | Annotated[list[WireId], Field(max_length=256)]
    deltas: bool = True
    resume: ResumeFrom | None = None


class SubscribeResult(WireModel):
    """Where events go on, and every item in progress as of `head`."""

    epoch: str
    head: int
    verdict: str
    open: list[Open]


class PairingConfirmParams(Params):
    """`pairing/confirm`, the only request of a pairing connection."""

    client: ClientInfo


class PairingConfirmResult(WireModel):
    """The device exists now; connect in mode 1."""

    device: DeviceInfo
    agent: AgentInfo
