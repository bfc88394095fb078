"""The steps of the demo. Each shows, tells, and checks what it told. Trio shell."""

import json
import textwrap
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

import trio

from clients.cli import demo_script as script
from clients.cli.demo_actors import Actor, Running
from clients.cli.demo_desktop import open_desktop_codex, open_window
from clients.cli.demo_stage import Stage
from clients.cli.doors import client_info
from clients.cli.exits import ExitCode, FailedError
from clients.cli.pairing import see_through, show_offer
from clients.cli.style import bold
from clients.cli.workstation import admin_socket
from transport.client import AdminTarget, open_client
from transport.protocol.admin import PairCandidate, PairOpenParams
from transport.protocol.methods import PAIR_OPEN

WIDTH: Final = 78
_STREAMED_S: Final = (
    0.3  # between the first and last words: they came as they were made
)
_SEEN_S: Final = 20.0  # for the Agent to notice what goes on around it

Status = dict[str, Any]


@dataclass(slots=True)
class Play:
    """The stage, and what the steps hand on. `bakery`, `breads`: thread ids."""

    stage: Stage
    bakery: str = ""
    breads: str = ""
    number: int = 0
    step: str = "the beginning"
    desk: Actor = field(init=False)
    phone: Actor = field(init=False)

    def __post_init__(self) -> None:
        self.desk, self.phone = self.stage.desk, self.stage.phone

    def title(self, text: str) -> None:
        """Begin a step."""
        self.number += 1
        self.step = text
        self.stage.screen.say()
        self.stage.screen.say(bold(f"{self.number}. {text}"))

    def tell(self, text: str) -> None:
        """Print a paragraph."""
        for row in textwrap.wrap(text, WIDTH, break_long_words=False):
            self.stage.screen.say(row)

    def check(self, told: bool, what: str) -> None:
        """Go on only if what was told is so."""
        if not told:
            raise FailedError(what)

    async def until(self, seen: Callable[[Status], bool], what: str) -> None:
        """Return once the phone's `status` says so; it is asked quietly."""
        with trio.move_on_after(_SEEN_S):
            while not seen(await self._status()):
                pass  # a new process each time: that is pause enough
            return
        raise FailedError(f"the Agent did not notice that {what}")

    async def _status(self) -> Status:
        text = await self.phone.run("status", "--json", quiet=True)
        return cast("Status", json.loads(text))


def short(thread_id: str) -> str:
    """Return as much of a thread's id as a person would type."""
    return thread_id[:13]


async def work_at_the_desk(play: Play) -> None:
    """Codex makes a thread before threadgate is there."""
    stage = play.stage
    play.title("A workstation where Codex has worked")
    play.tell(
        "Somebody has used Codex on this workstation, without threadgate. It left a "
        f"thread in its own history. (The real codex ran: {stage.codex}; its model is a "
        "script on this machine, so that no account and no network is needed.)"
    )
    async with open_desktop_codex(stage.codex, stage.codex_environ) as desktop:
        play.bakery = await desktop.start_thread(stage.workspace, script.PLAN)


@asynccontextmanager
async def run_agent(play: Play) -> AsyncGenerator[Running]:
    """The Agent, for as long as the rest takes."""
    play.title("The Agent starts on the workstation")
    play.tell(
        "It listens for paired devices on a port of this machine. Nobody is paired yet."
    )
    async with play.desk.start("serve", "--tcp", "127.0.0.1:0") as agent:
        await agent.wait_line("^ready")
        yield agent


async def pair_phone(play: Play) -> None:
    """A second device is paired; the demo answers at the workstation."""
    play.title("A second device is paired")
    play.tell(
        "The workstation shows a text (on a terminal a QR code as well). Whoever has it "
        "may ask to be paired once. Both sides show a check number, and only a yes at "
        "the workstation lets the device in: here for one folder only."
    )
    folder = str(play.stage.workspace)
    play.desk.type(f"threadgate pair --scopes read,write,approve --only {folder}")
    params = PairOpenParams(scopes=["read", "write", "approve"], only=[folder])
    paper = play.desk.paper()
    target = AdminTarget(path=admin_socket(play.desk.environ))
    async with open_client(target, client_info()) as client:
        opened = await client.call(PAIR_OPEN, params)
        show_offer(paper, opened)
        text = f"{opened.text}\n".encode()
        connect = ("connect", "--name", "phone")
        async with play.phone.start(*connect, stdin=text) as connecting:
            shown = await connecting.wait_line(r"Check number: (\d+) (\d+)")

            async def ask(candidate: PairCandidate) -> bool:
                await trio.lowlevel.checkpoint()
                same = candidate.check == shown[1] + shown[2]
                play.desk.show(f"Pair “{candidate.name}”? [y/N] {'y' if same else 'n'}")
                return same

            await see_through(paper, client, ask)
            await connecting.end()
    play.tell("(The numbers were the same; the demo has typed the y.)")


async def look(play: Play) -> None:
    """The phone lists and reads."""
    play.title("The phone looks")
    play.tell("What the Agent says of itself, the threads, and what is in one of them:")
    status = await play.phone.run("status")
    play.check(status.startswith("Open"), "the gate is not open")
    threads = await play.phone.run("threads")
    play.check(play.bakery[:8] in threads, "the thread of the desk is not listed")
    shown = await play.phone.run("read", short(play.bakery))
    play.check(script.PLANNED in shown, "the desk's turn cannot be read")


