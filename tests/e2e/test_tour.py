"""docs/tour.md: a day's use of the command line, typed on the real codex by this test.

`THREADGATE_GOLDEN=write` writes the page anew; every run compares.
"""

import json
import re
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import trio

from clients.cli import demo_script as script
from clients.cli.demo_actors import Actor, Running
from clients.cli.demo_desktop import open_desktop_codex, open_window
from clients.cli.demo_stage import Stage, open_stage
from clients.cli.exits import ExitCode
from clients.cli.screen import Screen
from clients.cli.scripted_answers import Rule
from tests.support.cli_runs import paper, printed, run_cli
from tests.support.golden import check_golden
from tests.support.terminals import open_terminal
from tests.support.transcripts import Page, Stand

FILE: Final = Path(__file__).parents[2] / "docs" / "tour.md"
LIMIT_S: Final = 400
HEAD: Final = """\
# A day with threadgate

Made by `tests/e2e/test_tour.py`, which types every command below on a real codex with a scripted model and compares what is
said with this page; ids, times, ports and folders are stand-ins. `desk` is the workstation, `phone` the other device; `$` is
what is typed, `|` what is answered.
"""
ASK: Final = "Which bread shall be the bread of the day?"
QUESTION: Final = {
    "id": "bread",
    "header": "Bread of the day",
    "question": "Which bread?",
    "options": [
        {"label": "Rye", "description": "keeps for a week"},
        {"label": "Brioche", "description": "sells out by nine"},
    ],
}
LONG: Final = "Write the history of bread."
PRICES: Final = "Write our prices into prices.txt."
LOAVES: Final = "Count the loaves."
OVEN: Final = "Keep an eye on the oven."
GOAL: Final = "Every bread has a price."
CAKES: Final = "What if we sold cakes, too?"
PATCH: Final = """\
*** Begin Patch
*** Add File: prices.txt
+Rye       4.20
+Brioche   2.10
*** End Patch
"""
TRACE: Final = Path(__file__).parents[1] / "traces" / "shell-command.jsonl"
WIDE: Final = 110  # characters of a line of JSON that the page shows


def running(command: str, yield_ms: int) -> dict[str, object]:
    """A call that runs a command, and does not wait for its end longer than so."""
    args = {"cmd": command, "yield_time_ms": yield_ms}
    return {"call": "exec_command", "args": args}


RULES: Final = [
    # What Codex says when it goes on by itself; the goal's own words are in it.
    Rule("the active thread goal", [[{"hold": "goal"}]]),
    Rule(PRICES, [[{"patch": PATCH}], [{"msg": "The prices are in prices.txt."}]]),
    Rule(
        LOAVES,
        [[running("seq -f 'loaf %g' 16", 30_000)], [{"msg": "There are sixteen."}]],
    ),
    Rule(OVEN, [[running("sleep 600", 500)], [{"msg": "I look at it now and then."}]]),
    *script.rules(),
    Rule(
        ASK,
        [
            [{"call": "request_user_input", "args": {"questions": [QUESTION]}}],
            [{"msg": "Rye it is."}],
        ],
    ),
    Rule(
        LONG, [[{"partial": "In the beginning there was grain. "}, {"hold": "never"}]]
    ),
]

pytestmark = pytest.mark.codex


