"""docs/ARCHITECTURE.md lists every module, its kind, and nothing that is gone."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
TEXT: Final = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
PACKAGES: Final = ("transport", "adapter", "agent", "generated", "clients")
KINDS: Final = {"core": "Sans-IO", "shell": "Trio shell", "blocking": "Blocking I/O"}
ROW: Final = re.compile(r"^\| `([\w/]+)` \| (\w+) \| (.+) \|$", re.MULTILINE)
PLACE: Final = re.compile(rf"\b((?:{'|'.join(PACKAGES)})(?:/\w+)+)")


def listed() -> Iterator[tuple[str, str]]:
    """Every row: a module as `package/module`, and its kind."""
    for section in re.split(r"^## ", TEXT, flags=re.MULTILINE):
        if found := re.match(r"`(\w+)/`", section):
            for name, kind, _ in ROW.findall(section):
                yield f"{found[1]}/{name}", kind


def modules() -> Iterator[str]:
    """Every module that has something in it; of packages, `__init__` is their name."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.name != "__init__.py":
                yield path.relative_to(ROOT).with_suffix("").as_posix()


def first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


MODULES: Final = list(modules())


def test_every_module_is_listed_once_and_none_that_is_gone() -> None:
    assert sorted(name for name, _ in listed()) == sorted(MODULES)


@pytest.mark.parametrize(("name", "kind"), list(listed()))
def test_a_module_s_first_line_says_its_kind_as_the_document_does(
    name: str, kind: str
) -> None:
    line = first_line(ROOT / f"{name}.py")
    said = [key for key, words in KINDS.items() if words in line]
    assert said == [kind]


def test_every_core_is_held_to_doing_no_io_and_nothing_else_is() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    held = next(
        contract["source_modules"]
        for contract in contracts["importlinter"]["contracts"]
        if contract["name"] == "cores do no I/O"
    )
    cores = {name.replace("/", ".") for name, kind in listed() if kind == "core"}
    covered = {
        name.replace("/", ".")
        for name in MODULES
        if any(f"{name.replace('/', '.')}.".startswith(f"{core}.") for core in held)
    }
    assert covered == cores


def test_the_ways_lead_through_modules_that_exist() -> None:
    places = set(PLACE.findall(TEXT.partition("## `transport/`")[0]))
    gone = {
        place
        for place in places
        if not (ROOT / place).is_dir() and not (ROOT / f"{place}.py").is_file()
    }
    assert len(places) > 30
    assert not gone
