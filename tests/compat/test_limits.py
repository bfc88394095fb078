"""Every bound has a reason beside it, is used, and is reached by a test that names it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PLACES: Final = (
    "transport/limits",
    "adapter/limits",
    "agent/limits",
    "agent/edge_limits",
)
CONSTANT: Final = re.compile(r"[\w.]+\.[A-Z][A-Z_]+|[A-Z]+_[A-Z_]+")
PACKAGES: Final = ("transport", "adapter", "agent", "clients")

_STEP: Final = "the size of a step; what is read in all has a bound of its own"
NO_BOUND: Final[dict[str, str]] = {
    "RECEIVE_CHUNK": _STEP,
    "SEND_SLICE": _STEP,
    "STDOUT_CHUNK": _STEP,
    "ITEMS_A_PAGE": _STEP,
    "FIRST_TURNS": _STEP,
    "FIRST_ITEMS": _STEP,
    "PORTION_GROWTH": _STEP,
    "TURNS_LOOKED": _STEP,
    "TURNS_A_PAGE": _STEP,
    "REVERT_PAGE": _STEP,
    "READ_SHARE": "a share of the time, not of room",
    "DOUBTS": "a rule of judging, tested in test_follow",
    "FAILURES": "a rate, tested in test_supervisor",
    "STALE_SHARE": "a share of the ring, whose bound is JOURNAL_BYTES",
}
"""What is no bound and still stands among them, and why."""


def is_time(name: str) -> bool:
    """Deadlines and pauses have tests of their own, on clocks; here it is about room."""
    return name.endswith(("_S", "_MS"))


def constants(place: str) -> Iterator[tuple[str, str]]:
    """Return the names of a file, each with the source of its assignment."""
    lines = (ROOT / f"{place}.py").read_text().splitlines()
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            yield node.target.id, source


ALL: Final = [
    pytest.param(place, name, source, id=f"{place}:{name}")
    for place in PLACES
    for name, source in constants(place)
]


def named_in(path: Path) -> Iterator[tuple[str, str]]:
    """Return what a file imports from modules, and names in strings (monkeypatch)."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", one.name) for one in node.names)
        elif isinstance(node, ast.Constant) and CONSTANT.fullmatch(str(node.value)):
            yield "", str(node.value).rpartition(".")[2]


@cache
def named(*folders: str) -> frozenset[tuple[str, str]]:
    own = Path(__file__)
    files = (path for one in folders for path in (ROOT / one).rglob("*.py"))
    return frozenset(found for path in files if path != own for found in named_in(path))


def is_named(place: str, name: str, *folders: str) -> bool:
    found = named(*folders)
    return (place.replace("/", "."), name) in found or ("", name) in found


@pytest.mark.parametrize(("place", "name", "source"), ALL)
def test_a_bound_has_its_reason_beside_it_and_is_used(
    place: str, name: str, source: str
) -> None:
    assert "  # " in source or is_time(name)
    used_here = len(re.findall(rf"\b{name}\b", (ROOT / f"{place}.py").read_text())) > 1
    assert used_here or is_named(place, name, *PACKAGES), "nobody uses it"


@pytest.mark.parametrize(
    ("place", "name"),
    [
        pytest.param(*one.values[:2], id=str(one.id))
        for one in ALL
        if not is_time(str(one.values[1]))
    ],
)
def test_a_bound_is_reached_by_a_test_that_names_it(place: str, name: str) -> None:
    reached = is_named(place, name, "tests")
    assert reached != (name in NO_BOUND), "a test names it, or NO_BOUND says why not"
