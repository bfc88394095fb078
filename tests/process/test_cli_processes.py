"""The command line as a person or a script meets it: a process, its codes, a terminal."""

import json
import signal
import sys
from pathlib import Path

import pytest
import trio

from tests.support import cli_asked
from tests.support import cli_samples as samples
from tests.support.cli_runs import cli_environ, command_line, run_cli
from tests.support.cli_samples import SHOP
from tests.support.fake_agent import Frame, fake
from tests.support.terminals import open_terminal
from transport.errors import CodexUnavailable, NotFound
from transport.protocol.admin import (
    PairAwaitResult,
    PairDecideResult,
    PairOpenResult,
)
from transport.protocol.approvals import (
    ApprovalListResult,
    ApprovalResult,
    ApprovalState,
)
from transport.protocol.base import WireModel
from transport.protocol.threads import ThreadListResult
from transport.protocol.turns import TurnStartResult, TurnStatus

pytestmark = pytest.mark.usefixtures("warm_runs")

DEADLINE_S = 240


def closed(_: Frame) -> WireModel:
    raise CodexUnavailable(
        "The gate is closed.",
        data={"gate": samples.closed_gate().wire()},
        retry_after_ms=5_000,
    )


def started(_: Frame) -> WireModel:
    turn = samples.turn("turn-1", status=TurnStatus.IN_PROGRESS)
    return TurnStartResult(turn=turn, delivery="started")


def missing(_: Frame) -> WireModel:
    raise NotFound("No such thread.")


async def test_reading_ends_with_0_and_has_no_colour_in_a_pipe(state: Path) -> None:
    async with fake(state):
        ran = await run_cli("status", environ=cli_environ(state))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Open: ")
    assert "\x1b" not in ran.out


async def test_a_disk_that_is_full_under_the_output_is_said_in_one_line(
    state: Path,
) -> None:
    with Path("/dev/full").open("wb") as full:  # noqa: ASYNC230 - no disk is asked
        async with fake(state):
            ran = await trio.run_process(
                command_line("status"),
                stdout=full,
                capture_stderr=True,
                check=False,
                env=cli_environ(state),
            )
    told = ran.stderr.decode()
    assert ran.returncode == 1, told
    assert told == "threadgate: it could not be written: No space left on device\n"


async def test_a_closed_gate_ends_with_4_and_one_line_that_names_the_writer(
    state: Path,
) -> None:
    async with fake(state) as agent:
        agent.answers["turn/start"] = closed
        ran = await run_cli("send", SHOP, "go on", environ=cli_environ(state))
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("threadgate: refused, nothing was sent: Codex desktop")
    assert "try again in 5 s" in ran.err
    assert ran.err.count("\n") == 1


async def test_with_json_a_refusal_is_json_too(state: Path) -> None:
    async with fake(state) as agent:
        agent.answers["turn/start"] = closed
        environ = cli_environ(state)
        ran = await run_cli("send", SHOP, "go on", "--json", environ=environ)
    assert ran.code == 4
    assert json.loads(ran.out)["error"]["code"] == "codexUnavailable"


async def test_what_is_refused_for_good_ends_with_1(state: Path) -> None:
    async with fake(state) as agent:
        agent.answers["thread/read"] = missing
        ran = await run_cli("read", SHOP, environ=cli_environ(state))
    assert (ran.code, ran.err) == (1, "threadgate: No such thread\n")


async def test_several_threads_end_with_2_and_are_listed(state: Path) -> None:
    both = [samples.thread(), samples.thread(samples.BLOG, cwd="/home/ann/blog")]
    async with fake(state) as agent:
        answer = ThreadListResult(threads=both, head=1)
        agent.answers["thread/list"] = lambda _: answer
        ran = await run_cli("read", "019ad", environ=cli_environ(state))
    assert ran.code == 2
    assert "fits 2 threads" in ran.err
    assert "/home/ann/shop" in ran.err
    assert "/home/ann/blog" in ran.err


