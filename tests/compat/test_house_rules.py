"""Rules of the house that no linter knows: what our code must never contain."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("agent", "adapter", "transport", "generated", "clients")
NURSERIES: Final = frozenset(
    {
        "agent/app.py",
        "agent/sessions/serve.py",
        "adapter/processes/process.py",
        "transport/background.py",
    }
)
NAMES: Final = frozenset({"utils", "util", "helpers", "helper", "common", "manager"})


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


ALL: Final = list(sources())


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("path", ALL, ids=name)
def test_no_asyncio_in_our_code(path: Path) -> None:
    roots = {
        module.partition(".")[0] for module in imported(ast.parse(path.read_text()))
    }
    assert not roots & {"asyncio", "anyio", "trio_asyncio"}


@pytest.mark.parametrize("path", ALL, ids=name)
def test_nurseries_are_opened_only_where_the_house_allows(path: Path) -> None:
    opens = "open_nursery(" in path.read_text()
    assert not opens or name(path) in NURSERIES


@pytest.mark.parametrize("path", ALL, ids=name)
def test_a_module_says_what_it_is_in_its_first_line(path: Path) -> None:
    tree = ast.parse(path.read_text())
    if not tree.body:
        return
    assert ast.get_docstring(tree), f"{name(path)} has no docstring"


@pytest.mark.parametrize("path", ALL, ids=name)
def test_no_module_has_a_name_that_says_nothing(path: Path) -> None:
    assert path.stem not in NAMES


LAUNCHERS: Final = [path for path in ALL if name(path).startswith("adapter/")]


@pytest.mark.parametrize("path", LAUNCHERS, ids=name)
def test_what_launches_codex_never_says_listen_daemon_or_proxy(path: Path) -> None:
    strings = {
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert not strings & {"--listen", "daemon", "proxy"}
