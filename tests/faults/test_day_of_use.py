"""A day of use in minutes: nothing grows but what is meant to, and that is bounded."""

import gc
import os
import resource
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import trio

from agent.events.journal import Journal
from agent.limits import AUDIT_BYTES, AUDIT_FILES
from agent.reading.output_cache import OutputCache
from tests.support.agents import (
    Device,
    House,
    client_info,
    open_agent,
    open_owner,
    pair_device,
)
from tests.support.codex import open_codex_home
from tests.support.fake_writer import FakeWriter
from tests.support.raw_devices import WIDE_DOORS
from tests.support.real_agent import send_to_end, status
from tests.support.served_agent import open_owner_of, open_served_agent
from transport.client import Client, open_client
from transport.protocol import admin, approvals, blobs, threads, turns
from transport.protocol import methods as rows
from transport.protocol.items import Command, ItemStatus
from transport.protocol.turns import TextInput

pytestmark = pytest.mark.long
MIB = 1024 * 1024
THREADS = 12
# Cycles of ten turns each, until every table has come to its bound. What grows till then
# (tracemalloc, after 150 turns): packed events of the ring, some 3 MB with their entries;
# 1,000 approvals that ended (RESOLVED_KEPT, about 3 KB each as models) and as many given
# answers; texts in the cache of outputs; 64 turns told of each thread (TURNS_TOLD). Ids of
# turns that were ours (OURS_KEPT) come to theirs after 10,000 turns: 1 MB more.
WARM = 110
CYCLES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a process takes: bytes of memory, descriptors, Trio's tasks."""

    rss: int
    descriptors: int
    tasks: int


def use_of(pid: int) -> Use:
    gc.collect()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Use(
        rss=pages * resource.getpagesize(),
        descriptors=len(os.listdir(f"/proc/{pid}/fd")),
        tasks=trio.lowlevel.current_statistics().tasks_living,
    )


@asynccontextmanager
async def open_phone(house: House, device: Device) -> AsyncGenerator[Client]:
    async with open_client(house.target(device), client_info("p", "p" * 32)) as phone:
        yield phone


