"""Which codex is launched: the native binary, wherever a person or npm put it."""

import os
import shutil
from pathlib import Path

import pytest

from adapter.errors import BinaryNotFoundError
from adapter.processes.binary import find_codex, native_binary, read_version
from tests.support.codex import BUNDLED, codex_binaries

WRAPPER = "#!/usr/bin/env node\nimport './x.js';\n"


@pytest.fixture
def environ(folder: Path) -> dict[str, str]:
    """An environment whose CODEX_HOME is not the person's and whose PATH is empty."""
    (folder / "home").mkdir()
    return {"CODEX_HOME": str(folder / "home"), "PATH": str(folder / "bin")}


def place(path: Path) -> Path:
    """Put the real native binary at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    native = codex_binaries()[BUNDLED]
    try:
        os.link(native, path)
    except OSError:
        shutil.copy(native, path)
    return path


def install_by_npm(prefix: Path, layout: str) -> Path:
    """Lay out what `npm install -g @openai/codex` leaves; return its `codex`."""
    package = prefix / "lib/node_modules/@openai/codex"
    wrapper = package / "bin/codex.js"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(WRAPPER)
    wrapper.chmod(0o755)
    place(package / layout)
    command = prefix / "bin/codex"
    command.parent.mkdir()
    command.symlink_to(wrapper)
    return command


def test_the_bundled_binary_is_found_where_nothing_else_is(
    environ: dict[str, str],
) -> None:
    found = find_codex(None, environ)
    assert found.path == codex_binaries()[BUNDLED].resolve()
    assert found.version == BUNDLED


@pytest.mark.parametrize(
    "layout",
    [
        "vendor/x86_64-unknown-linux-musl/bin/codex",
        "vendor/x86_64-unknown-linux-musl/codex/codex",
        "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        "../codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
    ],
)
def test_npms_wrapper_on_the_path_is_resolved_to_its_native_binary(
    folder: Path, environ: dict[str, str], layout: str
) -> None:
    install_by_npm(folder, layout)
    found = find_codex(None, environ)
    assert found.path.is_relative_to(folder.resolve())
    assert found.path.name == "codex"
    assert "bin/codex.js" not in str(found.path)


def test_a_shell_shim_of_another_package_manager_is_resolved_too(
    folder: Path, environ: dict[str, str]
) -> None:
    install_by_npm(folder / "store", "vendor/x86_64-unknown-linux-musl/bin/codex")
    shim = folder / "bin/codex"
    shim.parent.mkdir()
    script = "store/lib/node_modules/@openai/codex/bin/codex.js"
    shim.write_text(f'#!/bin/sh\nexec node "$basedir/../{script}" "$@"\n')
    shim.chmod(0o755)
    assert find_codex(None, environ).path.is_relative_to((folder / "store").resolve())


def test_a_wrapper_that_leads_nowhere_is_passed_over_on_the_path(
    folder: Path, environ: dict[str, str]
) -> None:
    command = folder / "bin/codex"
    command.parent.mkdir()
    command.write_text(WRAPPER)
    command.chmod(0o755)
    assert find_codex(None, environ).path == codex_binaries()[BUNDLED].resolve()


def test_the_setting_comes_before_the_variable_and_both_before_the_path(
    folder: Path, environ: dict[str, str]
) -> None:
    one, two = place(folder / "one/codex"), place(folder / "two/codex")
    place(folder / "bin/codex")
    assert find_codex(None, environ).path == (folder / "bin/codex").resolve()
    environ["THREADGATE_CODEX"] = str(two)
    assert find_codex(None, environ).path == two.resolve()
    assert find_codex(str(one), environ).path == one.resolve()


@pytest.mark.parametrize("source", ["setting", "variable"])
def test_a_codex_that_a_person_named_and_that_is_none_is_refused_not_replaced(
    folder: Path, environ: dict[str, str], source: str
) -> None:
    wrong = folder / "wrong"
    wrong.write_text("#!/bin/sh\necho codex 1.2.3\n")
    wrong.chmod(0o755)
    if source == "variable":
        environ["THREADGATE_CODEX"] = str(wrong)
    with pytest.raises(BinaryNotFoundError, match="Name the binary itself"):
        find_codex(str(wrong) if source == "setting" else None, environ)


def test_another_program_is_no_codex(folder: Path, environ: dict[str, str]) -> None:
    with pytest.raises(BinaryNotFoundError, match="--version"):
        find_codex("/bin/cat", environ)


def test_what_is_not_there_is_none(folder: Path, environ: dict[str, str]) -> None:
    assert native_binary(folder / "nothing") is None
    assert read_version(folder / "nothing", environ) is None


def test_asking_for_the_version_leaves_nothing_in_the_codex_home(
    folder: Path, environ: dict[str, str]
) -> None:
    environ = {**environ, "HOME": str(folder)}
    assert read_version(codex_binaries()[BUNDLED], environ) == BUNDLED
    assert not list((folder / "home").iterdir())
    assert not (folder / ".codex").exists()
