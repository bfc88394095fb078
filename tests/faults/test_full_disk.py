"""The disk is full at each durable write of a whole Agent, and then it has room again."""

import json
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support.agents import (
    Device,
    House,
    client_info,
    open_agent,
    open_owner,
    pair_device,
)
from tests.support.full_disk import full_disk
from transport.client import Client, EventSeen, Resumed, open_client
from transport.errors import Internal, KeyFileError, Refusal, UnreachableError
from transport.protocol import (
    admin,
    approvals,
    blobs,
    gateway,
    goals,
    thread_acts,
    threads,
    turns,
)
from transport.protocol import methods as rows
from transport.protocol.approvals import Approval, ApprovalState
from transport.protocol.methods import Method

SCOPES = ("read", "write", "approve")
PICTURE = b"some words"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a full disk did not take is tried again soon."""
    monkeypatch.setattr("agent.app.CATCH_UP_S", 0.05)


def key(name: str) -> str:
    return name.ljust(32, "-")


def send(thread_id: str, name: str, **more: Any) -> turns.TurnStartParams:
    text = turns.TextInput(type="text", text="go on")
    return turns.TurnStartParams(
        thread_id=thread_id, input=[text], request_key=key(name), **more
    )


ACTS: list[tuple[Method[Any, Any], Any]] = [
    (rows.TURN_START, send("thr_2", "turn")),
    (rows.TURN_START, send("thr_2", "queue", delivery="queue")),
    (
        rows.THREAD_START,
        threads.ThreadStartParams(
            cwd="/",
            input=[turns.TextInput(type="text", text="x")],
            request_key=key("new"),
        ),
    ),
    (
        rows.THREAD_RENAME,
        thread_acts.ThreadRenameParams(
            thread_id="thr_3", name="another", request_key=key("name")
        ),
    ),
    (
        rows.THREAD_ARCHIVE,
        thread_acts.ThreadArchiveParams(thread_id="thr_4", request_key=key("archive")),
    ),
    (
        rows.THREAD_SETTINGS,
        threads.ThreadSettingsParams(
            thread_id="thr_5", model="m-1", request_key=key("settings")
        ),
    ),
    (
        rows.GOAL_SET,
        goals.GoalSetParams(thread_id="thr_6", objective="x", request_key=key("goal")),
    ),
]


def owners(device: Device) -> list[tuple[Method[Any, Any], Any]]:
    """What gives somebody something."""
    grant = admin.DeviceGrantParams(device_id=device.id, scopes=["read"])
    return [(rows.PAIR_OPEN, admin.PairOpenParams()), (rows.DEVICE_GRANT, grant)]


@asynccontextmanager
async def open_device(house: House, device: Device) -> AsyncGenerator[Client]:
    async with open_client(house.target(device), client_info("phone", "p" * 32)) as one:
        yield one


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    while not await condition():
        await trio.lowlevel.checkpoint()


async def entries(owner: Client) -> list[str]:
    page = await owner.call(rows.AUDIT_LIST, admin.AuditListParams(limit=100))
    return [entry.event for entry in reversed(page.entries)]


async def refusal(call: Awaitable[object]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await call
    return caught.value


def is_storage(refused: Refusal) -> bool:
    told = (refused.code, refused.retryable, refused.data.get("what"))
    return told == ("internal", True, "storage") and refused.retry_after_ms is not None


def answer(one: Approval, choice: str) -> approvals.ApprovalAnswerParams:
    return approvals.ApprovalAnswerParams(
        approval_id=one.id, digest=one.digest, choice=choice
    )


def check_whole(state: Path) -> None:
    """Nothing in the state folder is torn, and no draft was left."""
    for line in (state / "audit.jsonl").read_text().splitlines():
        json.loads(line)
    db = sqlite3.connect(state / "ledger.sqlite")
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    json.loads((state / "devices.json").read_bytes())
    assert not [path.name for path in state.iterdir() if path.name.startswith(".")]


async def test_reads_go_on_and_no_mutation_happens_until_there_is_room(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path, roots=["/"]) as house:
            for number in range(1, 7):
                house.runtime.add(f"thr_{number}", "t1")
            device = await pair_device(house, scopes=SCOPES)
            async with open_owner(house) as owner, open_device(house, device) as phone:
                await owner.call(rows.TURN_START, send("thr_1", "first"))
                writer = house.runtime.writers[0]
                async with phone.subscribe("all") as events:
                    assert isinstance(await anext(events), Resumed)
                    with full_disk():
                        writer.say("told all the same")
                        assert isinstance(await anext(events), EventSeen)
                        await phone.call(
                            rows.GATEWAY_STATUS, gateway.GatewayStatusParams()
                        )
                        listed = await phone.call(
                            rows.THREAD_LIST, threads.ThreadListParams()
                        )
                        assert len(listed.threads) == 6
                        done = list(house.runtime.log)
                        for method, params in ACTS:
                            refused = await refusal(phone.call(method, params))
                            assert is_storage(refused), (method.name, refused)
                        for method, params in owners(device):
                            refused = await refusal(owner.call(method, params))
                            assert is_storage(refused), (method.name, refused)
                        assert len(house.runtime.live) == 1, "no writer was left"
                new = house.runtime.log[len(done) :]
                acts = {"start_turn", "start_thread", "rename", "archive", "set_goal"}
                assert not acts & set(new)
                for method, params in ACTS:
                    await phone.call(method, params)
                for method, params in owners(device):
                    await owner.call(method, params)
        check_whole(house.config.state_dir)


async def test_denying_stopping_and_locking_out_happen_and_are_written_down_later(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house, scopes=SCOPES)
            lost = await pair_device(house, name="lost")
            async with open_owner(house) as owner, open_device(house, device) as phone:
                started = await owner.call(rows.TURN_START, send("thr_1", "first"))
                writer = house.runtime.writers[0]
                allowed, denied, late = writer.ask(), writer.ask(), writer.ask()
                with full_disk():
                    yes = phone.call(rows.APPROVAL_ANSWER, answer(allowed, "accept"))
                    assert is_storage(await refusal(yes))
                    assert allowed.id in {one.id for one in writer.approvals()}
                    no = await phone.call(
                        rows.APPROVAL_ANSWER, answer(denied, "decline")
                    )
                    assert no.approval.choice == "decline"
                    writer.resolve(late.id, ApprovalState.EXPIRED)
                    grant = admin.DeviceGrantParams(device_id=lost.id, scopes=["write"])
                    assert is_storage(
                        await refusal(owner.call(rows.DEVICE_GRANT, grant))
                    )
                    out = owner.call(
                        rows.DEVICE_REVOKE, admin.DeviceRevokeParams(device_id=lost.id)
                    )
                    assert "out now" in (await refusal(out)).message
                    with pytest.raises(UnreachableError):
                        async with open_device(house, lost):
                            pytest.fail("it was let in")
                    stop = turns.TurnInterruptParams(
                        thread_id="thr_1",
                        turn_id=started.sent.id,
                        request_key=key("stop"),
                    )
                    stopped = await phone.call(rows.TURN_INTERRUPT, stop)
                    assert stopped.turn.status == "interrupted"
                    locked = owner.call(rows.GATEWAY_LOCK, admin.GatewayLockParams())
                    assert "locked now" in (await refusal(locked)).message
                wanted = [
                    "approval/answer",
                    "approval/expired",
                    "device/revoke",
                    "turn/interrupt",
                    "gateway/lock",
                ]

                async def written() -> bool:
                    told = await entries(owner)
                    told = [event for event in told if event in wanted]
                    state = house.config.state_dir
                    return told[-5:] == wanted and (state / "locked").exists()

                await until(written)
                await until(lambda: is_revoked(house, lost))
                await until(lambda: is_done(house, device, key("stop")))
                await owner.call(rows.GATEWAY_UNLOCK, admin.GatewayUnlockParams())
        check_whole(house.config.state_dir)


async def is_revoked(house: House, device: Device) -> bool:
    """Whether the file says it."""
    await trio.lowlevel.checkpoint()
    stored = json.loads((house.config.state_dir / "devices.json").read_bytes())
    found = {one["id"]: one for one in stored["devices"]}
    return found[device.id]["revoked_at"] is not None


async def is_done(house: House, device: Device, request_key: str) -> bool:
    """Whether the ledger's file says it."""
    await trio.lowlevel.checkpoint()
    with closing(sqlite3.connect(house.config.state_dir / "ledger.sqlite")) as db:
        found = db.execute(
            "SELECT state FROM keys WHERE key = ? AND device = ?",
            (request_key, device.id),
        ).fetchone()
    return bool(found == ("done",))


