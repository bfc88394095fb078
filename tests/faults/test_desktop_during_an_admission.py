"""Somebody opens Codex desktop while a mutation of ours is on its way, at each step.

It opens, closes and opens again within a second. Either nothing of the act has happened,
its key is free, and our writer is gone; or it has happened, once, and its key says so.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from agent.mutations.thread_wishes import Rename
from agent.records.key_row import RowState
from agent.records.store import Store
from tests.support.admission_steps import (
    ACTS,
    KEY,
    Act,
    SteppedRuntime,
    SteppedStore,
)
from tests.support.door import DESKTOP, LOCAL, House, open_house, send
from transport.errors import CodexUnavailable
from transport.protocol.thread_acts import ThreadRenameParams
from transport.protocol.turns import TurnStatus

OTHER_KEY = "a-second-message-0123456789abcdef"
RENAME_KEY = "a-name-of-it-0123456789abcdefghij"
MOST_STEPS = 40


def opens(house: House) -> None:
    house.open_desktop()


def is_seen(house: House) -> None:
    house.door.keeper.look()


def closes(house: House) -> None:
    house.watch.foreign.remove(DESKTOP)


Doings = Sequence[Callable[[House], None]]
DESKTOPS: dict[str, Doings] = {
    "opens": [opens],
    "opens and closes": [opens, is_seen, closes, is_seen],
    "opens, closes and opens again": [opens, is_seen, closes, is_seen, opens],
    "opens, closes and opens again between two looks": [opens, closes, opens],
}


def snapshot(house: House) -> Any:
    """All that an act of ours could have changed."""
    threads = {
        thread_id: (
            stored.thread.title,
            stored.thread.archived,
            [turn.id for turn in stored.turns],
            stored.settings,
            stored.goal and stored.goal.objective,  # a closed gate pauses it
        )
        for thread_id, stored in house.runtime.threads.items()
    }
    return threads, [text for one in house.runtime.writers for text in one.sent]


async def all_is_given_back(house: House) -> None:
    """What runs ends; then nobody of ours has a thread, while the desktop is there."""
    if DESKTOP not in house.watch.foreign:
        opens(house)
    is_seen(house)
    for writer in house.runtime.live:
        if writer.running_turn_id is not None:
            writer.finish_turn()
    with trio.fail_after(5):
        while house.runtime.live:  # noqa: ASYNC110 - the mock clock is what is advanced
            await trio.sleep(0.1)
    assert house.door.leases.rows() == []
    assert not [one for one in house.runtime.threads.values() if one.locked_by]


def row_state(folder: Path) -> RowState | None:
    store = Store.open(folder / "ledger.sqlite")
    try:
        row = store.find("local", KEY)
    finally:
        store.close()
    return row.state if row else None


def check_names_the_desktop(refusal: CodexUnavailable) -> None:
    assert refusal.retryable
    gate = refusal.data["gate"]
    assert gate["writer"]["pid"] == DESKTOP.pid


async def desktop_at(step: int, act: Act, desktop: Doings, folder: Path) -> bool:
    """Let the desktop do that at that step; return whether the act has that step."""
    folder.mkdir()
    runtime = SteppedRuntime()
    store = SteppedStore.open(folder / "ledger.sqlite")
    async with open_house(folder, runtime=runtime, store=store) as house:
        runtime.add("thr", "t1", "t2")
        if act.before is not None:
            await act.before(house)
        store.runtime = runtime

        before = snapshot(house)
        too_late = False

        def happens() -> None:
            nonlocal too_late
            too_late = snapshot(house) != before
            for doing in desktop:
                doing(house)

        runtime.arm(step, happens)
        try:
            result = await act.call(house)
        except CodexUnavailable as exc:
            check_names_the_desktop(exc)
            assert snapshot(house) == before, f"half done at {runtime.steps}"
            assert row_state(folder) is None, f"not free after {runtime.steps}"
            result = None
        reached = runtime.has_happened
        done = snapshot(house)
        if result is not None:
            is_there = DESKTOP in house.watch.foreign
            assert too_late or not is_there, f"beside the desktop: {runtime.steps}"
            assert done != before
            assert row_state(folder) is RowState.DONE
            assert await act.call(house) == result, "its key tells it again"
            assert snapshot(house) == done, "once"
        if result is not None or act.before is None:
            await all_is_given_back(house)
        if result is None:
            await settled(house)
            assert await act.call(house), "the key was free"
            assert snapshot(house) != before
        await all_is_given_back(house)
    return reached


async def settled(house: House) -> None:
    """The desktop is gone for good."""
    while DESKTOP in house.watch.foreign:
        closes(house)
    is_seen(house)
    await trio.sleep(0.3)
    is_seen(house)


QUICK = [
    "turn/start",
    "thread/start",
    "thread/fork",
    "thread/archive with a held writer",
]
CASES = [
    pytest.param(
        act,
        desktop,
        marks=() if act in QUICK and "again" in desktop[-6:] else pytest.mark.long,
    )
    for act in ACTS
    for desktop in DESKTOPS
]


@pytest.mark.parametrize(("act", "desktop"), CASES)
async def test_a_desktop_at_any_step_of_any_act_leaves_it_undone_or_done_once(
    act: str, desktop: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    for step in range(MOST_STEPS):
        folder = tmp_path / str(step)
        if not await desktop_at(step, ACTS[act], DESKTOPS[desktop], folder):
            break
    else:
        pytest.fail("an act has fewer steps")
    assert step >= 3, "it was looked at more than once"


async def test_a_second_message_is_told_of_a_closed_gate_while_the_first_is_on_its_way(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """It does not wait for the outcome of the first, which may take long."""
    answer = trio.Event()
    async with open_house(tmp_path) as house, trio.open_nursery() as nursery:
        house.runtime.add("thr", "t1")
        house.runtime.at("start_turn:done", answer.wait)
        nursery.start_soon(house.door.admission.start_turn, LOCAL, send(key=KEY))
        await wait_all_tasks_blocked()
        house.open_desktop()
        with trio.fail_after(0.1), pytest.raises(CodexUnavailable):
            await house.door.admission.start_turn(LOCAL, send(key=OTHER_KEY))
        params = ThreadRenameParams(thread_id="thr", name="New", request_key=RENAME_KEY)
        with trio.fail_after(0.1), pytest.raises(CodexUnavailable):
            await house.door.admission.fulfil(LOCAL, Rename(), params)
        answer.set()
    (writer,) = house.runtime.writers
    assert [text for text, _ in writer.sent] == ["go on"]
    assert house.runtime.threads["thr"].turns[-1].status is TurnStatus.INTERRUPTED
