"""An Agent killed in the middle of an act, and what the next one makes of the repeat."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import NoAnswerError
from tests.support.door import open_house
from tests.support.fake_runtime import FakeRuntime
from tests.support.keyed_acts import new, say
from tests.support.mutations import KEY
from tests.support.runs_in_turn import MortalStore, next_run, sent
from transport.errors import Internal, OutcomeUnknown, Refusal

# (the moment of the kill, whether Codex has the message, whether a repeat sends it)
STAGES = {
    "before it is handed": ("writer.open", False, True),
    "handed, and not sent": ("start_turn", False, False),
    "sent, and not answered": ("start_turn:done", True, False),
}


@pytest.mark.parametrize("stage", STAGES)
async def test_an_agent_killed_at_any_stage_sends_no_message_twice(
    stage: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    moment, arrived, again = STAGES[stage]
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    store = MortalStore.open(tmp_path / "ledger.sqlite")
    with trio.CancelScope() as scope:

        def kill() -> None:
            store.killed = True
            scope.cancel(reason="killed")
            raise NoAnswerError("turn/start")

        async with open_house(tmp_path, runtime=runtime, store=store) as house:
            runtime.at(moment, kill)
            with pytest.raises(Refusal):  # nobody is there to hear it
                await say(house)
    assert sent(runtime) == ([("go on", KEY)] if arrived else [])
    after = next_run(tmp_path, runtime)
    async with open_house(tmp_path, runtime=runtime, store=after) as house:
        if arrived or again:
            first = await say(house)
            assert (await say(house)).sent.id == first.sent.id
        else:
            for _ in range(2):
                with pytest.raises(OutcomeUnknown) as caught:
                    await say(house)
                assert caught.value.data["newTurns"] == 0
        assert sent(runtime).count(("go on", KEY)) == (1 if arrived or again else 0)


@pytest.mark.parametrize(
    ("stage", "named"),
    [("start_thread", False), ("start_thread:done", False), ("start_turn", True)],
)
async def test_a_new_thread_that_had_no_name_when_the_agent_died_is_made_by_the_repeat(
    stage: str, named: bool, tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    store = MortalStore.open(tmp_path / "ledger.sqlite")

    def kill() -> None:
        store.killed = True

    async with open_house(tmp_path, runtime=runtime, store=store) as house:
        runtime.at(stage, kill)
        if named:  # its process goes on for a moment, and hands the message over
            await new(house)
        else:
            with pytest.raises(Internal):  # nothing is sent that is not on the disk
                await new(house)
            assert sent(runtime) == []
    runtime.threads.clear()  # its first turn was not stored
    after = next_run(tmp_path, runtime)
    async with open_house(tmp_path, runtime=runtime, store=after) as house:
        if named:
            with pytest.raises(OutcomeUnknown):
                await new(house)
        else:
            await new(house)
        assert sent(runtime) == [("begin", KEY)]


async def test_an_agent_killed_once_the_outcome_is_recorded_tells_it_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    async with open_house(tmp_path, runtime=runtime) as house:
        first = await say(house)
    after = next_run(tmp_path, runtime)
    async with open_house(tmp_path, runtime=runtime, store=after) as house:
        runtime.log.clear()
        assert await say(house) == first
        assert runtime.log == ["reader.open"] or not runtime.log  # it asked nobody