@dataclass(slots=True)
class Day:
    """The stage, the page, and the thread that most of it is about."""

    stage: Stage
    page: Page
    desk: Actor
    phone: Actor
    thread: str = ""

    async def run(
        self, who: Actor, *args: str, sentence: str, expect: int = ExitCode.OK
    ) -> str:
        """Type a command, and show what it says."""
        self.page.tell(sentence)
        said = await who.run(*args, expect=expect)
        self.show((who, args, said))
        return said

    def show(self, *turns: tuple[Actor, tuple[str, ...], str]) -> None:
        """Show commands and what they said, one after the other."""
        rows: list[tuple[str, str]] = []
        for who, args, said in turns:
            if args:
                rows.append((f"{who.name:<5} $", typed(args)))
            rows.append((f"{who.name:<5} |", said))
        self.page.block(*rows)

    async def know(self, who: Actor, what: str, stand: str) -> None:
        """Give the one device or host that is listed a stand-in."""
        listed = await who.run(what, "list", "--json", quiet=True)
        found = re.search(r'"(?:id|agentId)": ?"([0-9a-f]{16,32})"', listed)
        assert found is not None, listed
        assert len(found[1]) == len(stand)
        self.page.stand.know(found[1], stand)

    async def answered(self, text: str) -> None:
        """Return once the thread's newest turn has ended with this."""
        with trio.fail_after(240):
            while True:
                read = ("read", self.thread, "-n", "1", "--json")
                (turn,) = json.loads(await self.phone.run(*read, quiet=True))["turns"]
                texts = [item.get("text") for item in turn.get("items", ())]
                if turn["status"] == "completed" and texts[-1:] == [text]:
                    return

    async def until(self, state: str) -> None:
        """Return once the gate is in this state and no thread is held."""
        while True:
            seen = json.loads(await self.desk.run("status", "--json", quiet=True))
            if seen["gate"]["state"] == state and not seen.get("leases"):
                return


def typed(args: tuple[str, ...]) -> str:
    words = (arg if re.fullmatch(r"[\w./:=,@-]+", arg) else f"'{arg}'" for arg in args)
    return " ".join(["threadgate", *words])


def said(running: Running, start: int = 0) -> str:
    return "\n".join(one.text for one in running.lines[start:])


@contextmanager
def all_said(screen: Screen) -> Generator[None]:
    """Where the day ends early: show the whole of it."""
    try:
        yield
    except BaseException as error:
        error.add_note(printed(screen))
        raise


@asynccontextmanager
async def open_day() -> AsyncGenerator[Day]:
    screen = paper()
    with trio.fail_after(LIMIT_S), all_said(screen):
        async with open_stage(screen, RULES) as stage:
            config = Path(stage.codex_environ["CODEX_HOME"]) / "config.toml"
            config.write_text(
                "suppress_unstable_features_warning = true\n"
                f"{config.read_text()}\ndefault_mode_request_user_input = true\n"
            )
            names = {
                str(stage.folder / "home"): "/home/ann",
                str(stage.folder): "/home/ann",
                str(stage.codex): "/usr/local/bin/codex",
            }
            page = Page(Stand(names), [HEAD.rstrip()])
            yield Day(stage, page, stage.desk, stage.phone)


async def test_the_tour_is_what_the_commands_say() -> None:
    async with open_day() as day:
        async with open_desktop_codex(
            day.stage.codex, day.stage.codex_environ
        ) as desktop:
            planned = await desktop.start_thread(day.stage.workspace, script.PLAN)
        serve = ("serve", "--tcp", "127.0.0.1:0")
        async with day.desk.start(*serve) as agent:
            await agent.wait_line("^Pair one")
            day.page.title("Morning: the workstation")
            day.page.tell("The Agent starts at the workstation, and stays.")
            day.show((day.desk, serve, said(agent)))
            await pair(day)
            await look(day, planned)
            await work(day)
            await ask(day)
            await change(day)
            await go_on_alone(day)
            await try_something(day)
            await beside_the_desktop(day)
            await keep_order(day)
            told = len(agent.lines)
            agent.process.send_signal(signal.SIGINT)
            await agent.end()
        day.page.title("Night")
        day.page.tell("Ctrl-C stops the Agent; nothing of it is left running.")
        day.show((day.desk, (), said(agent, told)))
    check_golden(FILE, day.page.text())


