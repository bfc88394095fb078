"""Paired devices and pairing as lines. Sans-IO. PROTOCOL.md section 1."""

from collections.abc import Sequence
from typing import Final

from clients.cli.clock import Clock
from clients.cli.columns import table
from clients.cli.plain import one_line, visible
from clients.cli.style import Line, Span, bold, dim, line
from transport.protocol.admin import DeviceRow, PairCandidate
from transport.protocol.gateway import Ceiling, DeviceInfo

NAME_LIMIT: Final = 40  # characters of a name that a stranger chose
EVERY_FOLDER: Final = "the folders of all threads"  # what no root named means
_ORDER: Final = ("read", "write", "approve", "approve.session")


def in_order(scopes: Sequence[str]) -> list[str]:
    """Return scopes from the least to the most; unknown ones last."""
    return sorted(scopes, key=lambda s: (_ORDER.index(s) if s in _ORDER else 99, s))


def device_table(
    devices: Sequence[DeviceRow], clock: Clock, *, width: int | None
) -> list[Line]:
    """Return a table of devices, revoked ones too."""
    if not devices:
        return [line("No devices. Pair one with `threadgate pair`.")]
    head = ("DEVICE", "NAME", "SCOPES", "SEEN", "STATE", "MAY GO")
    return table(head, [_device_row(d, clock) for d in devices], width=width)


def _device_row(device: DeviceRow, clock: Clock) -> list[Span]:
    seen = clock.ago(device.last_seen_at) if device.last_seen_at else "never"
    return [
        Span(device.id, "name"),
        Span(one_line(device.name, NAME_LIMIT)),
        Span(",".join(in_order(device.scopes))),
        Span("now" if device.sessions else seen),
        _state(device),
        Span(ceiling_text(device)),
    ]


def _state(device: DeviceRow) -> Span:
    if device.revoked:
        return Span("revoked", "bad")
    if device.sessions:
        return Span("connected", "good")
    return Span("paired" if device.paired_by_check else "paired, unchecked")


def ceiling_text(device: DeviceRow) -> str:
    """Return how far a device may go: sandbox, approval policies, folders."""
    ceiling = device.ceiling
    policies = "/".join(ceiling.approval_policy)
    folders = _folders(ceiling, device.follows_threads)
    return f"{ceiling.sandbox}, {policies}, {folders}"


def device_choice(device: DeviceRow) -> Line:
    """Return a device as one of several that a person may have meant."""
    return line("  ", Span(device.id, "name"), f"  {one_line(device.name, NAME_LIMIT)}")


def check_text(check: str) -> str:
    """Return a check number in two groups, as both sides show it."""
    return f"{check[:3]} {check[3:]}"


def candidate_lines(candidate: PairCandidate) -> list[Line]:
    """Return who asks to be paired, and what to compare."""
    rows = [
        line(
            bold(f"A device asks to be paired: {one_line(candidate.name, NAME_LIMIT)}")
        ),
        _field("fingerprint", candidate.fingerprint),
        _field("from", candidate.source),
        _field("would get", ", ".join(in_order(candidate.scopes))),
        *_field_in(candidate),
        line("  ", dim(f"{'check':<13}"), Span(check_text(candidate.check), "warn")),
        line("Does the device show the same check number?"),
    ]
    if candidate.known_revoked:
        rows.insert(1, line(Span("  This device's key was revoked before.", "bad")))
    return rows


def paired_line(device: DeviceRow) -> Line:
    """Return that a device is paired, at the workstation."""
    name = one_line(device.name, NAME_LIMIT)
    text = f"Paired: {name} ({device.id}) with {', '.join(in_order(device.scopes))}."
    return line(Span(text, "good"))


def connected_lines(host: str, device: DeviceInfo) -> list[Line]:
    """Return that pairing worked, at the device."""
    rows = [line(Span(f"Paired with {one_line(host, NAME_LIMIT)}.", "good"))]
    rows.append(
        _field("this device", f"{one_line(device.name, NAME_LIMIT)} ({device.id})")
    )
    rows.append(_field("may", ", ".join(in_order(device.scopes))))
    rows += _field_in(device)
    rows.append(line("Try: threadgate status"))
    return rows


def _field_in(of: PairCandidate | DeviceInfo) -> list[Line]:
    if of.ceiling is None:
        return []
    return [_field("in", _folders(of.ceiling, of.follows_threads))]


def _folders(ceiling: Ceiling, follows_threads: bool) -> str:
    roots = " ".join(visible(root) for root in ceiling.roots)
    if not roots:
        return EVERY_FOLDER
    return f"{roots} and {EVERY_FOLDER}" if follows_threads else roots


def _field(name: str, text: str) -> Line:
    return line("  ", dim(f"{name:<13}"), one_line(text))
