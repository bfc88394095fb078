"""The whole Agent beside another real codex on one CODEX_HOME, seen by its clients.

What the design promises of a foreign writer is proved with a foreign writer: the model
sees in its next request whether our codex knew what the other one had added.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
import trio

from agent.gate.engines import Look
from tests.support.codex import (
    BUNDLED,
    WITHOUT_LOCK,
    CodexHome,
    codex_binaries,
    locking_versions,
    open_codex_home,
)
from tests.support.door import DESKTOP
from tests.support.foreign import open_foreign
from tests.support.leftovers import marked_processes
from tests.support.real_agent import (
    lock_files,
    open_local,
    open_real_agent,
    send_params,
    send_to_end,
    status,
    thread_ids,
    wait_lease,
)
from transport.client import Client
from transport.errors import (
    CodexUnavailable,
    Conflict,
    NotResumable,
    ThreadOwnedElsewhere,
)
from transport.protocol import threads
from transport.protocol.gateway import (
    GatePosition,
    GateReason,
    LeaseState,
    Writer,
)
from transport.protocol.methods import THREAD_READ, TURN_START
from transport.protocol.turns import TurnStartParams, TurnStatus

pytestmark = pytest.mark.codex
LOCKING = locking_versions()


def last_request(home: CodexHome) -> str:
    """Return all that was said in the model's newest request."""
    return "\n".join(home.model.requests[-1].texts)


async def wait_gate(client: Client, position: GatePosition) -> None:
    while (await status(client)).gate.state is not position:
        pass  # each status is a round trip


async def owned_elsewhere(
    client: Client, params: TurnStartParams
) -> ThreadOwnedElsewhere:
    """Return the refusal for a foreign lock.

    An engine that has not said its version yet counts as one without locks, so the
    first refusal may be the gate's: it opens as soon as the version is known.
    """
    while True:
        try:
            await client.call(TURN_START, params)
        except ThreadOwnedElsewhere as refusal:
            return refusal
        except CodexUnavailable:
            await wait_gate(client, GatePosition.OPEN)
        else:
            pytest.fail("a thread that is held elsewhere was written to")


@pytest.mark.parametrize("version", LOCKING)
async def test_a_thread_held_elsewhere_is_refused_and_continued_once_it_is_free(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home) as house,
            open_local(house) as client,
        ):
            async with open_foreign(codex_binaries()[version], home.environ) as foreign:
                thread = await foreign.start_thread(home.workspace, "theirs")
                params = send_params(thread, "ours", key="held", wait_ms=0)
                refusal = await owned_elsewhere(client, params)
                assert refusal.retryable
                assert refusal.data["writer"]["pid"] == foreign.pid
                read = threads.ThreadReadParams(thread_id=thread)
                assert (await client.call(THREAD_READ, read)).turns
            turn = await send_to_end(client, thread, "ours", key="held")
            assert turn.status is TurnStatus.COMPLETED
            assert "theirs" in last_request(home)
            acts = [r for r in home.model.requests if r.user_texts[-1] == "ours"]
            assert len(acts) == 1, "one act for one request key"


async def test_a_send_that_may_wait_starts_when_the_other_writer_lets_go() -> None:
    started = trio.Event()
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home) as house,
            open_local(house) as client,
            trio.open_nursery() as nursery,
        ):
            async with open_foreign(codex_binaries()[BUNDLED], home.environ) as foreign:
                thread = await foreign.start_thread(home.workspace, "theirs")
                params = send_params(thread, "ours", key="wait", wait_ms=60_000)

                async def wait_and_start() -> None:
                    await client.call(TURN_START, params, timeout_s=80)
                    started.set()

                nursery.start_soon(wait_and_start)
                while not (await status(client)).leases:
                    pass  # until our attempt has met the lock
                assert not started.is_set()
            await started.wait()
            assert "theirs" in last_request(home)


@pytest.mark.parametrize("version", LOCKING)
async def test_after_our_lease_another_codex_has_the_thread_at_once(
    version: str,
) -> None:
    codex = codex_binaries()[version]
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=version, idle_s=1) as house,
            open_local(house) as client,
        ):
            async with open_foreign(codex, home.environ) as first:
                thread = await first.start_thread(home.workspace, "theirs")
            async with open_foreign(codex, home.environ) as foreign:
                await send_to_end(client, thread, "ours", key="lease")
                await wait_lease(client, thread, LeaseState.NONE)
                await foreign.resume(thread)  # the first try succeeds
                await foreign.turn(thread, "theirs again")
                assert "ours" in last_request(home)


async def test_a_codex_without_locks_closes_the_gate_and_its_turns_are_known_after() -> (
    None
):
    codex = codex_binaries().get(WITHOUT_LOCK)
    if codex is None:
        pytest.skip(f"codex {WITHOUT_LOCK} is not in the cache (make test fetches it)")
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home) as house,
            open_local(house) as client,
        ):
            async with open_foreign(codex, home.environ) as foreign:
                thread = await foreign.start_thread(home.workspace, "theirs")
                await wait_gate(client, GatePosition.READ_ONLY)
                gate = (await status(client)).gate
                assert gate.reason is GateReason.WRITER_WITHOUT_LOCK
                assert gate.writer is not None
                assert gate.writer.pid == foreign.pid
                with pytest.raises(CodexUnavailable) as refusal:
                    params = send_params(thread, "ours", key="gate", wait_ms=0)
                    await client.call(TURN_START, params)
                assert refusal.value.retryable
                assert thread in await thread_ids(client)
            await wait_gate(client, GatePosition.OPEN)
            await send_to_end(client, thread, "ours", key="gate")
            assert "theirs" in last_request(home)


