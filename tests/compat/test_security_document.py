"""Every test that SECURITY.md names is there to be run."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
NAMED: Final = re.findall(r"`(test_\w+)`", (ROOT / "SECURITY.md").read_text())


def defined() -> set[str]:
    found = set[str]()
    for path in (ROOT / "tests").rglob("test_*.py"):
        found |= set(re.findall(r"\bdef (test_\w+)\(", path.read_text()))
    return found


def test_every_promise_names_a_test_that_exists() -> None:
    assert len(NAMED) >= 30
    assert not set(NAMED) - defined()
