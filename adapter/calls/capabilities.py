"""Which features the running codex offers, from what it says itself. Sans-IO.

PROTOCOL.md section 4 (`gateway/capabilities`). A codex that is asked for a method that
does not exist answers with the names of all that do: so one question tells everything,
and nothing is inferred from a version but what no method shows.
"""

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from adapter.calls.versions import (
    FIRST_LOCKING,
    FIRST_REVIEWING,
    Version,
    parse_version,
)
from transport.protocol.capabilities import Capability, CapabilityStatus

PROBE: Final = "threadgate/probe"
"""A method that no codex has."""

_NAMES: Final = re.compile(r"`([A-Za-z][\w/]*)`")
_NEVER: Final[Version] = (999, 0, 0)


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature and the methods of Codex that it needs, all of them.

    `stable`: the first version that does not call one of them experimental; `None` where
    none ever was. `least`: older ones have the methods, and cannot be used.
    """

    name: str
    methods: tuple[str, ...]
    since: str | None = None
    stable: Version | None = None
    least: Version | None = None


_PAGES: Final[Version] = (0, 163, 0)  # experimental in 0.147, stable in 0.163

FEATURES: Final = (
    Feature("thread/list", ("thread/list",)),
    Feature("thread/read", ("thread/read",)),
    Feature("turn/list", ("thread/turns/list",), stable=_PAGES),
    Feature("item/list", ("thread/turns/list",), stable=_PAGES),
    Feature("item/output", ("thread/turns/list",), stable=_PAGES),
    Feature("thread/diff", ("thread/turns/list",), stable=_PAGES),
    Feature("thread/search", ("thread/search",), stable=_NEVER),
    Feature("thread/find", ("thread/searchOccurrences",), stable=_NEVER),
    Feature("thread/start", ("thread/start", "turn/start")),
    Feature("thread/fork", ("thread/fork", "turn/start")),
    Feature("turn/start", ("thread/resume", "turn/start")),
    Feature("turn/steer", ("turn/steer",)),
    Feature("turn/interrupt", ("turn/interrupt",)),
    Feature("thread/rename", ("thread/name/set",)),
    Feature("thread/archive", ("thread/archive",)),
    Feature("thread/unarchive", ("thread/unarchive",)),
    Feature("thread/delete", ("thread/delete",)),
    Feature("thread/compact", ("thread/compact/start",)),
    Feature("thread/revert", ("thread/revert",), since="0.163"),
    Feature("thread/settings", ("thread/settings/update",), stable=_NEVER),
    Feature("thread/goal/get", ("thread/goal/get",)),
    Feature("thread/goal/set", ("thread/goal/set",)),
    Feature("review/start", ("review/start",), since="0.163", least=FIRST_REVIEWING),
    Feature("background/list", ("thread/backgroundTerminals/list",), stable=_NEVER),
    Feature(
        "background/stop", ("thread/backgroundTerminals/terminate",), stable=_NEVER
    ),
    Feature("model/list", ("model/list",)),
    Feature("file/search", ("fuzzyFileSearch",)),
    Feature("planMode", ("collaborationMode/list",), stable=_NEVER),
    Feature("codexQueue", ("thread/queue/list",), since="0.163", stable=_NEVER),
)


def offered_methods(refusal: str) -> frozenset[str]:
    """Return the methods named in the answer to `PROBE`; empty where it names none."""
    _, expected, names = refusal.partition("expected one of")
    return frozenset(_NAMES.findall(names)) if expected else frozenset()


def capabilities(offered: Set[str], version: str) -> tuple[Capability, ...]:
    """Return one row a feature, for a codex that offers these methods."""
    rows = [_row(feature, offered, version) for feature in FEATURES]
    return (*rows, _locks(version))


def _row(feature: Feature, offered: Set[str], version: str) -> Capability:
    missing = [name for name in feature.methods if name not in offered]
    if not offered:
        status, evidence = CapabilityStatus.OTHER, f"codex {version} did not say"
    elif missing:
        status = CapabilityStatus.UNAVAILABLE
        evidence = f"asked: codex {version} has no {', '.join(missing)}"
    elif (parse_version(version) or (0, 0, 0)) < (feature.least or (0, 0, 0)):
        status = CapabilityStatus.UNAVAILABLE
        evidence = f"by version: codex {version} is too old for it"
    else:
        status = _maturity(feature, version)
        evidence = f"asked: codex {version} has {', '.join(feature.methods)}"
    return Capability(
        feature=feature.name, status=status, since=feature.since, evidence=evidence
    )


def _maturity(feature: Feature, version: str) -> CapabilityStatus:
    number = parse_version(version) or (0, 0, 0)
    if feature.stable is not None and number < feature.stable:
        return CapabilityStatus.EXPERIMENTAL
    return CapabilityStatus.SUPPORTED


def _locks(version: str) -> Capability:
    locks = (parse_version(version) or (0, 0, 0)) >= FIRST_LOCKING
    return Capability(
        feature="threadLocks",
        status=CapabilityStatus.SUPPORTED if locks else CapabilityStatus.UNAVAILABLE,
        since=".".join(map(str, FIRST_LOCKING[:2])),
        evidence=f"by version: codex {version}",
        note=None
        if locks
        else "Beside another Codex threadgate only reads: two could mix up a thread.",
    )