async def test_what_another_codex_added_meanwhile_is_a_conflict_for_a_stale_client() -> (
    None
):
    codex = codex_binaries()[BUNDLED]
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home, idle_s=1) as house,
            open_local(house) as client,
        ):
            async with open_foreign(codex, home.environ) as foreign:
                thread = await foreign.start_thread(home.workspace, "theirs")
            ours = await send_to_end(client, thread, "ours", key="one")
            await wait_lease(client, thread, LeaseState.NONE)
            async with open_foreign(codex, home.environ) as foreign:
                await foreign.resume(thread)
                await foreign.turn(thread, "theirs again")
            stale = send_params(
                thread, "more", key="two", expected_last_turn_id=ours.id
            )
            with pytest.raises(Conflict) as refusal:
                await client.call(TURN_START, stale)
            assert refusal.value.data["what"] == "lastTurn"
            assert home.model.requests[-1].user_texts[-1] == "theirs again"


@pytest.mark.parametrize("version", sorted({BUNDLED, LOCKING[-1]}))
async def test_a_thread_archived_elsewhere_is_read_and_not_continued_until_it_is_back(
    version: str,
) -> None:
    codex = codex_binaries()[version]
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=version) as house,
            open_local(house) as client,
            open_foreign(codex, home.environ) as foreign,
        ):
            thread = await foreign.start_thread(home.workspace, "theirs")
            await foreign.request("thread/archive", {"threadId": thread})
            with pytest.raises(NotResumable) as refusal:
                params = send_params(thread, "ours", key="archived")
                await client.call(TURN_START, params)
            assert "unarchive" in refusal.value.message
            assert not (await status(client)).leases
            read = threads.ThreadReadParams(thread_id=thread)
            assert (await client.call(THREAD_READ, read)).turns
            await foreign.request("thread/unarchive", {"threadId": thread})
            turn = await send_to_end(client, thread, "ours", key="archived")
            assert turn.status is TurnStatus.COMPLETED
            assert "theirs" in last_request(home)


class DesktopAtLook:
    """A process table on which the desktop appears after so many looks from `arm`."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.looks = 0

    def arm(self, looks: int) -> None:
        self.left, self.looks = looks, 0

    def disarm(self) -> None:
        self.left = None

    def look(self) -> Look:
        self.looks += 1
        here = self.left is not None and self.looks > self.left
        return Look(foreign=(DESKTOP,) if here else ())

    def holders(self, thread_ids: Collection[str]) -> dict[str, Writer]:
        return {}


def codex_processes(mark: str) -> Sequence[str]:
    return [argv for argv in marked_processes(mark).values() if "app-server" in argv]


async def test_a_desktop_opening_at_any_step_of_an_admission_leaves_nothing_half_done(
    run_mark: str,
) -> None:
    """The desktop appears one look later each time, until the turn was started."""
    watch = DesktopAtLook()
    refusals = 0
    with trio.fail_after(240):
        async with open_codex_home() as home:
            codex = codex_binaries()[BUNDLED]
            async with open_foreign(codex, home.environ) as foreign:
                thread = await foreign.start_thread(home.workspace, "theirs")
            async with (
                open_real_agent(home, watch=watch, idle_s=1) as house,
                open_local(house) as client,
            ):
                asked = len(home.model.requests)
                params = send_params(thread, "ours", key="same-key", wait_ms=0)
                for looks in range(12):
                    watch.arm(looks)
                    try:
                        await client.call(TURN_START, params)
                        break
                    except CodexUnavailable:
                        refusals += 1
                    await nothing_is_left(home.home, run_mark)
                    assert len(home.model.requests) == asked, "the model was asked"
                    watch.disarm()
                    await knock_until_open(client, thread)
                else:
                    pytest.fail("the door looks more often than there are steps")
                assert refusals >= 4, "start, load, act: the door looks at each"
                await wait_lease(client, thread, LeaseState.NONE)
                assert len(home.model.requests) == asked + 1


async def knock_until_open(client: Client, thread: str) -> None:
    """Send with a wrong last turn: the door looks, then refuses one way or the other."""
    params = send_params(
        thread, "x", key="knock", wait_ms=0, expected_last_turn_id="not-this"
    )
    while True:
        try:
            await client.call(TURN_START, params)
        except CodexUnavailable:
            continue
        except Conflict:
            return


async def nothing_is_left(home: Path, mark: str) -> None:
    """Our writer is gone (the reader stays), and nobody holds the thread's lock."""
    with trio.fail_after(240):
        while len(codex_processes(mark)) > 1 or lock_files(home):
            await trio.lowlevel.checkpoint()
