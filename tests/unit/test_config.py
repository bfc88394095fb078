"""The owner's settings: safe defaults, overrides, and mistakes that are explained."""

from pathlib import Path

import pytest

from agent.config import Config, load_config
from agent.errors import ConfigError


def load(tmp_path: Path, text: str, **environ: str) -> Config:
    path = tmp_path / "config.toml"
    path.write_text(text)
    base = {"HOME": str(tmp_path), "THREADGATE_STATE_DIR": str(tmp_path / "state")}
    return load_config({**base, "THREADGATE_CONFIG": str(path), **environ})


def mistake(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    return str(caught.value).removeprefix(str(tmp_path / "config.toml"))


def test_the_defaults_are_the_safe_end(tmp_path: Path) -> None:
    config = load(tmp_path, "")
    assert config.listen == []
    assert config.sandbox == "workspace-write"
    assert config.approval_policies == ["untrusted", "on-request"]
    assert config.codex_home == tmp_path / ".codex"
    assert config.runtime_dir == tmp_path / "state" / "run"
    ceiling = config.default_ceiling()
    assert ceiling.sandbox == "workspace-write"
    assert ceiling.roots == []


def test_a_missing_default_file_is_no_mistake_but_a_named_one_is(
    tmp_path: Path,
) -> None:
    assert load_config({"HOME": str(tmp_path)}).listen == []
    with pytest.raises(ConfigError, match="not there"):
        load_config({"THREADGATE_CONFIG": str(tmp_path / "missing.toml")})


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    text = 'codex = "/file/codex"\ncodex_home = "/file/home"\n'
    config = load(tmp_path, text, THREADGATE_CODEX="/env/codex", CODEX_HOME="/env/home")
    assert config.codex == "/env/codex"
    assert config.codex_home == Path("/env/home")
    assert load(tmp_path, text).codex == "/file/codex"


def test_sockets_live_in_the_logins_own_folder_where_there_is_one(
    tmp_path: Path,
) -> None:
    environ = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": "/run/user/7"}
    assert load_config(environ).runtime_dir == Path("/run/user/7/threadgate")


def test_everything_can_be_set(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        listen = ["127.0.0.1:7433", "[::1]:7433"]
        read_only = true
        sandbox = "danger-full-access"
        approval_policies = ["never"]
        roots = ["/work"]
        approval_ms = 60000
        idle_s = 5

        [desktop]
        apps = ['/my/app$']

        [doors]
        sessions = 3
        """,
    )
    assert config.listen == ["127.0.0.1:7433", "[::1]:7433"]
    assert config.read_only
    assert config.idle_s == 5
    assert config.desktop.apps == ["/my/app$"]
    assert config.doors.sessions == 3
    # The file may allow more than a device gets without being granted it.
    assert config.default_ceiling().sandbox == "workspace-write"
    assert config.default_ceiling().approval_policy == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            'name = "x"\nlisten = ["nonsense"]\n',
            ", line 2: listen.0: 'nonsense' is no address: say host:port",
        ),
        ('listen = ["[::1]:65536"]\n', ", line 1: listen.0: '[::1]:65536' is no"),
        ("\nlisen = []\n", ", line 2: lisen: there is no such setting"),
        ("[doors]\nhalf_open = 0\n", ", line 2: doors.half_open: "),
        ("a = = 1\n", ", line 1: this is not TOML"),
        ("[doors]\n\nhalf_opened = 1\n", ", line 3: doors.half_opened: there is no"),
        ('sandbox = "off"\n', ", line 1: sandbox: "),
        ('read_only = "yes"\n', ", line 1: read_only: "),
        ('codex_home = "relative"\n', ", line 1: codex_home: must be an absolute"),
        ("[desktop]\napps = ['(']\n", ", line 2: desktop.apps: "),
        ('roots = ["work"]\n', ", line 1: roots.0: "),
        ("a = 1\nb = [\n", ", line 2: this is not TOML"),
    ],
)
def test_a_mistake_names_line_and_field(tmp_path: Path, text: str, says: str) -> None:
    assert mistake(tmp_path, text).startswith(says)


def test_several_mistakes_are_counted(tmp_path: Path) -> None:
    assert "(and 1 more)" in mistake(tmp_path, "one = 1\ntwo = 2\n")
