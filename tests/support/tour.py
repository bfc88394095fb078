"""The stage of docs/tour.md: a workstation and a phone, what is typed at them, and its page."""

import json
import re
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from clients.cli import demo_script as script
from clients.cli.demo_actors import Actor, Running
from clients.cli.demo_stage import Stage, open_stage
from clients.cli.exits import ExitCode
from clients.cli.screen import Screen
from clients.cli.scripted_answers import Rule
from tests.support.cli_runs import paper, printed
from tests.support.transcripts import Page, Stand

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
    """Return a command as a person types it."""
    words = (arg if re.fullmatch(r"[\w./:=,@-]+", arg) else f"'{arg}'" for arg in args)
    return " ".join(["threadgate", *words])


def said(running: Running, start: int = 0) -> str:
    """Return what a command has said from a line on."""
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
    """Open the stage, and an empty page, for the length of the block."""
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