async def pair(day: Day) -> None:
    folder = str(day.stage.workspace)
    args = ("pair", "--scopes", "read,write,approve", "--only", folder)
    state = Path(day.desk.environ["THREADGATE_STATE_DIR"])
    async with open_terminal(state, *args, NO_COLOR="1") as offering:
        shown = await offering.wait_for("Ctrl-C withdraws it.")
        code = "".join(re.findall(r"TGATE:\w+", shown)).encode()
        connect = ("connect", "--name", "phone")
        async with day.phone.start(*connect, stdin=code) as connecting:
            await connecting.wait_line("Check number")
            await offering.wait_for("[y/N]")
            await offering.type("y\n")
            assert await offering.end() == 0
            await connecting.end()
    await day.know(day.desk, "devices", "bf32d0c7ad219456")
    await day.know(day.phone, "hosts", "8e7a0c51d6b24f93a1c85e0d7f6b3a29")
    day.page.tell(
        "A device is offered what it may do, for one folder: on the terminal a QR code and this text."
    )
    first, rest = offering.shown.split("Ctrl-C withdraws it.", 1)
    day.show((day.desk, args, first + "Ctrl-C withdraws it."))
    day.page.tell(
        "The phone takes the text, both show the same number, and a person at the desk says yes."
    )
    day.show((day.phone, connect, said(connecting)), (day.desk, (), rest.lstrip()))
    await day.run(
        day.phone,
        "hosts",
        "list",
        sentence="The phone keeps a book of the workstations that it knows.",
    )


async def look(day: Day, planned: str) -> None:
    day.page.stand.learn(planned)
    day.page.title("On the train: looking")
    await day.run(day.phone, "status", sentence="May I write, and does anything wait?")
    await day.run(day.phone, "threads", sentence="These are the threads of the folder.")
    await day.run(
        day.phone,
        "read",
        planned[:13],
        sentence="One of them, as the desktop left it.",
    )
    await day.run(day.phone, "models", sentence="The models that this Codex offers.")


async def work(day: Day) -> None:
    day.page.title("Still on the train: working")
    folder = str(day.stage.workspace)
    new = ("new", "--cwd", folder, script.BREADS)
    async with day.desk.start("watch") as watching:
        await watching.wait_line("^Watching")
        async with day.phone.start(*new) as starting:
            day.thread = (await starting.wait_line(r"new thread (\S+)"))[1]
            await starting.end()
        await watching.wait_line("completed")
    day.page.tell("A new thread, with its text as the model writes it.")
    day.show((day.phone, new, said(starting)))
    day.page.tell("The desk had `watch` running, and saw the same.")
    day.show((day.desk, ("watch",), said(watching)))
    await approve(day)
    await deny(day)
    await interrupt(day)
    await steer(day)


async def approve(day: Day) -> None:
    send = ("send", day.thread[:13], script.HOURS)
    async with day.phone.start(*send) as turn:
        approval = (await turn.wait_line(r"threadgate deny (apr_\w+)"))[1]
        first = said(turn)
        waiting = await day.phone.run("approvals")
        yes = ("approve", approval[:12], "--yes")
        answer = await day.phone.run(*yes)
        await turn.end()
    day.page.tell("Codex wants to run a command and asks; the turn waits.")
    day.show((day.phone, send, first))
    day.page.tell("In another terminal: what waits, whole.")
    day.show((day.phone, ("approvals",), waiting))
    day.page.tell(
        "A yes for exactly this (at a terminal `approve` asks; `--yes` is for scripts)."
    )
    day.show((day.phone, yes, answer))
    day.page.tell("The turn goes on where `send` waits.")
    day.show((day.phone, (), said(turn, len(first.splitlines()))))


async def deny(day: Day) -> None:
    send = ("send", day.thread[:13], script.TIDY)
    state = Path(day.phone.environ["THREADGATE_STATE_DIR"])
    async with open_terminal(state, *send, NO_COLOR="1") as turn:
        await turn.wait_for("Enter leaves it > ")
        await turn.type("d\n")
        assert await turn.end() == 0
    day.page.tell(
        "At a terminal `send` and `watch` ask right below the question: a no, for a command that would delete something."
    )
    day.show((day.phone, send, turn.shown))


async def interrupt(day: Day) -> None:
    send = ("send", day.thread[:13], LONG)
    stop = ("interrupt", day.thread[:13])
    async with day.phone.start(*send) as turn:
        await turn.wait_line("you +Write the history")
        answer = await day.phone.run(*stop)
        await turn.end(expect=ExitCode.FAILED)
    day.page.tell("A turn that takes too long is stopped.")
    day.show((day.phone, stop, answer))


