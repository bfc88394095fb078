"""What the Codex over there can do, as lines. Sans-IO."""

from collections.abc import Sequence
from typing import Final

from clients.cli.columns import table
from clients.cli.style import Line, Span, Style
from transport.protocol.capabilities import Capability, CapabilityStatus

_STYLES: Final[dict[CapabilityStatus, Style]] = {
    CapabilityStatus.SUPPORTED: "good",
    CapabilityStatus.EXPERIMENTAL: "warn",
    CapabilityStatus.UNAVAILABLE: "bad",
}


def capability_table(rows: Sequence[Capability], *, width: int | None) -> list[Line]:
    """Return a table of features: whether each is there, and how that was found out."""
    shown = [
        [
            Span(row.feature, "name"),
            Span(str(row.status), _STYLES.get(row.status, "")),
            Span(row.since or ""),
            Span(f"{row.evidence}: {row.note}" if row.note else row.evidence),
        ]
        for row in rows
    ]
    return table(("FEATURE", "STATUS", "SINCE", "HOW IT IS KNOWN"), shown, width=width)
