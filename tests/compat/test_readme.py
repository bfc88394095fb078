"""What README and SECURITY tell a newcomer to type, set or follow is there."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from typer.main import get_command

from agent.config import load_config
from clients.cli.app import app

ROOT: Final = Path(__file__).parents[2]
FRONT: Final = (
    "README.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/USING.md",
)
PAGES: Final = (*FRONT, *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")))
FENCE: Final = re.compile(r"^```.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND: Final = re.compile(r"\bthreadgate ([a-z]+)(?: ([a-z]+))?([^`\n#]*)")


def text(page: str) -> str:
    return (ROOT / page).read_text()


def prose(page: str) -> str:
    """A page without what stands in fences."""
    return FENCE.sub("", text(page))


def code(page: str) -> Iterator[str]:
    """Every piece of code: lines of fences, and what stands in backticks."""
    for block in FENCE.findall(text(page)):
        yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", prose(page))


def slugs(page: str) -> list[str]:
    """The anchors of a page, as GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return [heading.replace(" ", "-") for heading in plain]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = (ROOT / page).parent / path if path else ROOT / page
        assert found.exists(), target
        if anchor:
            assert anchor in slugs(str(found.resolve().relative_to(ROOT))), target


@pytest.mark.parametrize("page", FRONT)
def test_no_heading_stands_twice(page: str) -> None:
    assert max(Counter(slugs(page)).values()) == 1


@pytest.mark.parametrize("page", FRONT)
def test_every_command_and_its_options_exist(page: str) -> None:
    commands = getattr(get_command(app), "commands")  # noqa: B009 - Typer tells no type
    for line in code(page):
        for name, second, rest in COMMAND.findall(line):
            assert name in commands, line
            command = commands[name]
            if hasattr(command, "commands") and second:
                command = command.commands[second]
            known = {option for one in command.params for option in one.opts}
            said = re.sub(r'"[^"]*"', "", rest)  # a message may say anything
            assert set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", said)) <= known, line


def test_every_make_target_exists() -> None:
    targets = re.findall(r"^([a-z]+):", text("Makefile"), re.MULTILINE)
    named = {
        found
        for page in ("README.md", "CONTRIBUTING.md")
        for line in code(page)
        for found in re.findall(r"\bmake ([a-z]+)", line)
    }
    assert {"demo", "test"} <= named <= set(targets)


def test_every_variable_is_read_somewhere() -> None:
    source = "".join(
        path.read_text()
        for package in ("adapter", "agent", "clients", "tests/support")
        for path in (ROOT / package).rglob("*.py")
    )
    for page in FRONT:
        for name in re.findall(r"THREADGATE_[A-Z_]+", text(page)):
            assert f'"{name}"' in source, name


def test_the_example_of_a_config_file_is_one(tmp_path: Path) -> None:
    blocks = FENCE.findall(text("README.md"))
    (example,) = [block for block in blocks if block.startswith("name = ")]
    path = tmp_path / "config.toml"
    path.write_text(example)
    config = load_config({"HOME": str(tmp_path), "THREADGATE_CONFIG": str(path)})
    told = tomllib.loads(example)
    assert config.model_dump(include=set(told)) == told
