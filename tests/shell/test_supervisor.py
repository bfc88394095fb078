"""The reader's life, and what clients are told of it."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from adapter.errors import ChildExitedError
from tests.support.door import open_house
from tests.support.fake_runtime import FakeRuntime
from transport.errors import CodexUnavailable
from transport.protocol.events import RuntimeChanged
from transport.protocol.gateway import RuntimePhase


def always_dies(runtime: FakeRuntime, times: int) -> None:
    def die() -> None:
        raise ChildExitedError("codex reader", 1, "no such config")

    for _ in range(times):
        runtime.at("reader.open", die)


async def test_a_dead_reader_is_started_again_and_everybody_is_told(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.readers[0].die()
        await wait_all_tasks_blocked()
        state = house.door.supervisor.state
        assert state.state is RuntimePhase.RESTARTING
        assert state.next_try_at is not None
        with pytest.raises(CodexUnavailable) as caught:
            _ = house.door.supervisor.reader
        assert caught.value.retryable
        await trio.sleep(1)
        assert house.door.supervisor.state.state is RuntimePhase.READY
        told = [event.data for event in house.named("runtime/changed")]
        phases = [
            data.runtime.state for data in told if isinstance(data, RuntimeChanged)
        ]
        assert phases == ["ready", "restarting", "ready"]
        gates = [event.data.wire()["gate"] for event in house.named("gate/changed")]
        assert [gate.get("reason") for gate in gates] == [None, "runtimeDown", None]


async def test_an_agent_without_a_runtime_starts_and_says_why(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    always_dies(runtime, 1_000)
    async with open_house(tmp_path, runtime=runtime) as house:
        await trio.sleep(60)
        told = [event.data for event in house.named("runtime/changed")]
        assert RuntimePhase.FAILED in [
            data.runtime.state for data in told if isinstance(data, RuntimeChanged)
        ]
        state = house.door.supervisor.state
        assert state.state is not RuntimePhase.READY
        assert state.error == "codex reader ended with 1"
        assert "no such config" in (house.door.supervisor.owner_state.error or "")
        # Few starts a minute: a process that cannot live is not started in a loop.
        assert 6 <= len(runtime.log) <= 20
        assert not house.door.keeper.is_open


async def test_a_start_waits_while_a_desktop_starts(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        waits = [2.0, 1.0, 0.0]
        house.door.supervisor.hold_s = lambda: waits.pop(0)
        house.runtime.readers[0].die()
        await trio.sleep(2)
        assert not house.door.supervisor.is_up
        await trio.sleep(3)
        assert house.door.supervisor.is_up
