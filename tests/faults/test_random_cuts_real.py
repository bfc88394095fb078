"""The real codex, and a device whose line is cut at random bytes and at every stage of turns.

It listens, and it sends and answers. In the end it shows what a device shows that was never
cut, which is what is stored; each message reached the model once, each answer codex.
Where cuts fall comes from a seed; what they meet there also depends on the machine.
"""

import os
import random
import secrets
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import pytest
import trio

from clients.cli.scripted_answers import Rule
from tests.support.agents import client_info, pair_device
from tests.support.codex import CodexHome, codex_binaries, open_codex_home
from tests.support.cut_line import Relay, open_line
from tests.support.door import FakeWatch
from tests.support.real_agent import open_real_agent, send_params
from tests.support.screens import Screen, open_screen
from tests.support.served_agent import app_servers, freeze
from tests.support.stages import thaw, wait_unread
from transport.client import Client, Target, open_client
from transport.protocol import threads, turns
from transport.protocol.approvals import ApprovalAnswerParams, ApprovalState
from transport.protocol.methods import (
    APPROVAL_ANSWER,
    THREAD_START,
    TURN_LIST,
    TURN_START,
)
from transport.protocol.turns import TextInput, Turn

pytestmark = pytest.mark.codex
VERSIONS = [one for one in ("0.163.0", "0.171.0") if one in codex_binaries()]
SEED: Final = os.environ.get("THREADGATE_CUTS_SEED")
LEAST, MOST = 6, 14  # bits: a cut in the handshake, or after a turn's worth of events
REQUESTS: Final = 3  # of the model, in each turn
DOORS: Final = {"handshakes_per_second": 1_000.0, "handshake_burst": 1_000}


def story(n: int) -> Rule:
    """A turn that comes by every stage, and waits at each that is not codex's own."""
    ask = {
        "cmd": f"echo {n} >> allowed.txt",
        "sandbox_permissions": "require_escalated",
        "justification": "why",
    }
    run = {
        "cmd": f"until test -e go-{n}; do sleep 0.02; done; echo {n} >> ran.txt",
        "yield_time_ms": 30_000,
    }
    begins: list[dict[str, Any]] = [
        {"hold": f"begun {n}"},
        {"reasoning": ["Thinking about it."]},
        {"msg": words(n), "halfway": f"middle {n}", "phase": "commentary"},
        {"call": "exec_command", "args": ask},
    ]
    works: list[dict[str, Any]] = [{"call": "exec_command", "args": run}]
    return Rule(
        text(n), [begins, works, [{"msg": f"All of {n}."}, {"hold": f"nearly {n}"}]]
    )


def text(n: int) -> str:
    return f"Tell story {n}."


def words(n: int) -> str:
    return " ".join(f"w{n}.{place}" for place in range(300))


@dataclass(kw_only=True)
class Seat:
    """A device in front of its screen."""

    client: Client
    screen: Screen


