"""Codex's schema dump, cut down to what the adapter meets. Sans-IO.

Codex writes one bundle with every request of its app-server. We keep what the server
says by itself, whole (a test wants every notification named), and of the requests those
that the adapter sends.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

BUNDLE: Final = "codex_app_server_protocol.schemas.json"

REQUESTS: Final = (
    "command/exec",
    "config/read",
    "fuzzyFileSearch",
    "initialize",
    "model/list",
    "review/start",
    "thread/archive",
    "thread/backgroundTerminals/clean",
    "thread/backgroundTerminals/list",
    "thread/backgroundTerminals/terminate",
    "thread/compact/start",
    "thread/delete",
    "thread/fork",
    "thread/goal/clear",
    "thread/goal/get",
    "thread/goal/set",
    "thread/items/list",
    "thread/items/read",
    "thread/list",
    "thread/loaded/list",
    "thread/name/set",
    "thread/queue/list",
    "thread/read",
    "thread/resume",
    "thread/revert",
    "thread/search",
    "thread/searchOccurrences",
    "thread/settings/update",
    "thread/start",
    "thread/turns/list",
    "thread/unarchive",
    "turn/interrupt",
    "turn/start",
    "turn/steer",
)

TYPED: Final = (
    *REQUESTS,
    "configWarning",
    "error",
    "guardianWarning",
    "hook/completed",
    "item/agentMessage/delta",
    "item/autoApprovalReview/completed",
    "item/commandExecution/outputDelta",
    "item/commandExecution/requestApproval",
    "item/commandExecution/terminalInteraction",
    "item/completed",
    "item/fileChange/requestApproval",
    "item/permissions/requestApproval",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "item/started",
    "item/tool/call",
    "item/tool/requestUserInput",
    "mcpServer/elicitation/request",
    "mcpServer/startupStatus/updated",
    "model/rerouted",
    "modelProvider/authRecoveryStarted",
    "serverRequest/resolved",
    "thread/archived",
    "thread/closed",
    "thread/deleted",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/name/updated",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
    "thread/tokenUsage/updated",
    "thread/unarchived",
    "turn/completed",
    "turn/diff/updated",
    "turn/plan/updated",
    "turn/started",
    "warning",
)
"""Methods whose types are written out for the checkers: what the adapter reads."""

_PROSE: Final = frozenset({"$schema", "description", "format", "title"})
_REF: Final = "#/definitions/"

Schema = dict[str, Any]
Table = dict[str, dict[str, str | None]]


def flatten(bundle: Mapping[str, Any]) -> tuple[Schema, Table]:
    """Return one self-contained JSON Schema (draft 7) and the table of methods.

    A row: `kind` (notification, serverRequest, request) and the names of the
    definitions of its `params` and `result`.
    """
    definitions = _definitions(bundle)
    table = _table(definitions)
    roots = [name for row in table.values() for name in row.values() if name]
    kept = _closure(definitions, (name for name in roots if name in definitions))
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {name: definitions[name] for name in sorted(kept)},
    }
    return schema, table


def _definitions(bundle: Mapping[str, Any]) -> Schema:
    old = dict(bundle["definitions"])
    new = old.pop("v2")
    return {name: _plain(body) for name, body in {**old, **new}.items()}


def _plain(value: Any) -> Any:
    """Drop prose, and point into the one flat list of definitions."""
    if isinstance(value, list):
        parts = cast("Sequence[Any]", value)
        return [_plain(part) for part in parts]
    if not isinstance(value, dict):
        return value
    kept = {
        key: _plain(part)
        for key, part in cast("Schema", value).items()
        if not (key in _PROSE and isinstance(part, str))
    }
    if isinstance(ref := kept.get("$ref"), str):
        kept["$ref"] = ref.replace(f"{_REF}v2/", _REF)
    return kept


def _table(definitions: Schema) -> Table:
    table: Table = {}
    for method, params in _methods(definitions["ServerNotification"]):
        table[method] = {"kind": "notification", "params": params}
    for kind, union in (
        ("serverRequest", "ServerRequest"),
        ("request", "ClientRequest"),
    ):
        for method, params in _methods(definitions[union]):
            if kind == "request" and method not in REQUESTS:
                continue
            result = _response(params, definitions)
            table[method] = {"kind": kind, "params": params, "result": result}
    return dict(sorted(table.items()))


def _methods(union: Schema) -> Iterable[tuple[str, str | None]]:
    for branch in union["oneOf"]:
        properties = branch["properties"]
        method = properties["method"]["enum"][0]
        ref = properties.get("params", {}).get("$ref", "")
        yield method, ref.removeprefix(_REF) or None


def _response(params: str | None, definitions: Schema) -> str | None:
    name = (params or "").removesuffix("Params") + "Response"
    return name if name in definitions else None


def _closure(definitions: Schema, roots: Iterable[str]) -> set[str]:
    found: set[str] = set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            parts = json.dumps(definitions[name]).split(_REF)[1:]
            todo += [part.split('"', 1)[0] for part in parts]
    return found