async def start_thread(play: Play) -> None:
    """The phone starts a thread, and two clients see it stream."""
    play.title("The phone starts a thread; two clients see it as it is written")
    play.tell("The desk watches all threads, while the phone starts a new one.")
    folder = str(play.stage.workspace)
    async with play.desk.start("watch") as watching:
        await watching.wait_line("^Watching")
        async with play.phone.start("new", "--cwd", folder, script.BREADS) as new:
            play.breads = (await new.wait_line(r"new thread (\S+)"))[1]
            await new.end()
        await watching.wait_line("completed")
        for client in (new, watching):
            _check_streamed(play, client)
    play.tell("Both have got every line in the moment in which the model wrote it.")


def _check_streamed(play: Play, client: Running) -> None:
    times = {
        bread: said.at
        for said in client.lines
        for bread in script.BREAD_NAMES
        if bread in said.text
    }
    who = client.actor.name
    play.check(len(times) == len(script.BREAD_NAMES), f"the {who} has missed breads")
    spread = max(times.values()) - min(times.values())
    play.check(spread > _STREAMED_S, f"the {who} has got the text only at the end")


async def refuse_a_command(play: Play) -> None:
    """A command asks, and the phone says no."""
    play.title("A command asks first: the phone says no")
    play.tell(
        "Codex wants to delete a file. The turn waits; the question has a deadline, and "
        "without an answer it is a no. The file notes.txt must still be there at the end."
    )
    async with play.phone.start("send", short(play.breads), script.TIDY) as turn:
        approval = (await turn.wait_line(r"threadgate deny (apr_\w+)"))[1]
        async with play.phone.start("deny", approval[:12]) as answer:
            await answer.end()
        await turn.end()
    play.check(_said(turn, script.TIDIED), "Codex did not go on after the no")
    notes = play.stage.workspace / "notes.txt"
    play.check(await trio.Path(notes).exists(), "notes.txt is gone, though refused")
    play.tell("notes.txt is still there.")


async def approve_a_command(play: Play) -> None:
    """A command asks, and the phone says yes."""
    play.title("A command asks first: the phone says yes")
    play.tell(
        "This time Codex wants to write hours.txt. The file must not exist before the "
        "yes. At a terminal `approve` shows the command and asks; --yes is for scripts."
    )
    hours = trio.Path(play.stage.workspace / "hours.txt")
    async with play.phone.start("send", short(play.breads), script.HOURS) as turn:
        approval = (await turn.wait_line(r"threadgate deny (apr_\w+)"))[1]
        play.check(not await hours.exists(), "hours.txt exists before the yes")
        play.tell("Before the yes there is no hours.txt.")
        async with play.phone.start("approve", approval[:12], "--yes") as answer:
            await answer.end()
        await turn.end()
    play.check(_said(turn, "exit 0"), "the command did not succeed")
    play.check(await hours.exists(), "hours.txt does not exist after the yes")
    play.tell(f"After the yes there is: {(await hours.read_text()).strip()}")


def _said(running: Running, text: str) -> bool:
    return any(text in said.text for said in running.lines)


async def use_the_desktop(play: Play) -> None:
    """The desktop opens and writes; the phone may only read."""
    stage = play.stage
    play.title("Codex desktop opens: it is the writer now")
    play.tell(
        "Two programs that write one thread would spoil it. So while the desktop is "
        "open the Agent writes nothing, gives its threads back at once, and says who "
        "writes and when to try again (exit code 4). Reading goes on."
    )
    async with open_window(stage.folder, stage.codex_environ) as pid:
        play.desk.show(f"(Codex desktop opens: a stand-in, process {pid})")
        await play.until(lambda s: s["gate"]["state"] == "readOnly", "it opened")
        await play.phone.run("status")
        breads = short(play.breads)
        send = ("send", breads, script.TOO_SOON)
        refused = await play.phone.run(*send, expect=ExitCode.RETRYABLE)
        play.check(str(pid) in refused, "the refusal does not name the desktop")
        await play.until(lambda s: not s.get("leases"), "its thread is idle")
        play.tell("Now somebody goes on with the same thread at the desk:")
        async with open_desktop_codex(stage.codex, stage.codex_environ) as desktop:
            play.desk.show(f"(in the desktop) you: {script.AT_THE_DESK}")
            await desktop.add_turn(play.breads, script.AT_THE_DESK)
        shown = await play.phone.run("read", breads, "-n", "1")
        play.check(script.NOTED in shown, "the desktop's turn cannot be read")
    play.desk.show("(Codex desktop is closed)")
    await play.until(lambda s: s["gate"]["state"] == "open", "the desktop was closed")


async def go_on(play: Play) -> None:
    """The phone continues, and the model knows what was said at the desk."""
    play.title("The desktop is closed: the phone goes on where the desk left off")
    play.tell(
        "The Agent starts a fresh app-server before it writes, so what the desktop has "
        "added is known. The model itself is asked about it:"
    )
    # The gate may just have opened, and be looked at once more before anything is sent.
    send = ("send", short(play.breads), script.QUESTION, "--wait", "20")
    async with play.phone.start(*send) as turn:
        await turn.end()
    play.check(_said(turn, script.ANSWER), "the model did not answer")
    _check_request(play)


def _check_request(play: Play) -> None:
    requests = play.stage.model.requests
    texts = requests[-1].texts
    known = (script.BREADS, script.HOURS, script.AT_THE_DESK, script.NOTED)
    missing = [one for one in (*known, script.QUESTION) if one not in texts]
    play.check(not missing, f"the model was not told: {missing}")
    late = [one for request in requests for one in request.texts]
    play.check(script.TOO_SOON not in late, "the refused message reached the model")
    play.tell("This is what the model was sent, as it has logged it:")
    for text in texts:
        if text in {*known, script.QUESTION}:
            mark = "  <- from the desk" if text == script.AT_THE_DESK else ""
            play.stage.screen.say(f"    {text}{mark}")
    play.tell("The message that was refused never reached it.")