async def test_an_upload_leaves_nothing_half(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house, scopes=SCOPES)
            begin = blobs.BlobBeginParams(
                name="a.txt",
                size=len(PICTURE),
                sha256=sha256(PICTURE).hexdigest(),
                media_type="text/plain",
            )
            async with open_device(house, device) as phone:
                upload = (await phone.call(rows.BLOB_BEGIN, begin)).upload_id
                chunk = blobs.BlobChunkParams(
                    upload_id=upload, offset=0, content=PICTURE
                )
                with full_disk():
                    refused = await refusal(phone.call(rows.BLOB_CHUNK, chunk))
                    assert is_storage(refused)
                uploads = house.config.state_dir / "uploads" / device.id
                assert not list(uploads.iterdir())
                upload = (await phone.call(rows.BLOB_BEGIN, begin)).upload_id
                chunk = chunk.model_copy(update={"upload_id": upload})
                await phone.call(rows.BLOB_CHUNK, chunk)
                await phone.call(
                    rows.BLOB_COMMIT, blobs.BlobCommitParams(upload_id=upload)
                )
                assert [path.stat().st_size for path in uploads.iterdir()] == [10]
        check_whole(house.config.state_dir)


async def test_an_agent_that_cannot_write_its_key_starts_with_none_half_written(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        with pytest.raises((OSError, KeyFileError)), full_disk():
            async with open_agent(tmp_path):
                pytest.fail("it started")
        state = tmp_path / "state"
        assert not [path for path in state.iterdir() if "identity" in path.name]
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            await owner.call(rows.GATEWAY_STATUS, gateway.GatewayStatusParams())


async def test_a_ledger_that_may_not_grow_refuses_and_goes_on_when_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's own word for a full disk, in the middle of its transactions."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def remember(*args: Any, **more: Any) -> sqlite3.Connection:
        opened.append(connect(*args, **more))
        return opened[-1]

    monkeypatch.setattr("agent.records.ledger_file.sqlite3.connect", remember)
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            await owner.call(
                rows.TURN_START, send("thr_1", "runs")
            )  # so all others wait
            (ledger,) = opened
            pages = ledger.execute("PRAGMA page_count").fetchone()[0]
            ledger.execute(f"PRAGMA max_page_count = {pages}")
            queued, refused = 0, None
            text = turns.TextInput(type="text", text="x" * 3_000)
            params = send("thr_1", "q0", delivery="queue")
            while refused is None:
                params = send("thr_1", f"q{queued}", delivery="queue")
                params = params.model_copy(update={"input": [text]})
                try:
                    await owner.call(rows.TURN_START, params)
                except Internal as exc:
                    refused = exc
                else:
                    queued += 1
            assert is_storage(refused)
            count = ledger.execute("SELECT count(*) FROM queue").fetchone()[0]
            assert count == queued
            ledger.execute("PRAGMA max_page_count = 1000000")
            await owner.call(rows.TURN_START, params)