@pytest.mark.parametrize(
    "args",
    [
        ("fly",),
        ("read",),
        ("pair", "--scopes", "everything"),
        ("devices", "grant", "0a1b2c", "--sandbox", "wide-open"),
        ("send", SHOP, "-"),  # and nothing on stdin
        ("send", SHOP, "go on", "--key", "too-short"),
        ("connect",),  # nothing either
        ("approvals", "--host", "nobody"),
    ],
)
async def test_a_command_that_cannot_be_carried_out_ends_with_2(
    state: Path, args: tuple[str, ...]
) -> None:
    with trio.fail_after(DEADLINE_S):
        ran = await run_cli(*args, environ=cli_environ(state))
    assert ran.code == 2
    assert "Traceback" not in ran.err


async def test_a_pairing_text_on_the_command_line_is_not_taken(state: Path) -> None:
    with trio.fail_after(DEADLINE_S):
        ran = await run_cli("connect", "TGATE:AAAA", environ=cli_environ(state))
    assert ran.code == 2
    assert "`threadgate connect` asks for it" in ran.err
    assert "AAAA" not in ran.err


async def test_without_anybody_to_talk_to_it_ends_with_3_and_says_what_to_do(
    state: Path,
) -> None:
    with trio.fail_after(DEADLINE_S):
        ran = await run_cli("threads", environ=cli_environ(state))
    assert ran.code == 3
    assert "threadgate connect" in ran.err
    assert "threadgate serve" in ran.err


async def test_the_message_can_come_from_stdin(state: Path) -> None:
    async with fake(state) as agent:
        agent.answers["turn/start"] = closed
        environ = cli_environ(state)
        await run_cli("send", SHOP, "-", environ=environ, stdin=b"two\nlines\n")
    assert agent.called("turn/start")[0]["input"][0]["text"] == "two\nlines"


async def test_a_message_that_is_typed_at_a_terminal_is_asked_for(state: Path) -> None:
    async with fake(state) as agent:
        agent.answers["turn/start"] = closed
        async with open_terminal(state, "send", SHOP, "-") as terminal:
            await terminal.wait_for("Ctrl-D")
            await terminal.type("two words\n\x04")
            assert await terminal.end() == 4
    assert agent.called("turn/start")[0]["input"][0]["text"] == "two words"


async def test_help_imports_neither_trio_nor_the_protocol(state: Path) -> None:
    code = (
        "import sys\n"
        "from clients.cli.app import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "print(sorted({'trio', 'pydantic', 'cryptography', 'rich'} & set(sys.modules)))"
    )
    with trio.fail_after(DEADLINE_S):
        done = await trio.run_process(
            [sys.executable, "-c", code], capture_stdout=True, env=cli_environ(state)
        )
    assert done.stdout.decode().splitlines()[-1] == "[]"


async def test_ctrl_c_ends_a_watch_quietly(state: Path) -> None:
    async with fake(state) as agent:
        process = await trio.lowlevel.open_process(
            command_line("watch"), env=cli_environ(state), stdout=-1, stderr=-1
        )
        await agent.subscribed.wait()
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
        assert process.stderr is not None
        assert process.stdout is not None
        assert await process.stderr.receive_some() == b""
        await process.stderr.aclose()
        await process.stdout.aclose()


