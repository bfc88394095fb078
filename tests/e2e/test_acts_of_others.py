"""Another program names, archives, brings back and deletes threads: devices are told."""

from collections.abc import AsyncIterator

import pytest
import trio

from tests.support.agents import client_info, pair_device
from tests.support.codex import codex_binaries, locking_versions, open_codex_home
from tests.support.foreign import open_foreign
from tests.support.real_agent import open_real_agent
from transport.client import EventSeen, Resumed, open_client
from transport.protocol.events import ThreadChanged, ThreadRemoved

pytestmark = pytest.mark.codex
NEWEST = locking_versions()[-1]


async def next_of_thread(
    events: AsyncIterator[object], thread: str
) -> ThreadChanged | ThreadRemoved:
    """Return what is told next of this thread itself."""
    async for event in events:
        match event:
            case EventSeen(
                thread_id=one, data=ThreadChanged() | ThreadRemoved() as data
            ):
                if one == thread:
                    return data
            case _:
                pass
    raise AssertionError("the subscription ended")


async def test_what_another_program_does_with_a_thread_is_told() -> None:
    """Nobody is subscribed to the thread by its name, and nobody has it open."""
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=NEWEST) as house,
            open_foreign(codex_binaries()[NEWEST], home.environ) as foreign,
        ):
            thread = await foreign.start_thread(home.workspace, "hello")
            await foreign.start_thread(home.workspace, "another")
            await foreign.request("thread/unsubscribe", {"threadId": thread})
            phone = await pair_device(house, scopes=("read",), name="phone")
            async with (
                open_client(house.target(phone), client_info()) as client,
                client.subscribe("all", deltas=False) as events,
                open_foreign(codex_binaries()[NEWEST], home.environ) as other,
            ):
                async for event in events:
                    if isinstance(event, Resumed):
                        break
                named = {"threadId": thread, "name": "Tides"}
                await other.request("thread/name/set", named)
                told = await next_of_thread(events, thread)
                assert isinstance(told, ThreadChanged)
                assert told.thread.title == "Tides"
                foreign.process.terminate()  # it has the thread loaded
                await foreign.process.wait()
                for method, reason in (("archive", "archived"), ("delete", "deleted")):
                    await other.request(f"thread/{method}", {"threadId": thread})
                    told = await next_of_thread(events, thread)
                    assert isinstance(told, ThreadRemoved)
                    assert told.reason == reason
                    if method == "archive":
                        await other.request("thread/unarchive", {"threadId": thread})
                        told = await next_of_thread(events, thread)
                        assert isinstance(told, ThreadChanged)
                        assert not told.thread.archived
