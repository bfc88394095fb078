"""Who can write, from executable, arguments and ancestry alone."""

import pytest

from agent.gate.engine_commands import read_version, writes
from agent.gate.engines import Process, Programs, Role
from transport.protocol.gateway import WriterKind

NPM = "/usr/lib/node_modules/@openai/codex-linux-x64/vendor/x86_64/bin/codex"
SERVER = ("codex", "app-server", "--analytics-default-enabled")


def process(exe: str, *argv: str, pid: int = 10) -> Process:
    return Process(
        pid=pid, parent=1, started=1.0, exe=exe, argv=(exe, *argv[1:]), home=None
    )


def named(
    exe: str, *argv: str, parents: tuple[str, ...] = ()
) -> tuple[Role, WriterKind] | None:
    line = [process(parent, pid=20 + n) for n, parent in enumerate(parents)]
    found = Programs().name(process(exe, *(argv or SERVER)), line)
    return (found.role, found.kind) if found else None


ENGINES = [
    ("/usr/lib/chatgpt/resources/codex", (), WriterKind.DESKTOP),
    ("/opt/ChatGPT/resources/codex", (), WriterKind.DESKTOP),
    ("/opt/codex-desktop/resources/bin/codex", (), WriterKind.DESKTOP),
    ("/home/u/.local/share/codex-desktop/resources/codex", (), WriterKind.DESKTOP),
    ("/run/.mount_ChatGPTab12/resources/codex", (), WriterKind.DESKTOP),
    (
        "/Applications/ChatGPT.app/Contents/Resources/codex",
        (),
        WriterKind.DESKTOP,
    ),
    (NPM, ("/opt/codex-desktop/codex-desktop",), WriterKind.DESKTOP),
    (NPM, ("/bin/bash", "/usr/lib/chatgpt/ChatGPT"), WriterKind.DESKTOP),
    (
        "/home/u/.vscode/extensions/openai.chatgpt-26.7-linux-x64/bin/linux/codex",
        ("/usr/share/code/code",),
        WriterKind.IDE,
    ),
    (
        "/home/u/.cache/JetBrains/WS/acp-agents/codex-acp/1/node_modules/@openai/codex-linux/x/codex",
        ("/opt/idea/bin/idea",),
        WriterKind.IDE,
    ),
    (NPM, ("/usr/share/code/code",), WriterKind.IDE),
    (NPM, ("/usr/bin/xterm",), WriterKind.CLI),
    ("/venv/lib/python3/site-packages/codex_cli_bin/bin/codex", (), WriterKind.CLI),
    ("/home/u/bin/codex", (), WriterKind.UNKNOWN),
    ("/home/u/bin/codex-x86_64-unknown-linux-musl", (), WriterKind.UNKNOWN),
    ("/home/u/bin/codex-app-server", (), WriterKind.UNKNOWN),
]


@pytest.mark.parametrize(("exe", "parents", "kind"), ENGINES)
def test_an_engine_is_named_by_its_place_and_its_ancestors(
    exe: str, parents: tuple[str, ...], kind: WriterKind
) -> None:
    assert Programs().interesting(exe)
    assert named(exe, parents=parents) == (Role.ENGINE, kind)


def test_a_terminal_inside_an_editor_is_a_terminal() -> None:
    ancestors = ("/bin/bash", "/usr/share/code/code")
    found = named(NPM, "codex", "resume", parents=ancestors)
    assert found == (Role.ENGINE, WriterKind.CLI)


def test_a_server_that_listens_is_the_background_server() -> None:
    found = named(NPM, "codex", "app-server", "--listen", "unix://")
    assert found == (Role.ENGINE, WriterKind.DAEMON)


APPS = [
    "/usr/lib/chatgpt/ChatGPT",
    "/opt/ChatGPT/chatgpt",
    "/opt/codex-desktop/codex-desktop",
    "/opt/codex-desktop/electron",
    "/run/.mount_CodexAb12/usr/lib/codex-desktop/codex-desktop",
    "/Applications/Codex.app/Contents/MacOS/Codex",
]


@pytest.mark.parametrize("exe", APPS)
def test_the_desktops_main_app_counts(exe: str) -> None:
    assert Programs().interesting(exe)
    assert named(exe, exe) == (Role.APP, WriterKind.DESKTOP)


NOT_WRITERS = [
    ("/usr/lib/chatgpt/ChatGPT", "ChatGPT", "--type=renderer"),
    ("/opt/codex-desktop/codex-desktop", "x", "--type=gpu-process"),
    (NPM, "codex", "mcp", "list"),
    (NPM, "codex", "login"),
    (NPM, "codex", "app-server", "generate-json-schema"),
    (NPM, "codex", "app-server", "daemon", "pid-update-loop"),
    (NPM, "codex", "--remote", "ws://127.0.0.1:1"),
    (NPM, "codex", "--version"),
    (NPM, "codex", "-c", "model=x", "completion"),
]


@pytest.mark.parametrize("command", NOT_WRITERS)
def test_helpers_and_commands_that_write_nothing_do_not_count(
    command: tuple[str, ...],
) -> None:
    exe, *argv = command
    assert named(exe, *argv) is None


def test_a_sandbox_helper_of_the_same_binary_does_not_count() -> None:
    helper = Process(
        pid=1,
        parent=1,
        started=1.0,
        exe=NPM,
        argv=("codex-linux-sandbox", "bash", "-lc", "ls"),
        home=None,
    )
    assert Programs().name(helper, []) is None


NOT_INTERESTING = [
    "/usr/lib/chatgpt/chrome_crashpad_handler",
    "/opt/ChatGPT/chrome-sandbox",
    "/opt/codex-desktop/codex-desktop-updater",
    "/usr/bin/grep",
    "/home/u/bin/codexer",
    "/opt/codex/readme",
]


@pytest.mark.parametrize("exe", NOT_INTERESTING)
def test_other_programs_are_not_even_looked_at(exe: str) -> None:
    assert not Programs().interesting(exe)


@pytest.mark.parametrize(
    "argv",
    [
        ("codex",),
        ("codex", "fix the tests"),
        ("codex", "exec", "do it"),
        ("codex", "--", "update"),
        ("codex", "exec", "--", "--help"),
        ("codex", "--", "--remote"),
        ("codex", "resume", "--last"),
        ("codex", "app-server", "--stdio"),
        ("codex", "-c", "x=1", "app-server"),
        ("codex", "--model", "login", "exec"),
        ("codex", "mcp-server"),
        ("codex", "some-command-of-next-year"),
        (),
    ],
)
def test_what_may_write_counts_also_where_we_do_not_know_it(
    argv: tuple[str, ...],
) -> None:
    assert writes(argv)


def test_the_owner_can_name_more_places() -> None:
    programs = Programs(apps=[r"/my/app$"], engines=[r"/my/lib/engine$"])
    app = programs.name(process("/home/u/My/App"), [])
    engine = programs.name(process("/home/u/my/lib/engine", "e", "app-server"), [])
    assert app is not None
    assert engine is not None
    assert (app.role, app.kind) == (Role.APP, WriterKind.DESKTOP)
    assert (engine.role, engine.kind) == (Role.ENGINE, WriterKind.DESKTOP)


def test_versions_are_read_and_other_programs_have_none() -> None:
    assert read_version("codex-cli 0.163.0\n") == (0, 163, 0)
    assert read_version("codex 1.2.3-alpha.1") == (1, 2, 3)
    assert read_version("sleep (GNU coreutils) 9.1") is None
    assert read_version("") is None
