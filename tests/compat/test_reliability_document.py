"""docs/RELIABILITY.md and tests/faults name each other, test by test."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
TEXT: Final = (ROOT / "docs" / "RELIABILITY.md").read_text()
ROW: Final = re.compile(r"^\| (?!fault |-)(.+) \|$", re.MULTILINE)
TEST: Final = re.compile(r"`(tests/faults/test_\w+\.py)::(test_\w+)`")


def rows() -> Iterator[list[str]]:
    """The four cells of each row, in order."""
    for row in ROW.findall(TEXT):
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", row)]


def named() -> set[tuple[str, str]]:
    return {(path, test) for row in rows() for path, test in TEST.findall(row[-1])}


def functions(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def defined() -> set[tuple[str, str]]:
    return {
        (path.relative_to(ROOT).as_posix(), name)
        for path in sorted((ROOT / "tests" / "faults").glob("test_*.py"))
        for name in functions(path)
        if name.startswith("test_")
    }


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row[0][:60])
def test_a_row_says_all_four_things(row: list[str]) -> None:
    fault, seen, kept, tests = row
    assert all(re.search(r"\w", cell) for cell in (fault, seen, kept))
    assert TEST.search(tests)


def test_every_test_that_the_document_names_is_there() -> None:
    assert not named() - defined()


def test_every_fault_that_is_tested_is_in_the_document() -> None:
    assert not defined() - named()
