"""docs/tour.md from morning to noon: pairing, looking, working, a question, what was changed."""

import json
import re
from pathlib import Path

from clients.cli import demo_script as script
from clients.cli.exits import ExitCode
from tests.support.terminals import open_terminal
from tests.support.tour import ASK, LOAVES, LONG, PRICES, Day, said


async def pair(day: Day) -> None:
    """The phone is paired, for one folder."""
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
    """What is there; `planned` is a thread of the desktop."""
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
    """A new thread, two questions, an interrupt and more words."""
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
    """A yes from another terminal."""
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
    """A no below the question."""
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
    """A turn that takes too long."""
    send = ("send", day.thread[:13], LONG)
    stop = ("interrupt", day.thread[:13])
    async with day.phone.start(*send) as turn:
        await turn.wait_line("you +Write the history")
        answer = await day.phone.run(*stop)
        await turn.end(expect=ExitCode.FAILED)
    day.page.tell("A turn that takes too long is stopped.")
    day.show((day.phone, stop, answer))


async def steer(day: Day) -> None:
    """More words for a turn that runs."""
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
    """The model asks; the answer is given as JSON."""
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
    """A file, an output, the settings."""
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
