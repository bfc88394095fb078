"""What a full disk did not take is written later, and not into what runs now."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import trio

from agent.records.key_row import KeyRow, RowState
from agent.records.store import Store
from agent.records.unsaved import Unsaved
from tests.support.door import inline

ROW = KeyRow(
    device="d1",
    key="k" * 16,
    digest="abc",
    method="turn/start",
    state=RowState.HANDED,
    thread="thr",
    last_turn="t1",
    turn=None,
    outcome=None,
    at=1,
)
KEY = (ROW.device, ROW.key)
OTHER = replace(ROW, key="o" * 16)

T = TypeVar("T")


async def test_the_row_of_a_call_that_runs_is_not_dropped_for_an_older_try(
    tmp_path: Path,
) -> None:
    store = Store.open(tmp_path / "ledger.sqlite")
    unsaved = Unsaved(store, run=inline)
    unsaved.keep(KEY, None)  # the first try did not happen, said a full disk
    store.hand(ROW)  # by the second
    await unsaved.catch_up({KEY})
    assert store.find(*KEY) == ROW
    await unsaved.catch_up(())
    assert (store.find(*KEY), KEY in unsaved) == (None, False)
    store.close()


async def test_what_a_repeat_came_to_meanwhile_is_not_undone_by_an_older_row(
    tmp_path: Path,
) -> None:
    store = Store.open(tmp_path / "ledger.sqlite")
    begun, go_on = trio.Event(), trio.Event()

    async def slowly(work: Callable[[], T], /) -> T:
        begun.set()
        await go_on.wait()
        return work()

    unsaved = Unsaved(store, run=slowly)
    unsaved.keep((OTHER.device, OTHER.key), OTHER)
    unsaved.keep(KEY, None)  # the first try did not happen, said a full disk
    async with trio.open_nursery() as nursery:
        nursery.start_soon(unsaved.catch_up, ())
        await begun.wait()  # it writes the other one
        done = replace(ROW, state=RowState.DONE, outcome="{}")
        store.put(done)  # a repeat of it comes, is carried out, and has ended
        unsaved.saved(KEY)
        go_on.set()
    assert store.find(*KEY) == done
    store.close()
