"""What every item has, whatever its kind. Sans-IO. PROTOCOL.md section 5."""

from transport.protocol.base import OpenEnum, WireModel


class ItemStatus(OpenEnum):
    """How far an item has come."""

    IN_PROGRESS = "inProgress"
    COMPLETED = "completed"
    FAILED = "failed"
    DECLINED = "declined"
    INTERRUPTED = "interrupted"
    OTHER = "other"


class ItemBase(WireModel):
    """What every item has. `provenance` says where it was seen (`codex:item/completed`).

    `sizes`: the true bytes of each field that `truncated` names.
    """

    id: str
    turn_id: str
    status: ItemStatus
    started_at: int | None = None
    completed_at: int | None = None
    background: bool | None = None
    stable_id: bool | None = None
    provenance: str | None = None
    truncated: list[str] | None = None
    sizes: dict[str, int] | None = None