@dataclass(kw_only=True)
class Play:
    """One thread, one that was never cut, and one that is."""

    rng: random.Random
    home: CodexHome
    line: Relay
    thread: str
    others: set[int]  # app-servers that are no writers
    stayed: Seat
    cut: Seat

    async def turn(self, n: int, sender: Seat) -> None:
        """Go through one turn, with cuts at its stages and anywhere between them."""
        model, screen = self.home.model, self.stayed.screen
        self.line.lasts = self._bytes
        async with trio.open_nursery() as nursery:
            writer = self._writer()
            await freeze(writer)
            nursery.start_soon(self._send, n, sender)
            with suppress(FileNotFoundError):  # it has not stored its last turn yet
                await wait_unread(writer)
            self.at_a_stage("before the response")
            with suppress(ProcessLookupError):  # … and was replaced
                await thaw(writer)
            await model.wait_held(f"begun {n}")
            self.at_a_stage("after turn/started")
            model.release(f"begun {n}")
            await screen.until(lambda: screen.shows(f"w{n}.100 "))
            self.at_a_stage("mid-delta")
            model.release(f"middle {n}")
            await screen.until(lambda: len(screen.asked) > n)
            self.at_a_stage("approval pending")
            await self._answer(n, sender)
            await screen.until(lambda: self._runs(f"go-{n}"))
            self.at_a_stage("command running")
            await trio.Path(self.home.workspace / f"go-{n}").touch()
            await screen.until(lambda: screen.has(f"All of {n}."))
            self.at_a_stage("before turn/completed")
            model.release(f"nearly {n}")
            await screen.until(lambda: self._ended() > n)
            self.line.up = True

    def at_a_stage(self, name: str) -> None:
        """The line holds, or is lost at once, or is down until the next stage."""
        what = self.rng.choice(("holds", "is lost", "is down"))
        print(f"{name}: the line {what}")
        self.line.up = True
        if what == "is lost":
            self.line.lose()
        elif what == "is down":
            self.line.cut()

    def _bytes(self) -> int:
        return int(2 ** self.rng.uniform(LEAST, MOST))

    async def _send(self, n: int, sender: Seat) -> None:
        params = send_params(self.thread, text(n), key=f"story-{n}")
        started = await sender.client.call(TURN_START, params)
        screen = self.stayed.screen
        await screen.until(lambda: started.sent.id in screen.turns)

    async def _answer(self, n: int, sender: Seat) -> None:
        self.line.up = True
        screen = sender.screen
        await screen.until(lambda: len(screen.asked) > n)
        asked = screen.asked[n]
        params = ApprovalAnswerParams(
            approval_id=asked.id, digest=asked.digest, choice="allow"
        )

        async def say_yes() -> None:
            answered = await sender.client.call(APPROVAL_ANSWER, params)
            assert answered.approval.choice == "allow"

        async with trio.open_nursery() as nursery:
            writer = self._writer()
            await freeze(writer)
            nursery.start_soon(say_yes)
            await wait_unread(writer)
            self.at_a_stage("approval answering")
            await thaw(writer)
            self.line.up = True

    def _writer(self) -> int:
        (pid,) = set(app_servers(os.getpid())) - self.others
        return pid

    def _runs(self, mark: str) -> bool:
        items = self.stayed.screen.items.values()
        return any(
            item["kind"] == "command" and mark in item["command"] for item in items
        )

    def _ended(self) -> int:
        ended = [one["status"] for one in self.stayed.screen.turns.values()]
        return ended.count("completed")

    async def calm(self) -> None:
        """Everybody has seen all that there is."""
        self.line.lasts, self.line.up = lambda: sys.maxsize, True
        self.line.lose()  # the next is whole
        last, mine = self.stayed.screen, self.cut.screen
        await mine.until(lambda: mine.heard[-1:] == last.heard[-1:])


@asynccontextmanager
async def open_play(
    home: CodexHome, version: str, rng: random.Random
) -> AsyncGenerator[Play]:
    """Set the stage: a thread with one turn, a warm writer, two devices that look on.

    Other programs of this machine are no part of it.
    """
    async with open_real_agent(
        home, version=version, watch=FakeWatch(), doors=DOORS
    ) as house:
        rights = ("read", "write", "approve")
        phone = await pair_device(house, scopes=rights, name="phone")
        tablet = await pair_device(house, scopes=rights, name="tablet")
        others = set(app_servers(os.getpid()))
        thread = await _new_thread(house.target(tablet), home)
        async with (
            open_line(house.target(phone)) as (line, near),
            open_screen(house.target(tablet), thread, "tablet") as (two, stayed),
            open_screen(near, thread, "phone") as (one, cut),
        ):
            yield Play(
                rng=rng,
                home=home,
                line=line,
                thread=thread,
                others=others,
                stayed=Seat(client=two, screen=stayed),
                cut=Seat(client=one, screen=cut),
            )


