"""Our door and another codex on one CODEX_HOME: never two writers, nothing forgotten."""

import os
from pathlib import Path

import pytest
import trio

from agent.door import Door
from tests.support.codex import (
    BUNDLED,
    WITHOUT_LOCK,
    CodexHome,
    codex_binaries,
    locking_versions,
    open_codex_home,
)
from tests.support.door import LOCAL, send
from tests.support.fake_desktop import APP, open_program, place, shell
from tests.support.foreign import ForeignRefusedError, open_foreign
from tests.support.real_door import open_door, wait_open
from transport.errors import CodexUnavailable, ThreadOwnedElsewhere
from transport.protocol.gateway import LeaseState
from transport.protocol.threads import ThreadListParams, ThreadReadParams, ThreadStatus
from transport.protocol.turns import TurnStatus

pytestmark = pytest.mark.codex
PATIENCE_S = 240
needs_old = pytest.mark.skipif(
    WITHOUT_LOCK not in codex_binaries(), reason=f"codex {WITHOUT_LOCK} is not here"
)


def key(number: int) -> str:
    return f"key-number-{number}-0123456789"


def heard(home: CodexHome) -> list[str]:
    """What people said in the model's newest request; codex adds notes of its own."""
    texts = home.model.requests[-1].user_texts
    return [text for text in texts if not text.startswith("<")]


async def turn_ended(door: Door, thread_id: str) -> None:
    lease = door.leases.lease_of(thread_id)
    if lease is not None:
        await lease.started_writer.wait_idle()


@pytest.mark.parametrize("version", locking_versions())
async def test_a_thread_that_another_codex_holds_is_refused_by_its_name_then_continued(
    version: str,
) -> None:
    with trio.fail_after(PATIENCE_S):
        async with open_codex_home() as home, open_door(home) as door:
            codex = codex_binaries()[version]
            async with open_foreign(codex, home.environ) as foreign:
                thread_id = await foreign.start_thread(home.workspace, "from afar")
                await wait_open(door)  # its version is asked for, which takes a moment
                with pytest.raises(ThreadOwnedElsewhere) as caught:
                    params = send(thread_id, "and from here", key=key(1), wait_ms=1_000)
                    await door.admission.start_turn(LOCAL, params)
                assert caught.value.data["writer"]["pid"] == foreign.pid
                assert str(foreign.pid) in caught.value.message
                read = await door.reading.thread_read(
                    LOCAL, ThreadReadParams(thread_id=thread_id)
                )
                assert read.thread.lease is LeaseState.ELSEWHERE
                assert read.thread.writer is not None
                assert read.thread.writer.pid == foreign.pid
                assert [turn.status for turn in read.turns] == [TurnStatus.COMPLETED]
                await foreign.turn(thread_id, "something that only the other one saw")
            # The other one is gone: what it added is known to our next turn.
            result = await door.admission.start_turn(
                LOCAL, send(thread_id, "and from here", key=key(1), wait_ms=20_000)
            )
            await turn_ended(door, thread_id)
            assert result.sent.thread_id == thread_id
            assert heard(home)[-3:] == [
                "from afar",
                "something that only the other one saw",
                "and from here",
            ]


async def test_a_running_foreign_turn_is_inferred_to_run() -> None:
    with trio.fail_after(PATIENCE_S):
        async with open_codex_home() as home, open_door(home) as door:
            codex = codex_binaries()[BUNDLED]
            async with open_foreign(codex, home.environ) as foreign:
                thread_id = await foreign.start_thread(home.workspace, "first")
                listed = await door.reading.thread_list(LOCAL, ThreadListParams())
                assert [row.id for row in listed.threads] == [thread_id]
                assert listed.threads[0].lease is LeaseState.ELSEWHERE
                read = await door.reading.thread_read(
                    LOCAL, ThreadReadParams(thread_id=thread_id)
                )
                assert read.thread.status is ThreadStatus.IDLE
                assert read.thread.inferred


