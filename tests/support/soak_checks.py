"""What must be true after a soak, whatever happened in it."""

import signal
import sqlite3
from collections import Counter
from contextlib import closing, suppress

import trio

from tests.support.foreign import open_foreign
from tests.support.other_codexes import resume_when_free
from tests.support.served_agent import ServedAgent
from tests.support.soak_users import Point, Users, history
from tests.support.soak_world import World
from transport.client import Client
from transport.errors import Refusal
from transport.protocol import approvals
from transport.protocol.gateway import GatewayStatusParams
from transport.protocol.items import UserMessage
from transport.protocol.methods import (
    APPROVAL_ANSWER,
    APPROVAL_LIST,
    GATEWAY_STATUS,
    QUEUE_LIST,
)
from transport.protocol.queue import QueueListParams
from transport.protocol.turns import Turn, TurnStatus


async def _wait_quiet(owner: Client) -> None:
    """Return when nothing asks, runs or waits any more."""
    while True:
        asked = await owner.call(APPROVAL_LIST, approvals.ApprovalListParams())
        for approval in asked.approvals:
            params = approvals.ApprovalAnswerParams(
                approval_id=approval.id, digest=approval.digest, choice="deny"
            )
            with suppress(Refusal):
                await owner.call(APPROVAL_ANSWER, params)
        waiting = await owner.call(QUEUE_LIST, QueueListParams())
        now = await owner.call(GATEWAY_STATUS, GatewayStatusParams())
        if not waiting.queue and not now.leases:
            return
        await trio.sleep(0.25)


async def check(world: World, users: Users) -> None:
    """Check all that must be true whatever happened."""
    async with world.owner() as owner:
        with trio.fail_after(120):
            await _wait_quiet(owner)
        async with open_foreign(world.foreign_codex, world.home.environ) as other:
            for thread in world.threads:
                await resume_when_free(other, thread)
                await other.turn(thread, f"last in {thread}")
        stored = {thread: await history(owner, thread) for thread in world.threads}
        texts = _texts_of(stored)
        _check_sent_once(world, users, texts)
        ended = {(t, turn.id): turn.status for t, its in stored.items() for turn in its}
        await _check_outcomes(world, users, texts, ended)
        await _check_views(users, stored)
    for path in world.home.workspace.glob("*.ran"):
        assert path.read_text() == "x\n", f"{path.name} was run twice"


def _texts_of(stored: dict[str, list[Turn]]) -> dict[str, list[Point]]:
    """Return each text that a person has said: in which turns it is."""
    found: dict[str, list[Point]] = {}
    for thread, its in stored.items():
        for turn in its:
            for item in turn.items or ():
                if isinstance(item, UserMessage):
                    name = item.text.split(" ")[0]
                    found.setdefault(name, []).append((thread, turn.id))
    return found


def _check_sent_once(world: World, users: Users, texts: dict[str, list[Point]]) -> None:
    names = {one.name for one in users.messages}
    twice = {n: p for n, p in texts.items() if n in names and len(p) > 1}
    assert not twice, twice
    backed = [one for one in users.messages if one.taken_back and one.name in texts]
    assert not backed, backed
    for request in world.home.model.requests:
        said = Counter(text.split(" ")[0] for text in request.user_texts)
        assert not {n: c for n, c in said.items() if n in names and c > 1}


async def _check_outcomes(
    world: World,
    users: Users,
    texts: dict[str, list[Point]],
    ended: dict[Point, TurnStatus],
) -> None:
    """Each key has its one outcome for ever, and history bears it out.

    But what was said to be `pending` may go with its turn, where that was cut short.
    """
    async with trio.open_nursery() as nursery:
        for device in range(len(world.targets)):
            nursery.start_soon(_repeat_all, world, users, device, texts)
    for one in users.messages:
        if one.turn is not None:
            point = (one.params.thread_id, one.turn.removeprefix("turn "))
            lost = one.pending and ended[point] is not TurnStatus.COMPLETED
            assert lost or point in texts.get(one.name, []), one


async def _repeat_all(
    world: World, users: Users, device: int, texts: dict[str, list[Point]]
) -> None:
    async with world.client(device) as client:
        for message in users.messages:
            sure = any(one.startswith(("turn ", "queued ")) for one in message.said)
            if message.device == device and (sure or message.name in texts):
                with trio.fail_after(60):
                    outcome = await users.ask(client, message)
                if not sure:  # it is there: never again, and perhaps known
                    assert outcome.startswith(("turn ", "unknown", "queued ")), message


async def _check_views(users: Users, stored: dict[str, list[Turn]]) -> None:
    """Who followed all the time shows what who comes now reads.

    But a turn whose codex was killed right at its start, before it was stored: who
    followed shows it as interrupted.
    """
    real = {
        (thread, turn.id): turn.status.value
        for thread, its in stored.items()
        for turn in its
    }
    for device, view in users.views.items():
        with trio.move_on_after(20):
            while _differs(users.views[device].turns, real):  # noqa: ASYNC110 - bounded
                await trio.sleep(0.1)
        wrong = _differs(users.views[device].turns, real)
        assert not wrong, (device, view.resumed, wrong)


def _differs(
    shown: dict[Point, str], real: dict[Point, str]
) -> dict[Point, tuple[str | None, str | None]]:
    pairs = {one: (shown.get(one), real.get(one)) for one in {*shown, *real}}
    never_stored = (TurnStatus.INTERRUPTED.value, None)
    return {
        one: pair
        for one, pair in pairs.items()
        if pair[0] != pair[1] and pair != never_stored
    }


async def check_ended(agent: ServedAgent) -> None:
    """Check that it ends when told, and nothing is half done in its ledger."""
    agent.signal(signal.SIGTERM)
    with trio.fail_after(15):
        await agent.wait()
    with closing(sqlite3.connect(agent.state / "ledger.sqlite")) as ledger:
        half = ledger.execute("SELECT * FROM keys WHERE state = 'handed'").fetchall()
    assert half == []
