"""Codex's configuration breaks under a running Agent: who is told what Codex says of it."""

from functools import partial

import pytest
import trio

from tests.support.agents import client_info, pair_device
from tests.support.codex import locking_versions, open_codex_home
from tests.support.faulty_codex import Ear
from tests.support.real_agent import (
    open_local,
    open_real_agent,
    send_params,
    wait_lease,
)
from transport.background import open_background
from transport.client import Client, open_client
from transport.errors import NotResumable, Refusal, RuntimeFailure
from transport.protocol import threads
from transport.protocol.events import Notice, QueueChanged
from transport.protocol.gateway import LeaseState
from transport.protocol.methods import THREAD_START, TURN_START
from transport.protocol.turns import TextInput

pytestmark = pytest.mark.codex
NEWEST = locking_versions()[-1]
WORDS = "config.toml"  # Codex names the file, with its folder


async def refusals(
    client: Client, thread: str, new: threads.ThreadStartParams, key: str
) -> list[Refusal]:
    """Send into a thread, and start one; return both refusals."""
    params = send_params(thread, "on", key=key)
    with pytest.raises(NotResumable) as turn:
        await client.call(TURN_START, params, timeout_s=60)
    with pytest.raises(RuntimeFailure) as start:
        await client.call(THREAD_START, new, timeout_s=60)
    return [turn.value, start.value]


def waits_for(ear: Ear) -> list[str]:
    """Return what was told of why a queued message waits for Codex."""
    rows = [row for one in ear.data(QueueChanged) for row in one.queue]
    return [row.waits_message for row in rows if row.waits_message is not None]


async def test_codex_s_words_in_a_refusal_are_for_the_workstation_alone() -> None:
    there, away = Ear(), Ear()
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=NEWEST, idle_s=1) as house,
            open_local(house) as owner,
        ):
            new = threads.ThreadStartParams(
                cwd=str(home.workspace),
                input=[TextInput(type="text", text="hello")],
                request_key="n" * 32,
                wait_ms=20_000,
            )
            thread = (await owner.call(THREAD_START, new, timeout_s=60)).thread.id
            await wait_lease(owner, thread, LeaseState.NONE)
            phone = await pair_device(
                house, scopes=("read", "write"), only=[home.workspace]
            )
            config = home.home / "config.toml"
            config.write_text(f"{config.read_text()}\nbroken = [\n")
            sent = len(home.model.requests)
            new = new.model_copy(update={"request_key": "m" * 32})
            async with (
                open_client(house.admin, client_info("ear", "e" * 32)) as listener,
                open_background(partial(there.listen, listener)),
                open_client(house.target(phone), client_info()) as client,
                open_background(partial(away.listen, client)),
            ):
                for refusal in await refusals(client, thread, new, "phone"):
                    assert WORDS not in str(refusal.wire())
                    assert "workstation" in refusal.message
                for refusal in await refusals(owner, thread, new, "owner"):
                    assert WORDS in refusal.message
                later = send_params(thread, "later", key="later", delivery="queue")
                await client.call(TURN_START, later, timeout_s=60)
                await there.until(lambda: bool(waits_for(there)))
                await away.until(lambda: bool(waits_for(away)))
            assert WORDS in waits_for(there)[0]
            assert WORDS not in waits_for(away)[0]
            assert not any(WORDS in one.message for one in away.data(Notice))
            assert len(home.model.requests) == sent
