"""`generated/` is what the pinned codex says, and nobody edited it."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from generated import regenerate
from generated.flatten import REQUESTS, TYPED, flatten
from generated.typed import typed_source

HERE = Path(regenerate.__file__).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "generated"
    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_the_hashes_hold_and_a_missing_codex_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(regenerate.VARIABLE, raising=False)
    assert regenerate.main(["--check"]) == 0
    assert "skipped" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["codex.py", "schema/codex.json", "LICENSE.codex"])
def test_an_edited_file_is_found(copy: Path, name: str) -> None:
    with (copy / name).open("a") as file:
        file.write("\n")
    with pytest.raises(regenerate.RegenerateError, match=name):
        regenerate.check(copy, None)


def test_a_codex_that_is_not_the_pinned_one_is_refused(
    copy: Path, tmp_path: Path
) -> None:
    fake = tmp_path / "codex"
    fake.write_text("#!/bin/sh\necho codex-cli 9.9.9\n")
    fake.chmod(0o700)
    with pytest.raises(regenerate.RegenerateError, match=r"9\.9\.9"):
        regenerate.check(copy, fake)


def test_a_codex_that_cannot_run_is_an_error_with_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert regenerate.main(["--check", "--codex", str(tmp_path / "nothing")]) == 1
    assert "nothing" in capsys.readouterr().err


def test_writing_needs_a_codex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(regenerate.VARIABLE, raising=False)
    assert regenerate.main([]) == 1


@pytest.mark.codex
@pytest.mark.skipif(
    regenerate.VARIABLE not in os.environ, reason=f"{regenerate.VARIABLE} is not set"
)
def test_a_fresh_dump_of_the_pinned_codex_is_equal() -> None:
    said = regenerate.check(HERE, Path(os.environ[regenerate.VARIABLE]))
    assert "equal" in said


def test_the_methods_that_the_adapter_uses_are_in_the_table() -> None:
    table = json.loads((HERE / "schema/methods.json").read_text())
    assert set(TYPED) <= set(table)
    assert {name for name, row in table.items() if row["kind"] == "request"} == set(
        REQUESTS
    )
    assert all(row["result"] for row in table.values() if "result" in row)


def test_the_manifest_names_codex_s_licence() -> None:
    manifest = json.loads((HERE / "MANIFEST.json").read_text())
    assert manifest["codex"]["license"] == "Apache-2.0"
    assert "Apache License" in (HERE / "LICENSE.codex").read_text()


BUNDLE: dict[str, Any] = {
    "definitions": {
        "ServerNotification": {
            "oneOf": [
                {
                    "properties": {
                        "method": {"enum": ["it/happened"]},
                        "params": {"$ref": "#/definitions/v2/Happened"},
                    }
                }
            ]
        },
        "ServerRequest": {"oneOf": []},
        "ClientRequest": {"oneOf": []},
        "v2": {
            "Happened": {
                "description": "prose",
                "type": "object",
                "required": ["what", "from"],
                "properties": {
                    "what": {"$ref": "#/definitions/v2/What"},
                    "from": {"type": ["string", "null"], "description": "prose"},
                },
            },
            "What": {
                "type": "object",
                "properties": {"at": {"type": "integer"}},
                "oneOf": [
                    {
                        "type": "object",
                        "required": ["type"],
                        "properties": {"type": {"enum": ["rain"], "type": "string"}},
                    },
                    {
                        "type": "object",
                        "required": ["type", "depth"],
                        "properties": {
                            "type": {"enum": ["snow_fall"], "type": "string"},
                            "depth": {"type": "number"},
                        },
                    },
                ],
            },
            "Unused": {"type": "string"},
        },
    }
}


def test_a_bundle_is_flattened_to_what_is_used_without_prose() -> None:
    schema, table = flatten(BUNDLE)
    assert sorted(schema["definitions"]) == ["Happened", "What"]
    assert "prose" not in json.dumps(schema)
    assert table == {"it/happened": {"kind": "notification", "params": "Happened"}}


def test_a_tagged_union_becomes_one_class_a_branch() -> None:
    schema, _ = flatten(BUNDLE)
    source = typed_source("1.2.3", schema, ["Happened"])
    assert 'What: TypeAlias = "WhatRain | WhatSnowFall"' in source
    assert "class WhatSnowFall(TypedDict):" in source
    assert '    at: "NotRequired[int]"\n' in source
    assert '    "from": "str | None",\n' in source  # a keyword is no attribute
    compile(source, "codex.py", "exec")