class Day:
    """What a person does, again and again, with a codex that the test plays."""

    def __init__(self, house: House, owner: Client, device: Device) -> None:
        self._house = house
        self._owner = owner
        self._device = device
        self._count = 0

    async def cycles(self, number: int) -> None:
        """Each is a reconnect with ten turns, an upload, and now and then a pairing."""
        for _ in range(number):
            async with (
                open_phone(self._house, self._device) as phone,
                phone.subscribe("all") as events,
            ):
                await anext(events)
                for _ in range(10):
                    await self._turn(phone)
                await self._upload(phone)
            if self._count % 100 == 0:
                await self._pair_and_revoke()

    async def settle(self) -> None:
        """Return when no writer is left and only the owner is connected."""
        runtime = self._house.runtime
        while (await status(self._owner)).sessions > 1 or runtime.live:
            pass  # each is a round trip
        runtime.writers.clear()
        runtime.log.clear()

    async def _turn(self, phone: Client) -> None:
        self._count += 1
        thread = f"thr_{self._count % THREADS}"
        stored = self._house.runtime.threads[thread]
        del stored.turns[:-3]
        params = turns.TurnStartParams(
            thread_id=thread,
            input=[TextInput(type="text", text=f"message {self._count}")],
            request_key=f"key-{self._count:028d}",
        )
        turn = (await phone.call(rows.TURN_START, params)).sent
        writer = next(
            one for one in self._house.runtime.live if one.running_turn_id == turn.id
        )
        self._say_much(writer, turn.id)
        approval = writer.ask(command=f"command {self._count}")
        choice = "accept" if self._count % 2 else "decline"
        answer = approvals.ApprovalAnswerParams(
            approval_id=approval.id, digest=approval.digest, choice=choice
        )
        await phone.call(rows.APPROVAL_ANSWER, answer)
        writer.finish_turn()
        read = threads.ThreadReadParams(thread_id=thread)
        await phone.call(rows.THREAD_READ, read)

    def _say_much(self, writer: FakeWriter, turn_id: str) -> None:
        item_id = f"item-{self._count}"
        item = Command(
            id=item_id,
            turn_id=turn_id,
            status=ItemStatus.IN_PROGRESS,
            command="make",
            cwd="/work/app",
            output="",
            output_bytes=0,
            actions=[],
        )
        writer.begin_item(item)
        for _ in range(20):
            writer.delta(item_id, "x" * 500)
        writer.end_item(item)

    async def _upload(self, phone: Client) -> None:
        content = f"file {self._count % 50}".encode()
        begin = blobs.BlobBeginParams(
            name="a.txt",
            size=len(content),
            sha256=sha256(content).hexdigest(),
            media_type="text/plain",
        )
        upload = (await phone.call(rows.BLOB_BEGIN, begin)).upload_id
        piece = blobs.BlobChunkParams(upload_id=upload, offset=0, content=content)
        await phone.call(rows.BLOB_CHUNK, piece)
        await phone.call(rows.BLOB_COMMIT, blobs.BlobCommitParams(upload_id=upload))

    async def _pair_and_revoke(self) -> None:
        device = await pair_device(self._house, name=f"d{self._count}")
        revoke = admin.DeviceRevokeParams(device_id=device.id)
        await self._owner.call(rows.DEVICE_REVOKE, revoke)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def test_a_thousand_turns_leave_memory_tasks_and_descriptors_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ring and the cache of outputs are small here, so that they are full at once."""
    ring: Callable[[], Journal] = partial(Journal, max_bytes=MIB, max_events=2_000)
    cache: Callable[[], OutputCache] = partial(OutputCache, most=MIB)
    monkeypatch.setattr("agent.app.Journal", ring)
    monkeypatch.setattr("agent.door.OutputCache", cache)
    settings: dict[str, Any] = {"doors": WIDE_DOORS, "idle_s": 1.0}
    with trio.fail_after(420):
        async with (
            open_agent(tmp_path, **settings) as house,
            open_owner(house) as owner,
        ):
            for number in range(THREADS):
                house.runtime.add(f"thr_{number}", "t1")
            scopes = ("read", "write", "approve")
            device = await pair_device(house, scopes=scopes)
            day = Day(house, owner, device)
            await day.cycles(WARM)
            await day.settle()
            before = use_of(os.getpid())
            await day.cycles(CYCLES)
            await day.settle()
            after = use_of(os.getpid())
        assert after.rss - before.rss < 10 * MIB
        assert after.descriptors == before.descriptors
        assert after.tasks == before.tasks
        state = house.config.state_dir
        audits = sum(path.stat().st_size for path in state.glob("audit.jsonl*"))
        assert audits <= AUDIT_BYTES * AUDIT_FILES
        assert (state / "devices.json").stat().st_size < 64 * 1024
        assert size_of(state / "uploads") < MIB
        assert size_of(state) < 16 * MIB
        assert not list((state / "processes").glob("*"))


@pytest.mark.codex
async def test_an_agent_on_a_real_codex_is_as_small_after_many_turns_as_after_a_few() -> (
    None
):
    with trio.fail_after(420):
        async with (
            open_codex_home() as home,
            open_served_agent(home) as agent,
            open_owner_of(agent) as owner,
        ):
            made: list[str] = []
            for number in range(2):
                params = threads.ThreadStartParams(
                    cwd=str(home.workspace),
                    input=[TextInput(type="text", text="hello")],
                    request_key=f"new-{number:028d}",
                    wait_ms=20_000,
                )
                started = await owner.call(rows.THREAD_START, params, timeout_s=60)
                made.append(started.thread.id)

            async def turns_of(first: int, number: int) -> None:
                for count in range(first, first + number):
                    async with open_owner_of(agent) as client:
                        thread = made[count % 2]
                        key = f"turn-{count}"
                        await send_to_end(client, thread, "again", key=key)

            await turns_of(0, 15)
            before = use_of(agent.process.pid)
            await turns_of(15, 100)
            after = use_of(agent.process.pid)
            assert after.rss - before.rss < 10 * MIB
            assert abs(after.descriptors - before.descriptors) <= 2
            assert len(agent.app_servers()) <= 3
            agent.signal(signal.SIGTERM)
            assert await agent.wait() == 0