async def test_ctrl_c_while_following_says_that_the_turn_goes_on(state: Path) -> None:
    async with fake(state) as agent:
        agent.answers["turn/start"] = started
        process = await trio.lowlevel.open_process(
            command_line("send", SHOP, "go on"),
            env=cli_environ(state),
            stdout=-1,
            stderr=-1,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"sent to" in await process.stdout.receive_some()
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
        said = (await process.stderr.receive_some()).decode()
        assert f"The turn goes on: `threadgate watch {SHOP}` shows it" in said
        assert f"`threadgate interrupt {SHOP}` stops it" in said
        await process.stderr.aclose()
        await process.stdout.aclose()


@pytest.mark.parametrize("more", [[], ["--no-follow"], ["--when-free"]])
async def test_ctrl_c_before_the_answer_says_that_it_may_have_been_sent(
    state: Path, more: list[str]
) -> None:
    async with fake(state) as agent:
        agent.silent.add("turn/start")
        process = await trio.lowlevel.open_process(
            command_line("send", SHOP, "go on", *more),
            env=cli_environ(state),
            stdout=-1,
            stderr=-1,
        )
        await agent.wait_called("turn/start")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
        assert process.stderr is not None
        assert process.stdout is not None
        said = (await process.stderr.receive_some()).decode()
        assert said == "It may have been sent: look with `threadgate threads`.\n"
        await process.stderr.aclose()
        await process.stdout.aclose()
        assert len(agent.called("turn/start")) == 1


async def test_a_reader_that_leaves_early_is_no_error_worth_words(state: Path) -> None:
    page = [samples.thread()] * 100
    many = ThreadListResult(threads=page, next_cursor="more", head=1)
    async with fake(state) as agent:
        agent.answers["thread/list"] = lambda _: many
        command = " ".join(command_line("threads", "-n", "2000", "--json"))
        done = await trio.run_process(
            ["sh", "-c", f"{command} | head -c 10"],
            env=cli_environ(state),
            capture_stdout=True,
            capture_stderr=True,
        )
    assert (done.stdout, done.stderr) == (b'{"threads"', b"")


async def test_colour_is_for_terminals_and_NO_COLOR_is_heard(state: Path) -> None:  # noqa: N802
    for environ, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        async with fake(state), open_terminal(state, "status", **environ) as terminal:
            shown = await terminal.wait_for("agent")
            assert await terminal.end() == 0
            assert ("\x1b[32m" in shown) is coloured


@pytest.mark.parametrize(("typed", "code", "calls"), [("y\n", 0, 1), ("\n", 1, 0)])
async def test_approve_asks_at_a_terminal_and_enter_is_a_no(
    state: Path, typed: str, code: int, calls: int
) -> None:
    asked = cli_asked.command_approval()
    ended = cli_asked.command_approval(state=ApprovalState.ANSWERED, choice="accept")
    async with fake(state) as agent:
        agent.answers["approval/list"] = lambda _: ApprovalListResult(
            approvals=[asked], head=1
        )
        agent.answers["approval/answer"] = lambda _: ApprovalResult(approval=ended)
        async with open_terminal(state, "approve", asked.id) as terminal:
            shown = await terminal.wait_for("[y/N]")
            assert "make deploy" in shown
            await terminal.type(typed)
            assert await terminal.end() == code
    assert len(agent.called("approval/answer")) == calls


async def test_what_was_typed_before_the_question_is_no_answer_to_it(
    state: Path,
) -> None:
    asked = cli_asked.command_approval()
    async with fake(state) as agent:
        agent.answers["approval/list"] = lambda _: ApprovalListResult(
            approvals=[asked], head=1
        )
        async with open_terminal(state, "approve", asked.id) as terminal:
            await terminal.type("y\n")
            await terminal.wait_for("[y/N]")
            await terminal.type("\n")
            assert await terminal.end() == 1
    assert agent.called("approval/answer") == []


async def test_ctrl_c_at_the_question_answers_nothing(state: Path) -> None:
    asked = cli_asked.command_approval()
    async with fake(state) as agent:
        agent.answers["approval/list"] = lambda _: ApprovalListResult(
            approvals=[asked], head=1
        )
        async with open_terminal(state, "approve", asked.id) as terminal:
            await terminal.wait_for("[y/N]")
            terminal.process.send_signal(signal.SIGINT)
            assert await terminal.end() == 130
    assert agent.called("approval/answer") == []


async def test_pairing_shows_a_code_to_scan_and_enter_is_a_no(state: Path) -> None:
    opened = PairOpenResult(text="TGATE:" + "A" * 150, expires_at=samples.NOON)
    came = PairAwaitResult(outcome="candidate", candidate=samples.candidate())
    async with fake(state) as agent:
        agent.answers |= {
            "pair/open": lambda _: opened,
            "pair/await": lambda _: came,
            "pair/decide": lambda _: PairDecideResult(),
        }
        async with open_terminal(state, "pair", COLUMNS="80") as terminal:
            shown = await terminal.wait_for("[y/N]")
            await terminal.type("\n")
            assert await terminal.end() == 1
    assert "▄▄▄▄▄ █" in shown
    assert opened.text in shown
    assert "012 345" in shown
    assert agent.called("pair/decide")[0]["accept"] is False


async def test_the_pairing_text_is_asked_for_and_not_echoed(state: Path) -> None:
    async with fake(state), open_terminal(state, "connect") as terminal:
        await terminal.wait_for("not shown")
        await terminal.type("TGATE:SECRET\n")
        shown = await terminal.wait_for("mistyped")
        assert await terminal.end() == 2
    assert "SECRET" not in shown
