"""The wall clock is set: days ahead, hours back, while an Agent runs or is down."""

import errno
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import NoReturn

import pytest
import trio
from trio.testing import MockClock

from adapter.approvals.approvals import ApprovalLedger
from agent.clocks import instant
from agent.files.blob_files import BlobFiles
from agent.files.blobs import Blobs
from agent.files.uploads import Uploads
from agent.records.ages import Ages, Instant
from agent.records.store import Store
from tests.support import codex_says as says
from tests.support.door import LOCAL, House, device, inline, open_house, send
from tests.support.fake_runtime import FakeRuntime
from tests.support.fake_threads import AT
from tests.support.pictures import png
from transport.errors import ApprovalClosed, Conflict, NotFound
from transport.protocol.approvals import ApprovalState
from transport.protocol.blobs import (
    BlobBeginParams,
    BlobChunkParams,
    BlobCommitParams,
)
from transport.protocol.events import ApprovalRequested, Notice
from transport.protocol.turns import TurnStartResult

DAY_MS = 24 * 3_600_000
KEY = "key-0123456789abcdef"


@dataclass
class Machine:
    """Clocks of a machine: time passes with trio's, the wall clock can be set."""

    set_by_ms: int = 0
    boot: str = "b1"
    booted_s: float = 0.0

    def clocks(self) -> Instant:
        now = trio.current_time()
        up = round((now - self.booted_s) * 1_000)
        wall = AT + round(now * 1_000) + self.set_by_ms
        return Instant(wall=wall, boot=self.boot, up=up)

    def restart(self, *, off_ms: int) -> None:
        self.boot, self.booted_s = f"{self.boot}+", trio.current_time()
        self.set_by_ms += off_ms


def starved(_path: Path) -> NoReturn:
    raise OSError(errno.EMFILE, "too many open files")


async def start(house: House) -> TurnStartResult:
    return await house.door.admission.start_turn(LOCAL, send())


def sent(runtime: FakeRuntime) -> int:
    return sum(len(writer.sent) for writer in runtime.writers)


@pytest.mark.parametrize("days", [2, -2])
async def test_a_finished_key_is_kept_for_a_day_however_the_clock_is_set(
    days: int, tmp_path: Path, autojump_clock: MockClock
) -> None:
    machine = Machine()
    async with open_house(tmp_path, clocks=machine.clocks) as house:
        house.runtime.add("thr", "t1")
        first = await start(house)
        house.runtime.live[0].finish_turn()
        machine.set_by_ms += days * DAY_MS
        await house.door.ledger.prune()
        await trio.sleep(23 * 3_600)
        await house.door.ledger.prune()
        assert await start(house) == first
        assert sent(house.runtime) == 1
        await trio.sleep(2 * 3_600)
        await house.door.ledger.prune()
        with pytest.raises(Conflict):  # a day has passed: the key is free again
            await house.door.admission.start_turn(LOCAL, send(expected="t0"))


@pytest.mark.parametrize("days", [2, -2])
@pytest.mark.parametrize("rebooted", [False, True])
async def test_a_key_is_kept_though_the_clock_was_set_while_nothing_ran(
    days: int, rebooted: bool, tmp_path: Path, autojump_clock: MockClock
) -> None:
    machine = Machine()
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    async with open_house(tmp_path, runtime=runtime, clocks=machine.clocks) as house:
        await house.door.ledger.prune()
        first = await start(house)
    if rebooted:
        machine.restart(off_ms=days * DAY_MS)
    else:
        machine.set_by_ms += days * DAY_MS
    store = Store.open(tmp_path / "ledger.sqlite")
    async with open_house(
        tmp_path, runtime=runtime, store=store, clocks=machine.clocks
    ) as house:
        await house.door.ledger.prune()
        assert await start(house) == first
    assert sent(runtime) == 1


def notices(house: House) -> list[str]:
    found = [event.data for event in house.named("notice")]
    return [one.code for one in found if isinstance(one, Notice)]


async def queue(house: House) -> None:
    params = send(text="later", delivery="queue")
    result = await house.door.admission.start_turn(LOCAL, params)
    assert result.queued is not None


