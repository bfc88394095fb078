"""What the runtime offers, and its models. Sans-IO. PROTOCOL.md sections 4 and 5."""

from transport.protocol.base import NoParams, OpenEnum, WireModel


class CapabilityStatus(OpenEnum):
    """`experimental`: Codex itself says that it may change or go."""

    SUPPORTED = "supported"
    EXPERIMENTAL = "experimental"
    UNAVAILABLE = "unavailable"
    OTHER = "other"


class Capability(WireModel):
    """One feature, mostly a method's name. `since`: the Codex version that brought it.

    `evidence` says how this was found out: asked of the running Codex, or its version.
    """

    feature: str
    status: CapabilityStatus
    since: str | None = None
    evidence: str
    note: str | None = None


class CapabilitiesParams(NoParams):
    """`gateway/capabilities` takes nothing."""


class CapabilitiesResult(WireModel):
    """What the Codex that runs now offers."""

    rows: list[Capability]


class ModelInfo(WireModel):
    """One model. `id` goes into `model` of other methods, `efforts` into `effort`."""

    id: str
    name: str
    efforts: list[str]
    default_effort: str | None = None
    is_default: bool


class ModelListParams(NoParams):
    """`model/list` takes nothing."""


class ModelListResult(WireModel):
    """The models that Codex offers, in its order."""

    models: list[ModelInfo]
