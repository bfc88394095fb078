"""What `threadgate --help` shows: every command once, each told in one line."""

import re

import pytest
from typer.testing import CliRunner

from clients.cli.app import app

ROW = re.compile(r"^  ([a-z]+)  +(.+)$", re.MULTILINE)


def test_help_lists_every_command_once_and_cuts_no_line() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "90"}).output
    _, _, sections = shown.partition("\nBegin:")
    listed = ROW.findall(sections)
    names = [name for name, _ in listed]
    assert {"serve", "send", "approve", "devices", "stdio"} <= set(names)
    assert len(names) == len(set(names))
    said = {command.name for command in app.registered_commands}
    for group in app.registered_groups:
        inside = group.typer_instance
        assert inside is not None
        if isinstance(group.name, str):
            said.add(group.name)
        else:
            said |= {
                getattr(command.callback, "__name__", None)
                for command in inside.registered_commands
            }
    assert said == set(names)
    assert [name for name, told in listed if told.endswith("...")] == []


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (["--host", "desk", "status"], "`threadgate status --host …`"),
        (["--host=desk", "status"], "`threadgate status --host …`"),
        (["-n", "5"], "`threadgate COMMAND -n …`"),
        (["--no-such", "status"], "No such option: --no-such"),
    ],
)
def test_an_option_before_the_command_is_told_where_it_goes(
    typed: list[str], says: str
) -> None:
    ran = CliRunner().invoke(app, typed)
    assert ran.exit_code == 2
    assert says in " ".join(ran.output.split())
