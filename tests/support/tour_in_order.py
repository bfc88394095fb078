"""docs/tour.md from afternoon to evening: what goes on by itself, the desktop, keeping order."""

import re
from pathlib import Path
from typing import Final

from clients.cli import demo_script as script
from clients.cli.demo_desktop import open_desktop_codex, open_window
from clients.cli.exits import ExitCode
from tests.support.cli_runs import run_cli
from tests.support.tour import CAKES, GOAL, OVEN, Day

TRACE: Final = Path(__file__).parents[1] / "traces" / "shell-command.jsonl"
WIDE: Final = 110  # characters of a line of JSON that the page shows


async def go_on_alone(day: Day) -> None:
    """A command and a goal that outlive their turns."""
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
    """A fork that is named, found, archived and deleted."""
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
    """While the desktop is open: reading, and messages that wait."""
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
    """Rights, the panic switch, a device that is revoked."""
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
    """What a bug report holds."""
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