async def test_after_our_lease_the_other_codex_has_the_thread_at_once() -> None:
    with trio.fail_after(PATIENCE_S):
        async with open_codex_home() as home, open_door(home, idle_s=1.0) as door:
            codex = codex_binaries()[BUNDLED]
            async with open_foreign(codex, home.environ) as foreign:
                thread_id = await foreign.start_thread(home.workspace, "from afar")
            params = send(thread_id, "ours", key=key(1), wait_ms=20_000)
            await door.admission.start_turn(LOCAL, params)
            async with open_foreign(codex, home.environ) as foreign:
                with pytest.raises(ForeignRefusedError, match="active writer"):
                    await foreign.resume(thread_id)
                lease = door.leases.lease_of(thread_id)
                assert lease is not None
                await lease.ended.wait()
                assert door.leases.state(thread_id) is LeaseState.NONE
                await foreign.resume(thread_id)  # the first try succeeds
                await foreign.turn(thread_id, "theirs again")
                assert heard(home)[-2:] == [
                    "ours",
                    "theirs again",
                ]


@needs_old
async def test_a_codex_without_locks_closes_the_gate_while_it_lives() -> None:
    with trio.fail_after(PATIENCE_S):
        async with open_codex_home() as home, open_door(home) as door:
            codex = codex_binaries()[WITHOUT_LOCK]
            async with open_foreign(codex, home.environ) as foreign:
                thread_id = await foreign.start_thread(home.workspace, "from the past")
                with pytest.raises(CodexUnavailable) as caught:
                    params = send(thread_id, "ours", key=key(1))
                    await door.admission.start_turn(LOCAL, params)
                gate = caught.value.data["gate"]
                assert gate["reason"] == "writerWithoutLock"
                assert gate["writer"]["pid"] == foreign.pid
                await foreign.turn(thread_id, "more from the past")
            result = await door.admission.start_turn(
                LOCAL, send(thread_id, "ours", key=key(1), wait_ms=20_000)
            )
            await turn_ended(door, thread_id)
            assert result.sent.thread_id == thread_id
            assert heard(home)[-3:] == [
                "from the past",
                "more from the past",
                "ours",
            ]


@needs_old
async def test_what_a_codex_without_locks_adds_under_our_lease_is_known_afterwards() -> (
    None
):
    """No lock stops it from writing into a thread that we hold: the gate ends our idle
    writer, and the next turn is not made from an old memory."""
    with trio.fail_after(PATIENCE_S):
        async with open_codex_home() as home, open_door(home) as door:
            old = codex_binaries()[WITHOUT_LOCK]
            async with open_foreign(old, home.environ) as foreign:
                thread_id = await foreign.start_thread(home.workspace, "one")
            params = send(thread_id, "two", key=key(1), wait_ms=20_000)
            await door.admission.start_turn(LOCAL, params)
            lease = door.leases.lease_of(thread_id)
            assert lease is not None
            async with open_foreign(old, home.environ) as foreign:
                await foreign.resume(thread_id)
                await foreign.turn(thread_id, "three, past our back")
                await lease.ended.wait()
            params = send(thread_id, "four", key=key(2), wait_ms=20_000)
            await door.admission.start_turn(LOCAL, params)
            await turn_ended(door, thread_id)
            assert heard(home)[-4:] == ["one", "two", "three, past our back", "four"]


async def test_while_a_desktop_lives_nothing_is_sent_and_everything_can_be_read(
    tmp_path: Path,
) -> None:
    with trio.fail_after(PATIENCE_S):
        async with open_codex_home() as home, open_door(home) as door:
            codex = codex_binaries()[BUNDLED]
            async with open_foreign(codex, home.environ) as foreign:
                thread_id = await foreign.start_thread(home.workspace, "one")
            asked = len(home.model.requests)
            argv = shell(place(tmp_path, APP))
            environ = {**os.environ, "CODEX_HOME": str(home.home)}
            async with open_program(argv, environ) as desktop:
                with pytest.raises(CodexUnavailable) as caught:
                    params = send(thread_id, "two", key=key(1))
                    await door.admission.start_turn(LOCAL, params)
                assert caught.value.data["gate"]["writer"]["pid"] == desktop.pid
                read = await door.reading.thread_read(
                    LOCAL, ThreadReadParams(thread_id=thread_id)
                )
                assert len(read.turns) == 1
            assert len(home.model.requests) == asked
            params = send(thread_id, "two", key=key(1), wait_ms=20_000)
            await door.admission.start_turn(LOCAL, params)
            await turn_ended(door, thread_id)
            assert heard(home)[-2:] == ["one", "two"]
