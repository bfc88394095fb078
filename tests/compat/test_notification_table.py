"""The adapter's tables against codex's schema: an upgrade of codex fails loudly."""

import json
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest

from adapter.approvals.server_requests import SERVER_REQUESTS, Asks, Refuses
from adapter.calls.versions import PINNED
from adapter.events.notifications import NOTIFICATIONS, Ignored
from adapter.runtime.acts import NOTHING_FILLED, Filled
from adapter.shapes.item_frame import Frame
from adapter.shapes.items import item_from
from tests.support import codex_says as says
from tests.support.replay import Replay, read_trace, trace_names
from transport.protocol.approvals import ChoiceEffect
from transport.protocol.items import ItemStatus

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
        assert shape.is_valid(row.declined)
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


ASKED: Final = {
    "command": ("item/commandExecution/requestApproval", says.command_approval()),
    "command, once": (
        "item/commandExecution/requestApproval",
        says.command_approval(availableDecisions=["accept", "acceptForSession"]),
    ),
    "permissions": ("item/permissions/requestApproval", says.permissions_approval()),
    "question": ("item/tool/requestUserInput", says.input_request()),
    "form": ("mcpServer/elicitation/request", says.elicitation()),
    "page": ("mcpServer/elicitation/request", says.page_request()),
    "tool": ("mcpServer/elicitation/request", says.tool_approval()),
}
GIVEN: Final = {
    "question": Filled(answers={"q1": ["Red"]}),
    "form": Filled(content={"colour": "red"}),
}


@pytest.mark.parametrize("name", sorted(ASKED))
def test_every_answer_is_legal_in_codex_s_own_schema(name: str) -> None:
    method, raw = ASKED[name]
    validator(METHODS[method]["params"]).validate(raw)
    row = SERVER_REQUESTS[method]
    assert isinstance(row, Asks)
    ways = row.build(raw, None).choices
    assert len(ways) >= 2
    for way in ways.values():
        given = GIVEN[name] if way.effect is ChoiceEffect.ANSWER else NOTHING_FILLED
        validator(METHODS[method]["result"]).validate(way.reply(given))


def test_an_answer_about_a_change_is_legal_too() -> None:
    method = "item/fileChange/requestApproval"
    frame = Frame(turn_id="t1", provenance="x", status=ItemStatus.IN_PROGRESS)
    item = item_from(says.change(), frame)
    row = SERVER_REQUESTS[method]
    assert isinstance(row, Asks)
    for root in (None, "/w"):
        ways = row.build(says.change_approval(grantRoot=root), item).choices
        assert len(ways) == 3
        for way in ways.values():
            validator(METHODS[method]["result"]).validate(way.reply(NOTHING_FILLED))


@pytest.mark.parametrize("name", trace_names())
def test_what_a_trace_s_client_answered_is_answered_the_same(name: str) -> None:
    """A device's answer becomes what the recorded client said, but for what is no more."""
    replay = Replay(lines=read_trace(name)).run()
    said = {
        line["msg"]["id"]: line["msg"]["result"]
        for line in replay.lines
        if line["dir"] == "out"
        and "method" not in line["msg"]
        and "result" in line["msg"]
    }
    for reply in replay.replies:
        if reply.result is None or reply.request_id not in said:
            continue
        theirs = said[reply.request_id]
        if not {"permissions", "answers", "action"} & set(theirs):
            continue
        ours = dict(reply.result)
        assert {k: v for k, v in ours.items() if v is not None} == {
            k: v for k, v in theirs.items() if v is not None
        }
