"""What doctor's lines say, and that nothing private is left in a report."""

import pytest

from adapter.calls.drift import Drift
from agent.doctor.doctor_codex import schema_finding, version_of
from agent.doctor.findings import Level, fail, ok, redacted, warn

PRIVATE = ("ann", "ann-desk")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0.163.0, /home/ann/.local/bin/codex", "0.163.0, <path>/codex"),
        ("others may look into /home/ann/.codex (755)", "others may look into <path> (755)"),
        ("~/secret/plan.txt is open", "<path> is open"),
        ("192.168.1.7:7130 is free", "<host>:7130 is free"),
        ("ann-desk.example.org:7130 is in use", "<host>:7130 is in use"),
        ("Codex desktop runs (pid 4242)", "Codex desktop runs (pid <n>)"),
        ("told by ann on ann-desk", "told by <name> on <name>"),
        ("an annual report", "an annual report"),
        ("2 missing (thread/queue/list)", "2 missing (thread/queue/list)"),
        ("tested are 0.144.4 to 0.171.0", "tested are 0.144.4 to 0.171.0"),
    ],
)  # fmt: skip
def test_a_report_holds_no_path_address_pid_or_name(text: str, shown: str) -> None:
    (found,) = redacted([warn("x", text, text)], private=PRIVATE)
    assert (found.text, found.advice) == (shown, shown)


def test_the_wire_has_advice_where_there_is_some() -> None:
    assert ok("a", "b").wire() == {"name": "a", "level": "ok", "text": "b"}
    assert fail("a", "b", "c").wire()["advice"] == "c"


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("0.143.9", Level.FAIL),
        ("0.144.4", Level.WARN),
        ("0.146.9", Level.WARN),
        ("0.147.0", Level.OK),
        ("0.171.0", Level.OK),
        ("0.172.0", Level.WARN),
        ("unheard-of", Level.FAIL),
    ],
)
def test_a_version_is_placed_in_the_tested_range(version: str, level: Level) -> None:
    assert version_of(version).level is level


def test_a_schema_that_differs_matters_by_version() -> None:
    none = Drift(missing=(), added=(), changed=())
    names = tuple(f"thread/m{number}" for number in range(9))
    some = Drift(missing=names, added=(), changed=("turn/start",))
    assert schema_finding(none, "0.171.0").level is Level.OK
    older = schema_finding(some, "0.163.0")
    assert older.level is Level.OK
    assert "9 missing" in older.text
    assert "and 3 more" in older.text
    assert schema_finding(some, "0.180.0").level is Level.WARN
    assert schema_finding(some, "0.171.0").level is Level.FAIL