async def steer(day: Day) -> None:
    send = ("send", day.thread[:13], LONG)
    more = ("steer", day.thread[:13], "Only of rye.", "--no-follow")
    async with day.phone.start(*send) as turn:
        await turn.wait_line("you +Write the history")
        answer = await day.phone.run(*more)
        await turn.wait_line("You said: Only of rye.")
        await turn.end()
    day.page.tell("More words for a turn that runs: the model goes on with them.")
    day.show((day.phone, more, answer))


async def ask(day: Day) -> None:
    send = ("send", day.thread[:13], ASK)
    async with day.phone.start(*send) as turn:
        asked = (await turn.wait_line(r"threadgate deny (apr_\w+)"))[1]
        first = said(turn)
        given = ("answer", asked[:12], "--answers", json.dumps({"bread": "Rye"}))
        answer = await day.phone.run(*given)
        await turn.end()
    day.page.title("Noon: the model asks")
    day.page.tell(
        "The model has a question; at a terminal `answer` goes through it, here it is answered as JSON."
    )
    day.show(
        (day.phone, send, first),
        (day.phone, given, answer),
        (day.phone, (), said(turn, len(first.splitlines()))),
    )


async def change(day: Day) -> None:
    phone, thread = day.phone, day.thread[:13]
    day.page.title("Noon: what it changes")
    await day.run(phone, "send", thread, PRICES, sentence="A file is written.")
    await day.run(phone, "diff", thread, sentence="What was changed in the thread.")
    await day.run(
        phone, "send", thread, LOAVES, sentence="A long output is folded where it runs."
    )
    await day.run(phone, "output", thread, sentence="Here it is whole.")
    await day.run(
        phone,
        "settings",
        thread,
        "--effort",
        "low",
        sentence="What the thread's turns run with; from now on it thinks less.",
    )


async def go_on_alone(day: Day) -> None:
    phone, thread = day.phone, day.thread[:13]
    day.page.title("Afternoon: what goes on by itself")
    await day.run(
        phone, "send", thread, OVEN, sentence="A command that outlives its turn."
    )
    listed = await day.run(
        phone, "background", thread, sentence="It runs on in the background."
    )
    await day.run(
        phone,
        "background",
        thread,
        "--stop",
        listed.split()[0],
        sentence="Until it is ended.",
    )
    await day.run(
        phone,
        "goal",
        thread,
        "--set",
        GOAL,
        sentence="A goal: Codex starts turns by itself until it is reached.",
    )
    await day.stage.model.wait_held("goal")
    await day.run(
        phone, "interrupt", thread, sentence="Stopping its turn pauses the goal."
    )
    await day.run(phone, "goal", thread, sentence="So it stands.")
    await day.run(
        phone, "goal", thread, "--clear", sentence="And now there is none any more."
    )


async def try_something(day: Day) -> None:
    phone = day.phone
    day.page.title("Afternoon: trying something")
    made = await day.run(
        phone,
        "fork",
        day.thread[:13],
        CAKES,
        sentence="A copy of the thread goes another way; the thread stays as it is.",
    )
    copy = made.split()[2][:13]
    await day.run(
        phone, "rename", copy, "Cakes, perhaps", sentence="It gets a name of its own."
    )
    day.page.stand.prefer(made.split()[2])
    await day.run(phone, "search", "cakes", sentence="Words are found in all threads …")
    day.page.stand.prefer(day.thread)
    await day.run(
        phone, "find", day.thread[:13], "loaves", sentence="… and places in one."
    )
    await day.run(phone, "archive", copy, sentence="Out of the list, and back:")
    await day.run(phone, "unarchive", copy, sentence="(It could be read all the time.)")
    await day.run(
        phone,
        "delete",
        copy,
        "--yes",
        sentence="No cakes (at a terminal `delete` asks; `--yes` is for scripts).",
    )


