"""What a full disk did not take is written later, and not into what runs now."""

from pathlib import Path

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
