"""What `gateway/status` warns of, and what the runtime offers, through an Agent."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from adapter.errors import BinaryNotFoundError
from adapter.events.notices import event_of, notice
from adapter.runtime.events import Emit
from tests.support.agents import client_info, open_agent, open_owner, pair_device
from tests.support.door import OLD_CLI, FakeWatch
from tests.support.fake_reader import FakeReader
from tests.support.fake_runtime import FakeRuntime
from transport.client import Client, EventSeen, Resumed, open_client
from transport.protocol import capabilities, gateway
from transport.protocol.events import Notice, NoticeLevel
from transport.protocol.methods import (
    GATEWAY_CAPABILITIES,
    GATEWAY_STATUS,
    MODEL_LIST,
)


async def wait_warnings(client: Client, *codes: str) -> None:
    while True:
        params = gateway.GatewayStatusParams()
        if (await client.call(GATEWAY_STATUS, params)).warnings == list(codes):
            return


@pytest.mark.parametrize(
    ("runtime", "code"),
    [("decided_alone", "approvalsDecidedLocally"), ("sandbox_fault", "sandboxBroken")],
)
async def test_what_the_owner_should_know_is_in_the_status(
    tmp_path: Path, runtime: str, code: str
) -> None:
    played = FakeRuntime()
    vars(played)[runtime] = "no" if runtime == "sandbox_fault" else ("policy",)
    with trio.fail_after(240):
        async with (
            open_agent(tmp_path, runtime=played) as house,
            open_owner(house) as owner,
        ):
            await wait_warnings(owner, code)


async def test_an_engine_without_locks_is_warned_of_while_it_lives(
    tmp_path: Path,
) -> None:
    watch = FakeWatch()
    with trio.fail_after(240):
        async with (
            open_agent(tmp_path, watch=watch) as house,
            open_owner(house) as owner,
        ):
            await wait_warnings(owner)
            watch.foreign.append(OLD_CLI)
            house.runtime.readers[0].die()  # whatever makes the Agent look
            await wait_warnings(owner, "writerWithoutLock")


async def test_why_codex_does_not_start_is_told_in_full_at_the_workstation_alone(
    tmp_path: Path,
) -> None:
    def is_gone() -> None:
        raise BinaryNotFoundError("/home/ann/bin/codex is no native codex binary")

    played = FakeRuntime()
    for _ in range(100):
        played.at("reader.open", is_gone)
    with trio.fail_after(240):
        async with (
            open_agent(tmp_path, runtime=played) as house,
            open_owner(house) as owner,
        ):
            params = gateway.GatewayStatusParams()
            known = (await owner.call(GATEWAY_STATUS, params)).runtime
            assert known.error == "/home/ann/bin/codex is no native codex binary"
            phone = await pair_device(house)
            async with open_client(house.target(phone), client_info()) as client:
                told = (await client.call(GATEWAY_STATUS, params)).runtime
                assert told.error == "codex cannot be started"
                assert client.opened.runtime.error == "codex cannot be started"


class Telling(FakeRuntime):
    """Its reader says what the test has it say."""

    tell: Emit

    @asynccontextmanager
    async def open_reader(self, emit: Emit) -> AsyncGenerator[FakeReader]:
        self.tell = emit
        async with super().open_reader(emit) as reader:
            yield reader


async def test_a_warning_that_names_paths_is_told_whole_at_the_workstation_alone(
    tmp_path: Path,
) -> None:
    played = Telling()
    whole = "unknown key x (/home/ann/.codex/config.toml)"
    heard: dict[str, str] = {}

    async def hear(
        name: str,
        client: Client,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        async with client.subscribe("all") as events:
            async for event in events:
                if isinstance(event, Resumed):
                    task_status.started()
                if isinstance(event, EventSeen) and isinstance(event.data, Notice):
                    heard[name] = event.data.message
                    return

    with trio.fail_after(240):
        async with open_agent(tmp_path, runtime=played) as house:
            phone = await pair_device(house)
            async with (
                open_owner(house) as owner,
                open_client(house.target(phone), client_info()) as client,
                trio.open_nursery() as nursery,
            ):
                await nursery.start(hear, "owner", owner)
                await nursery.start(hear, "phone", client)
                said = notice(NoticeLevel.WARNING, "configWarning", whole)
                played.tell(event_of(said, root=None, at=1))
    assert heard["owner"] == whole
    assert heard["phone"].startswith("Codex has a warning about its configuration; ")
    assert "ann" not in heard["phone"]


async def test_a_device_is_told_what_codex_offers_and_nothing_that_the_agent_lacks(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house)
            async with open_client(house.target(device), client_info()) as client:
                rows = await client.call(
                    GATEWAY_CAPABILITIES, capabilities.CapabilitiesParams()
                )
                assert [row.feature for row in rows.rows] == [
                    "thread/list",
                    "threadLocks",
                ]
                found = await client.call(MODEL_LIST, capabilities.ModelListParams())
                assert [model.id for model in found.models] == ["m-1"]