async def queue(day: Day) -> None:
    """Messages that wait: one is taken back, the other is sent when the desk is free."""
    phone, thread = day.phone, day.thread[:13]
    sentence = "It may wait in the Agent, until the thread is free."
    told = await day.run(
        phone, "send", thread, script.TOO_SOON, "--when-free", sentence=sentence
    )
    word = told.split()[2].strip(",")
    await day.run(phone, "queue", "list", sentence="What waits, and for what.")
    await day.run(
        phone, "queue", "delete", word[:10], sentence="This one is taken back."
    )
    told = await day.run(
        phone, "send", thread, script.QUESTION, "--when-free", sentence="Another one:"
    )


async def beside_the_desktop(day: Day) -> None:
    stage = day.stage
    day.page.title("Afternoon: somebody sits at the desk")
    async with open_window(stage.folder, stage.codex_environ):
        await day.until("readOnly")
        await day.run(
            day.phone,
            "status",
            sentence="Codex desktop is open: it writes, so the phone only reads.",
        )
        await day.run(
            day.phone,
            "send",
            day.thread[:13],
            script.TOO_SOON,
            sentence="A message is refused, and was not sent (exit code 4: try again later).",
            expect=ExitCode.RETRYABLE,
        )
        async with open_desktop_codex(stage.codex, stage.codex_environ) as desktop:
            await desktop.add_turn(day.thread, script.AT_THE_DESK)
        await day.run(
            day.phone,
            "read",
            day.thread[:13],
            "-n",
            "1",
            sentence="What is said at the desk can be read.",
        )
        await queue(day)
    await day.answered(script.ANSWER)
    await day.run(
        day.phone,
        "read",
        day.thread[:13],
        "-n",
        "1",
        sentence="The desktop is closed: the same thread goes on by itself, and the model knows what was said.",
    )
    await day.run(
        day.phone,
        "read",
        day.thread[:13],
        "-n",
        "2",
        "--md",
        sentence="The same as Markdown, to keep.",
    )


async def keep_order(day: Day) -> None:
    desk, phone = day.desk, day.phone
    day.page.title("Evening: keeping order")
    await day.run(
        desk,
        "threads",
        "--since",
        "12h",
        sentence="What happened today, and through which device.",
    )
    await day.run(desk, "devices", "list", sentence="Which devices there are.")
    await day.run(
        desk,
        "devices",
        "grant",
        "phone",
        "--scopes",
        "read",
        sentence="From now on the phone only reads.",
    )
    await day.run(
        phone,
        "send",
        day.thread[:13],
        "More.",
        sentence="So this is refused.",
        expect=ExitCode.FAILED,
    )
    await day.run(desk, "lock", sentence="The panic switch hangs up on every device.")
    await day.run(
        phone,
        "threads",
        sentence="Nobody answers the phone now (exit code 3).",
        expect=ExitCode.UNREACHABLE,
    )
    await day.run(desk, "unlock", sentence="And back.")
    await day.run(
        desk, "devices", "revoke", "phone", sentence="The phone is sold: it loses all."
    )
    await day.run(
        phone,
        "threads",
        sentence="It is not taken any more.",
        expect=ExitCode.UNREACHABLE,
    )
    await day.run(
        desk,
        "audit",
        "-n",
        "8",
        sentence="Who did what, newest first; never what was said.",
    )
    await examine(day)


async def examine(day: Day) -> None:
    report = ("doctor", "--report")
    ran = await run_cli(*report, environ=day.desk.environ)
    day.page.tell(
        "For a bug report: `doctor` looks at all of these, and says nothing private (what it finds depends on the machine)."
    )
    rows = [row for row in ran.out.splitlines() if row[:1].isalpha()]
    names = [re.split(r"\s{2,}", row)[1] for row in rows]
    day.show((day.desk, report, "\n".join(f"…     {name}" for name in names)))
    trace = day.stage.folder / "trace.jsonl"
    trace.write_bytes(TRACE.read_bytes())
    replay = ("replay", str(trace))
    told = await day.desk.run(*replay)
    rows = [f"{row[:WIDE]}…" for row in told.splitlines()]
    day.page.tell(
        "Or `replay`: a recorded app-server, told as clients would be told it (lines are cut here)."
    )
    day.show((day.desk, replay, "\n".join(rows)))
