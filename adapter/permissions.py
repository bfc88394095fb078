"""Additional permissions of a question, line by line for a person. Sans-IO.

PROTOCOL.md section 5, `allows`. Nothing is left out: a key that is not known here is
shown as it came.
"""

import json
from collections.abc import Mapping
from typing import Any

from adapter.shapes import mapping, sequence, text


def permission_lines(raw: object) -> list[str]:
    """Return what is granted besides; nothing for null. Raises one of `MISFITS`."""
    if raw is None:
        return []
    lines: list[str] = []
    for key, value in mapping(raw).items():
        if value is None:
            continue
        if key == "network":
            lines += _network(mapping(value))
        elif key == "fileSystem":
            lines += _files(mapping(value))
        else:
            lines.append(_as_it_is(key, value))
    return list(dict.fromkeys(lines))


def _network(raw: Mapping[str, Any]) -> list[str]:
    lines = ["the whole network"] if raw.get("enabled") is True else []
    return lines + [
        _as_it_is(f"network {key}", value)
        for key, value in raw.items()
        if key != "enabled" and value is not None
    ]


def _files(raw: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for key, value in raw.items():
        if value is None:
            continue
        if key in {"read", "write"}:
            lines += [f"{key} {text(path)}" for path in sequence(value)]
        elif key == "entries":
            lines += [_entry(mapping(entry)) for entry in sequence(value)]
        else:
            lines.append(_as_it_is(f"files {key}", value))
    return lines


def _entry(raw: Mapping[str, Any]) -> str:
    place = mapping(raw["path"])
    simple = set(raw) == {"access", "path"} and set(place) == {"type", "path"}
    if simple and place["type"] == "path":
        return f"{text(raw['access'])} {text(place['path'])}"
    return _as_it_is("files", raw)


def _as_it_is(name: str, value: object) -> str:
    return f"{name}: {json.dumps(value, sort_keys=True)}"