async def test_a_queued_message_is_not_sent_after_its_day_though_the_clock_went_back(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    machine = Machine()
    async with open_house(tmp_path, clocks=machine.clocks) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()
        await queue(house)
        machine.set_by_ms -= 5 * DAY_MS
        await trio.sleep(23 * 3_600)
        assert len(house.door.backlog.book) == 1
        await trio.sleep(2 * 3_600)
        assert notices(house) == ["queueExpired"]
        await house.close_desktop()
        await trio.sleep(600)
        assert sent(house.runtime) == 0


async def test_a_queued_message_is_not_dropped_because_the_clock_went_ahead(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    machine = Machine()
    async with open_house(tmp_path, clocks=machine.clocks) as house:
        house.runtime.add("thr", "t1")
        house.see_desktop()
        await queue(house)
        machine.set_by_ms += 5 * DAY_MS
        await house.close_desktop()
        await trio.sleep(600)
        assert notices(house) == []
        assert sent(house.runtime) == 1


async def test_a_queued_message_is_not_sent_days_later_by_a_machine_that_was_off(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    machine = Machine()
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    async with open_house(tmp_path, runtime=runtime, clocks=machine.clocks) as house:
        await house.door.ledger.prune()  # as at every start
        house.see_desktop()
        await queue(house)
    machine.restart(off_ms=3 * DAY_MS)
    store = Store.open(tmp_path / "ledger.sqlite")
    async with open_house(
        tmp_path, runtime=runtime, store=store, clocks=machine.clocks
    ) as house:
        await trio.sleep(600)
        assert notices(house) == ["queueExpired"]
    assert sent(runtime) == 0


@pytest.mark.parametrize("jump", [-3_600_000, 3_600_000])
def test_an_approval_ends_at_its_deadline_however_the_clock_is_set(jump: int) -> None:
    up = 0
    numbers = count()
    ledger = ApprovalLedger(
        mint=lambda: f"apr_{next(numbers)}", approval_ms=300_000, up_ms=lambda: up
    )
    command = "item/commandExecution/requestApproval"
    asked = ledger.asked(
        0, command, says.command_approval(), at=AT, item=None, root_thread_id="thr"
    )
    (event,) = asked.events
    assert isinstance(event.data, ApprovalRequested)  # type: ignore[union-attr] # of one kind
    approval = event.data.approval  # type: ignore[union-attr] # of one kind
    assert approval.expires_at == AT + 300_000
    up = 299_999
    assert ledger.expire(AT + jump) == ([], [])
    up = 300_000
    with pytest.raises(ApprovalClosed):
        ledger.reply_to(
            approval.id,
            digest=approval.digest,
            choice="allow",
            decided_by="phone",
            at=AT + jump,
        )
    replies, _ = ledger.expire(AT + jump)
    assert len(replies) == 1
    ended = ledger.get(approval.id)
    assert ended is not None
    assert ended.state is ApprovalState.EXPIRED


@pytest.mark.parametrize("days", [5, -5])
async def test_an_upload_is_kept_for_a_day_however_the_clock_is_set(
    days: int, tmp_path: Path, autojump_clock: MockClock
) -> None:
    machine = Machine()
    ages = Ages.begin(machine.clocks())
    files = BlobFiles(tmp_path / "uploads")

    def dated() -> int:
        return ages.until(machine.clocks()).most

    uploads = Uploads(
        files, now_ms=dated, now_s=lambda: machine.clocks().up / 1_000, run=inline
    )
    blobs = Blobs(files, now_ms=dated, run=inline)
    phone, content = device(), png()
    begun = await uploads.begin(
        phone,
        BlobBeginParams(
            name="a.png",
            size=len(content),
            sha256=sha256(content).hexdigest(),
            media_type="image/png",
        ),
    )
    chunk = BlobChunkParams(upload_id=begun.upload_id, offset=0, content=content)
    await uploads.chunk(phone, chunk)
    done = await uploads.commit(phone, BlobCommitParams(upload_id=begun.upload_id))
    machine.set_by_ms += days * DAY_MS
    await trio.sleep(23 * 3_600)
    assert (await blobs.read(phone, done.blob_id, 0, 10)).total == len(content)
    await trio.sleep(2 * 3_600)
    with pytest.raises(NotFound):
        await blobs.read(phone, done.blob_id, 0, 10)


async def test_a_key_is_kept_though_no_descriptor_is_left_to_look_at_a_clock(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that is up for a month, which is not how old the key is."""
    monkeypatch.setattr("agent.clocks.boot_s", lambda: 30 * DAY_MS / 1_000)
    async with open_house(tmp_path, clocks=instant) as house:
        house.runtime.add("thr", "t1")
        first = await start(house)
        with monkeypatch.context() as patched:
            patched.setattr(Path, "read_text", starved)
            await house.door.ledger.prune()
        await house.door.ledger.prune()
        assert await start(house) == first
        assert sent(house.runtime) == 1