async def _new_thread(target: Target, home: CodexHome) -> str:
    async with open_client(target, client_info("first", "f" * 32)) as client:
        screen = Screen()
        async with client.subscribe("all") as events:
            params = threads.ThreadStartParams(
                cwd=str(home.workspace),
                input=[TextInput(type="text", text="hello")],
                request_key="n" * 32,
                wait_ms=20_000,
            )
            started = await client.call(THREAD_START, params, timeout_s=60)
            async for event in events:
                screen.take(event)
                if screen.is_over():
                    break
    return started.thread.id


async def _stored(seat: Seat, thread: str) -> list[Turn]:
    """Return the turns of the play as history has them, oldest first."""
    params = turns.TurnListParams(thread_id=thread, order="asc", items="full")
    return (await seat.client.call(TURN_LIST, params)).turns[1:]


def _rows(screen: Screen) -> list[tuple[str, str, str | None]]:
    shown = (screen.items[item] for item in screen.done)
    return [(row["id"], row["kind"], row.get("text")) for row in shown]


async def _check(play: Play, count: int) -> None:
    """See that nothing is lost, doubled or torn, wherever it could be."""
    stayed, cut = play.stayed.screen, play.cut.screen
    assert set(cut.verdicts[1:]) == {"ok"}, cut.verdicts
    assert (stayed.verdicts, stayed.torn, cut.torn) == (["new"], [], [])
    assert cut.items == stayed.items
    assert cut.turns == stayed.turns
    assert cut.done == stayed.done
    assert cut.heard == stayed.heard
    assert len(set(cut.done)) == len(cut.done), "an item twice"
    for seat in (play.stayed, play.cut):
        kept = await _stored(seat, play.thread)
        assert [(turn.id, turn.status) for turn in kept] == [
            (one["id"], one["status"]) for one in cut.turns.values()
        ]
        assert [
            (item.id, item.kind, item.wire().get("text"))
            for turn in kept
            for item in turn.items or ()
        ] == _rows(seat.screen)
    _check_effects(play, count)


def _check_effects(play: Play, count: int) -> None:
    """Each message, each yes and each command had its effect once."""
    numbers = [str(n) for n in range(count)]
    requests = play.home.model.requests
    told = [one for one in requests[-1].user_texts if one.startswith("Tell story")]
    assert told == [text(n) for n in range(count)]
    assert len(requests) == 1 + REQUESTS * count
    for screen in (play.stayed.screen, play.cut.screen):
        asked = [one.id for one in screen.asked]
        assert len(set(asked)) == count
        assert [one.id for one in screen.resolved] == asked
        assert {one.state for one in screen.resolved} == {ApprovalState.ANSWERED}
    for name in ("allowed.txt", "ran.txt"):
        assert (play.home.workspace / name).read_text().split() == numbers


async def _cut_through(version: str, seed: int, senders: Sequence[str]) -> None:
    """Play turns, each sent and answered by the one who was `cut` or who `stayed`."""
    print(f"THREADGATE_CUTS_SEED={seed}")
    rng = random.Random(seed)  # noqa: S311 - for tests
    rules = [story(n) for n in range(len(senders))]
    async with (
        open_codex_home(*rules) as home,
        open_play(home, version, rng) as play,
    ):
        for n, sender in enumerate(senders):
            await play.turn(n, play.cut if sender == "cut" else play.stayed)
        await play.calm()
        assert play.line.carried > 3, "hardly cut at all"
        await _check(play, len(senders))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the client come back at once, so that there are many cuts in a short time."""
    monkeypatch.setattr("transport.reconnect.BACKOFF_S", 0.005)
    monkeypatch.setattr("transport.reconnect.BACKOFF_MAX_S", 0.02)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_device_whose_line_is_cut_at_random_ends_with_what_one_shows_who_stayed(
    version: str,
) -> None:
    seed = int(SEED or secrets.randbelow(10_000))
    with trio.fail_after(240):
        await _cut_through(version, seed, ("cut", "stayed"))


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(6))
async def test_wherever_a_line_is_cut_in_many_turns_nothing_is_lost_or_doubled(
    version: str, seed: int
) -> None:
    with trio.fail_after(240):
        await _cut_through(version, seed, ("cut", "stayed", "cut"))
