"""Permissions that a question is about, line by line for a person. Sans-IO.

PROTOCOL.md section 5, `allows` and `permissions`. Nothing is left out: a key that is not
known here is shown as it came.
"""

import json
from collections.abc import Mapping
from typing import Any

from adapter.shapes.shapes import mapping, sequence, text
from transport.protocol.approvals import Permission, PermissionKind


def permission_lines(raw: object) -> list[str]:
    """Return what is granted besides; nothing for null. Raises one of `MISFITS`."""
    return [] if raw is None else [row.text for row in permission_rows(mapping(raw))]


def permission_rows(raw: Mapping[str, Any]) -> list[Permission]:
    """Return each permission once; `other` is what is not known here.

    Raises one of `MISFITS`.
    """
    rows: list[Permission] = []
    for key, value in raw.items():
        if value is None:
            continue
        if key == "network":
            rows += _network(mapping(value))
        elif key == "fileSystem":
            rows += _files(mapping(value))
        else:
            rows.append(_as_it_is(key, value))
    return list({(row.access, row.text): row for row in rows}.values())


def _network(raw: Mapping[str, Any]) -> list[Permission]:
    rows: list[Permission] = []
    if raw.get("enabled") is True:
        rows.append(Permission(access=PermissionKind.NETWORK, text="the whole network"))
    return rows + [
        _as_it_is(f"network {key}", value)
        for key, value in raw.items()
        if key != "enabled" and value is not None
    ]


def _files(raw: Mapping[str, Any]) -> list[Permission]:
    rows: list[Permission] = []
    for key, value in raw.items():
        if value is None:
            continue
        if key in {"read", "write"}:
            rows += [_path(key, text(path)) for path in sequence(value)]
        elif key == "entries":
            rows += [_entry(mapping(entry)) for entry in sequence(value)]
        else:
            rows.append(_as_it_is(f"files {key}", value))
    return rows


def _path(access: str, path: str) -> Permission:
    return Permission(access=PermissionKind(access), path=path, text=f"{access} {path}")


def _entry(raw: Mapping[str, Any]) -> Permission:
    place = mapping(raw["path"])
    simple = set(raw) == {"access", "path"} and set(place) == {"type", "path"}
    if simple and place["type"] == "path":
        return _path(text(raw["access"]), text(place["path"]))
    return _as_it_is("files", raw)


def _as_it_is(name: str, value: object) -> Permission:
    words = f"{name}: {json.dumps(value, sort_keys=True)}"
    return Permission(access=PermissionKind.OTHER, text=words)
