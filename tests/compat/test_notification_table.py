"""The adapter's tables against codex's schema: an upgrade of codex fails loudly."""

import json
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest

from adapter.notifications import NOTIFICATIONS, Ignored
from adapter.server_requests import DECLINED, SERVER_REQUESTS, Asks, Refuses
from adapter.versions import PINNED
from tests.support.replay import read_trace, trace_names

GENERATED: Final = Path(__file__).parents[2] / "generated"
SCHEMA: Final[dict[str, Any]] = json.loads(
    (GENERATED / "schema/codex.json").read_text()
)
METHODS: Final[dict[str, dict[str, str | None]]] = json.loads(
    (GENERATED / "schema/methods.json").read_text()
)
GONE: Final = {"currentTime/read"}  # asked by codex 0.145 to 0.163
OF_PINNED: Final = [
    name for name in trace_names() if name.startswith(f"v{PINNED}") or name[0] != "v"
]


def methods(kind: str) -> set[str]:
    return {name for name, row in METHODS.items() if row["kind"] == kind}


def validator(definition: str | None) -> Any:
    return jsonschema_rs.validator_for(
        {**SCHEMA, "$ref": f"#/definitions/{definition}"}
    )


def test_every_notification_of_the_schema_has_a_fate_and_no_other() -> None:
    assert set(NOTIFICATIONS) == methods("notification")
    assert len(NOTIFICATIONS) == 87


def test_every_server_request_of_the_schema_has_an_answer() -> None:
    assert set(SERVER_REQUESTS) == methods("serverRequest") | GONE


def test_what_is_ignored_says_why() -> None:
    reasons = [row.reason for row in NOTIFICATIONS.values() if isinstance(row, Ignored)]
    assert all(len(reason.split()) >= 3 for reason in reasons)


@pytest.mark.parametrize("method", sorted(set(SERVER_REQUESTS) - GONE))
def test_a_refusal_is_legal_in_codex_s_own_schema(method: str) -> None:
    row = SERVER_REQUESTS[method]
    shape = validator(METHODS[method]["result"])
    if isinstance(row, Asks):
        assert shape.is_valid(DECLINED)
    elif isinstance(row, Refuses):
        assert shape.is_valid(row.result(1_796_000_000_000))
    else:
        assert not shape.is_valid({})  # no legal answer grants nothing: an error


def test_the_pinned_version_is_the_schema_s() -> None:
    manifest = json.loads((GENERATED / "MANIFEST.json").read_text())
    assert manifest["codex"]["version"] == PINNED


@pytest.mark.parametrize("name", OF_PINNED)
def test_what_the_pinned_codex_really_says_fits_its_schema(name: str) -> None:
    for line in read_trace(name):
        message = line["msg"]
        if line["dir"] == "in" and "method" in message:
            row = METHODS[message["method"]]
            validator(row["params"]).validate(message["params"])
