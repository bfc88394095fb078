"""A device makes as many changes as are kept on record: who pays, and who does not."""

from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from agent.access.scopes import LOCAL as OWNER
from agent.limits import DONE_MS
from agent.records.ages import Instant
from agent.records.audit import Audit
from agent.records.row_counts import Room
from agent.records.store import Store
from tests.support.door import LOCAL, House, device, open_house, send, wall_ms
from transport.errors import Overloaded, Refusal
from transport.protocol.base import WireModel
from transport.protocol.queue import QueueDeleteParams, QueueListParams
from transport.protocol.turns import TurnInterruptParams, TurnStartParams

ROOM = Room(device=3, devices=5, owner=2)
QUIET = device(device_id="quiet")
HOG = device(device_id="hog")


@dataclass
class Machine:
    """Clocks that a test sets ahead, as if so much time had passed."""

    ahead_ms: int = 0

    def clocks(self) -> Instant:
        passed = round(trio.current_time() * 1_000) + self.ahead_ms
        return Instant(wall=wall_ms() + self.ahead_ms, boot="", up=passed)


def key(name: str) -> str:
    return name.ljust(32, "-")


def queued(name: str) -> TurnStartParams:
    return send("thr", name, key=key(name), delivery="queue")


def texts(house: House) -> list[str]:
    return [text for writer in house.runtime.writers for text, _ in writer.sent]


async def refusal(call: Awaitable[WireModel]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await call
    return caught.value


async def waiting(house: House) -> list[str]:
    """Return the messages of the Agent's queue."""
    answer = await house.door.acts.queue.waiting(LOCAL, QueueListParams())
    return [one.preview for one in answer.queue]


async def test_a_device_at_its_share_waits_and_no_key_of_anybody_is_forgotten(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    machine, store = Machine(), Store.open(tmp_path / "ledger.sqlite", room=ROOM)
    audit = Audit(tmp_path / "audit.jsonl", now_ms=wall_ms)
    async with open_house(
        tmp_path, store=store, audit=audit, clocks=machine.clocks
    ) as house:
        house.callers["hog"] = HOG
        house.runtime.add("thr", "t1")
        house.runtime.add("other", "t1")
        quiet = send("other", "quiet", key=key("quiet"))
        first = await house.door.admission.start_turn(QUIET, quiet)
        begun = await house.door.admission.start_turn(HOG, send(key=key("one")))
        waits = await house.door.admission.start_turn(HOG, queued("two"))
        undone = await house.door.admission.start_turn(HOG, queued("three"))
        writers, written = (
            len(house.runtime.writers),
            (tmp_path / "audit.jsonl").read_bytes(),
        )

        left_ms = 0
        for _ in range(3):  # the same, however often it is tried
            refused = await refusal(
                house.door.admission.start_turn(HOG, queued("four"))
            )
            assert isinstance(refused, Overloaded)
            assert refused.retryable
            assert refused.data == {"limit": 3}
            left_ms = refused.retry_after_ms or 0
            assert DONE_MS - 60_000 < left_ms <= DONE_MS + 1
        assert len(house.runtime.writers) == writers
        assert (tmp_path / "audit.jsonl").read_bytes() == written

        # What it did is told again; what only ends something happens, without a row.
        assert await house.door.admission.start_turn(HOG, queued("two")) == waits
        assert undone.queued is not None
        gone = QueueDeleteParams(
            queue_id=undone.queued.queue_id, request_key=key("delete")
        )
        await house.door.admission.delete_queued(HOG, gone)
        stop = TurnInterruptParams(
            thread_id="thr", turn_id=begun.sent.id, request_key=key("stop")
        )
        stopped = await house.door.admission.interrupt(HOG, stop)
        assert stopped.turn.status == "interrupted"
        assert store.find("hog", key("delete")) is None
        assert store.find("hog", key("stop")) is None
        await house.door.keys.catch_up()
        assert store.find("hog", key("stop")) is None

        # Nobody else feels it.
        assert await house.door.admission.start_turn(QUIET, quiet) == first
        house.runtime.writers[0].finish_turn()
        await house.door.admission.start_turn(LOCAL, send("other", key=key("owner")))

        # Its message that waits is sent, and when its day is over it may go on.
        await trio.sleep(60)
        assert texts(house).count("two") == 1
        assert await waiting(house) == []
        house.runtime.writers[1].finish_turn()
        machine.ahead_ms += left_ms - 120_000
        fourth = house.door.admission.start_turn(HOG, queued("four"))
        assert (await refusal(fourth)).data == {"limit": 3}
        machine.ahead_ms += 120_000
        await house.door.admission.start_turn(HOG, queued("four"))
        await trio.sleep(60)
        assert texts(house).count("four") == 1


async def test_devices_that_fill_the_ledger_together_leave_the_workstation_its_room(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    store = Store.open(tmp_path / "ledger.sqlite", room=ROOM)
    async with open_house(tmp_path, store=store) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()  # queueing passes a closed gate
        first = await house.door.admission.start_turn(HOG, queued("h0"))
        for name in ("h1", "h2"):
            await house.door.admission.start_turn(HOG, queued(name))
        for name in ("q0", "q1"):
            await house.door.admission.start_turn(QUIET, queued(name))
        for caller in (QUIET, device(device_id="new")):
            refused = await refusal(
                house.door.admission.start_turn(caller, queued("more"))
            )
            assert isinstance(refused, Overloaded)
            assert refused.data == {"limit": 5}
        for name in ("o0", "o1"):
            await house.door.admission.start_turn(LOCAL, queued(name))
        refused = await refusal(house.door.admission.start_turn(LOCAL, queued("o2")))
        assert refused.data == {"limit": 2}  # its own bound, at last
        assert await house.door.admission.start_turn(HOG, queued("h0")) == first
        assert store.find(OWNER, key("o0")) is not None
        assert len(await waiting(house)) == 7
