"""docs/PROTOCOL.md says what the code does: its tables are parsed and compared."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Final

import pytest
from pydantic import BaseModel

from transport.errors import CLOSE_NUMBERS, REFUSALS, ErrorCode
from transport.limits import SESSION_LIMITS
from transport.protocol import (
    approvals,
    background,
    capabilities,
    events,
    gateway,
    goals,
    items,
    queue,
    threads,
    turns,
    work_items,
)
from transport.protocol.methods import METHODS

ROOT: Final = Path(__file__).parents[2]
TEXT: Final = (ROOT / "docs" / "PROTOCOL.md").read_text()

TYPES: Final[dict[str, type[BaseModel]]] = {
    "Thread": threads.Thread,
    "Turn": turns.Turn,
    "Approval": approvals.Approval,
    "GateState": gateway.GateState,
    "RuntimeState": gateway.RuntimeState,
    "Writer": gateway.Writer,
    "Capability": capabilities.Capability,
    "ModelInfo": capabilities.ModelInfo,
    "TurnError": turns.TurnError,
    "Usage": turns.Usage,
    "Citation": items.Citation,
    "AgentRef": work_items.AgentRef,
    "QueuedMessage": queue.QueuedMessage,
    "DroppedMessage": queue.DroppedMessage,
    "Goal": goals.Goal,
    "BackgroundCommand": background.BackgroundCommand,
}
ENUMS: Final[dict[str, type[StrEnum]]] = {
    "Thread.status": threads.ThreadStatus,
    "Thread.mode": threads.ThreadMode,
    "Thread.lease": gateway.LeaseState,
    "Turn.status": turns.TurnStatus,
    "Item.status": items.ItemStatus,
    "Approval.kind": approvals.ApprovalKind,
    "Approval.state": approvals.ApprovalState,
    "Choice.effect": approvals.ChoiceEffect,
    "Permission.access": approvals.PermissionKind,
    "Detail.mode": approvals.ElicitationMode,
    "Writer.kind": gateway.WriterKind,
    "RuntimeState.state": gateway.RuntimePhase,
    "Capability.status": capabilities.CapabilityStatus,
    "Notice.level": events.NoticeLevel,
    "QueuedMessage.waitsFor": queue.WaitsFor,
    "Goal.status": goals.GoalStatus,
    "Image.origin": work_items.ImageOrigin,
    "Subagent.action": work_items.SubagentAction,
    "Subagent.state": work_items.SubagentState,
    "Review.phase": work_items.ReviewPhase,
}
KINDS: Final[dict[str, type[items.ItemBase]]] = {
    "userMessage": items.UserMessage,
    "agentMessage": items.AgentMessage,
    "reasoning": items.Reasoning,
    "command": items.Command,
    "fileChange": items.FileChange,
    "toolCall": items.ToolCall,
    "webSearch": items.WebSearch,
    "plan": items.Plan,
    "image": items.Image,
    "subagent": items.Subagent,
    "review": items.Review,
    "compaction": items.Compaction,
    "other": items.OtherItem,
}


def table(first_header: str, *, nth: int = 0) -> list[list[str]]:
    """Return the rows of the n-th table whose first column has this header."""
    found = [
        block
        for block in re.findall(r"(?:^\|.*\n)+", TEXT, re.MULTILINE)
        if block.startswith(f"| {first_header} |")
    ]
    rows = found[nth].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def names(cell: str) -> set[str]:
    """Return the field names of a cell, `?` kept."""
    return {word.strip() for word in cell.split(",") if word.strip()}


def fields(model: type[BaseModel], *, leave: frozenset[str] = frozenset()) -> set[str]:
    """Return a model's wire names; what may be absent ends in `?`."""
    found = set[str]()
    for name, field in model.model_fields.items():
        if name in leave:
            continue
        optional = field.default is None and not field.is_required()
        found.add((field.alias or name) + ("?" if optional else ""))
    return found


def params(model: type[BaseModel]) -> set[str]:
    """Params: whatever has a default may be absent."""
    return {
        (field.alias or name) + ("" if field.is_required() else "?")
        for name, field in model.model_fields.items()
    }


def test_the_method_table_is_the_code_s() -> None:
    rows = table("method")
    assert {row[0] for row in rows} == set(METHODS)
    for name, access, gated, takes, gives in rows:
        method = METHODS[name]
        assert access == method.access, name
        assert gated == ("yes" if method.gated else "no"), name
        assert names(takes) == params(method.params), name
        assert names(gives) == fields(method.result), name


def test_the_error_table_is_the_code_s() -> None:
    rows = {row[0]: row[1] for row in table("code", nth=2)}
    assert set(rows) == {str(code) for code in ErrorCode}
    for code, cls in REFUSALS.items():
        if code is not ErrorCode.CODEX_UNAVAILABLE:  # depends on the gate's reason
            assert rows[code] == ("yes" if cls.retryable else "no"), code


def test_the_close_codes_are_the_code_s() -> None:
    rows = {row[1]: int(row[0]) for row in table("code")}
    assert rows == {str(code): number for code, number in CLOSE_NUMBERS.items()}


def test_the_event_tables_are_the_code_s() -> None:
    session, journal = table("event"), table("event", nth=1)
    for rows, known in (
        (session, events.SESSION_EVENTS),
        (journal, events.JOURNAL_EVENTS),
    ):
        assert {row[0] for row in rows} == set(known)
        for name, data in rows:
            assert names(data) == fields(known[name]), name


def test_the_delta_channels_are_the_code_s() -> None:
    rows = {int(number): name for number, name in table("channel")}
    assert rows == {int(c): c.name.lower() for c in events.DeltaChannel}


def test_the_limits_are_the_code_s() -> None:
    rows = {name: int(value) for name, value in table("limit")}
    assert rows == SESSION_LIMITS.wire()


@pytest.mark.parametrize("name", sorted(TYPES))
def test_a_type_has_the_documented_fields(name: str) -> None:
    rows = {row[0]: row[1] for row in table("type", nth=1)}
    assert set(rows) == set(TYPES)
    assert names(rows[name]) == fields(TYPES[name])


@pytest.mark.parametrize("name", sorted(ENUMS))
def test_an_enum_has_the_documented_values(name: str) -> None:
    rows = {row[0]: row[1] for row in table("enum")}
    assert set(rows) == set(ENUMS)
    assert names(rows[name]) == {str(value) for value in ENUMS[name]} - {"other"}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_an_item_kind_has_the_documented_fields(kind: str) -> None:
    rows = {row[0]: row[1] for row in table("kind")}
    assert set(rows) == set(KINDS)
    common = frozenset(items.ItemBase.model_fields) | {"kind"}
    assert names(rows[kind]) == fields(KINDS[kind], leave=common)


def test_the_gate_reasons_are_the_code_s() -> None:
    rows = {row[0] for row in table("reason")}
    assert rows == {str(reason) for reason in gateway.GateReason} - {"other"}


def test_every_notice_that_the_code_sends_is_listed() -> None:
    listed = {word for row in table("code", nth=1) for word in names(row[0])}
    sources = [*(ROOT / "agent").rglob("*.py"), *(ROOT / "adapter").rglob("*.py")]
    text = "\n".join(path.read_text() for path in sources)
    sent = set(re.findall(r'code="([a-zA-Z]+)"', text))
    sent |= set(re.findall(r'notice\(\s*(?:NoticeLevel\.\w+, )?"([a-zA-Z]+)"', text))
    assert {"foreignTurn", "runtimeDied", "requestRefused", "notNamed"} <= sent
    assert not sent - listed
