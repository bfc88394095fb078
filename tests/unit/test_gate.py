"""When the gate is closed, for whom, and what is said about it."""

import pytest

from agent.gate.engines import Foreign, Look, Named, Role
from agent.gate.gate import Gate, World
from transport.protocol.gateway import GatePosition, GateReason, WriterKind


def foreign(
    kind: WriterKind = WriterKind.DESKTOP,
    *,
    pid: int = 7,
    locks: bool = False,
    role: Role = Role.ENGINE,
) -> Foreign:
    named = Named(role=role, kind=kind, name=f"the {kind}", sure=True)
    return Foreign(pid=pid, since=1_000, named=named, locks=locks)


def world(
    *found: Foreign,
    up: bool = True,
    ours_lock: bool = True,
    read_only: bool = False,
    locked: bool = False,
) -> World:
    return World(
        look=Look(foreign=found),
        runtime_up=up,
        ours_lock=ours_lock,
        read_only=read_only,
        locked=locked,
    )


def opened() -> Gate:
    gate = Gate(at_ms=0)
    assert gate.observe(world(), at_ms=1, now_s=0.0) is not None
    assert gate.is_open
    return gate


def test_it_starts_closed_because_nobody_has_looked() -> None:
    gate = Gate(at_ms=5)
    assert not gate.is_open
    assert gate.state.reason is GateReason.RUNTIME_DOWN


def test_a_desktop_closes_it_at_the_first_look_and_is_named() -> None:
    gate = opened()
    state = gate.observe(world(foreign()), at_ms=9, now_s=1.0)
    assert state is not None
    assert state.state is GatePosition.READ_ONLY
    assert state.reason is GateReason.DESKTOP_ACTIVE
    assert state.writer is not None
    assert state.writer.pid == 7
    assert state.since == 9
    assert state.retry_after_ms is not None


def test_a_look_that_failed_closes_it_until_one_sees_again() -> None:
    gate = opened()
    blind = World(look=Look(blind=True), runtime_up=True, ours_lock=True)
    gate.observe(blind, at_ms=9, now_s=1.0)
    assert gate.state.reason is GateReason.WRITER_WITHOUT_LOCK
    assert gate.state.writer is None
    refusal = gate.refusal("thr")
    assert refusal.retryable
    assert "cannot be seen" in str(refusal)
    gate.observe(world(), at_ms=10, now_s=1.1)
    assert gate.is_open


def test_the_desktops_app_is_named_rather_than_its_engine() -> None:
    gate = opened()
    app = foreign(pid=8, role=Role.APP)
    gate.observe(world(foreign(), app), at_ms=9, now_s=1.0)
    assert gate.state.writer is not None
    assert gate.state.writer.pid == 8


def test_it_opens_only_after_two_looks_that_far_apart() -> None:
    gate = opened()
    gate.observe(world(foreign()), at_ms=1, now_s=1.0)
    assert gate.observe(world(), at_ms=2, now_s=2.0) is None
    assert gate.observe(world(), at_ms=3, now_s=2.1) is None
    assert gate.refusal().retry_after_ms == 300
    assert not gate.is_open
    state = gate.observe(world(), at_ms=4, now_s=2.25)
    assert state is not None
    assert state.state is GatePosition.OPEN


def test_a_desktop_that_restarts_itself_never_opens_it() -> None:
    gate = opened()
    gate.observe(world(foreign(pid=7)), at_ms=1, now_s=1.0)
    assert gate.observe(world(), at_ms=2, now_s=1.2) is None
    state = gate.observe(world(foreign(pid=8)), at_ms=3, now_s=1.4)
    assert state is not None
    assert state.writer is not None
    assert state.writer.pid == 8
    assert gate.observe(world(), at_ms=4, now_s=1.5) is None  # counted anew
    assert gate.observe(world(), at_ms=5, now_s=1.7) is None


def test_an_engine_with_locks_leaves_it_open_where_ours_takes_them_too() -> None:
    gate = opened()
    with_locks = foreign(WriterKind.CLI, locks=True)
    assert gate.observe(world(with_locks), at_ms=1, now_s=1.0) is None
    assert gate.is_open
    state = gate.observe(world(with_locks, ours_lock=False), at_ms=2, now_s=2.0)
    assert state is not None
    assert state.reason is GateReason.WRITER_WITHOUT_LOCK


@pytest.mark.parametrize("kind", [WriterKind.CLI, WriterKind.IDE, WriterKind.UNKNOWN])
def test_an_engine_without_locks_closes_it(kind: WriterKind) -> None:
    gate = opened()
    state = gate.observe(world(foreign(kind)), at_ms=1, now_s=1.0)
    assert state is not None
    assert state.reason is GateReason.WRITER_WITHOUT_LOCK


def test_what_the_owner_said_comes_before_what_others_do() -> None:
    gate = opened()
    state = gate.observe(world(foreign(), read_only=True), at_ms=1, now_s=1.0)
    assert state is not None
    assert state.reason is GateReason.CONFIGURED
    assert gate.refusal().retryable is False
    both = world(foreign(), read_only=True, locked=True)
    state = gate.observe(both, at_ms=2, now_s=2.0)
    assert state is not None
    assert state.reason is GateReason.LOCKED
    assert gate.refusal().retryable is False


def test_a_dead_runtime_closes_it_and_a_living_one_opens_it_at_once() -> None:
    gate = opened()
    state = gate.observe(world(up=False), at_ms=1, now_s=1.0)
    assert state is not None
    assert state.reason is GateReason.RUNTIME_DOWN
    state = gate.observe(world(), at_ms=2, now_s=1.01)
    assert state is not None
    assert state.state is GatePosition.OPEN


def test_nothing_is_told_while_nothing_changes() -> None:
    gate = opened()
    gate.observe(world(foreign()), at_ms=1, now_s=1.0)
    assert gate.observe(world(foreign()), at_ms=2, now_s=2.0) is None
    assert gate.state.since == 1


def test_a_refusal_names_the_writer_says_what_to_do_and_when_to_come_back() -> None:
    gate = opened()
    gate.observe(world(foreign()), at_ms=1, now_s=1.0)
    refusal = gate.refusal("thr")
    assert refusal.retryable
    assert refusal.retry_after_ms == 5_000
    assert refusal.data["threadId"] == "thr"
    assert refusal.data["gate"]["writer"]["pid"] == 7
    assert "process 7" in refusal.message
    assert "send again" in refusal.message


def test_an_engine_that_turns_out_to_take_locks_opens_it_at_once() -> None:
    gate = opened()
    gate.observe(world(foreign(WriterKind.CLI)), at_ms=1, now_s=1.0)
    known = foreign(WriterKind.CLI, locks=True)
    state = gate.observe(world(known), at_ms=2, now_s=1.01)
    assert state is not None
    assert state.state is GatePosition.OPEN
