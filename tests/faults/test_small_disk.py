"""A whole Agent on a real codex, whose state folder is a disk that is really full."""

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import trio

from clients.cli.scripted_model import Rule
from tests.support.agents import client_info, pair_device
from tests.support.codex import CodexHome, open_codex_home
from tests.support.real_agent import send_params, send_to_end
from tests.support.served_agent import ServedAgent, open_served_agent
from tests.support.small_disk import SmallDisk, is_offered, open_small_disk
from transport.client import AdminTarget, Client, EventSeen, Resumed, open_client
from transport.errors import Internal
from transport.protocol import admin, approvals, gateway, queue, threads
from transport.protocol import methods as rows
from transport.protocol.approvals import Approval
from transport.protocol.events import ApprovalRequested, TurnCompleted
from transport.protocol.gateway import GateReason
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import TextInput, TurnStatus

pytestmark = [
    pytest.mark.codex,
    pytest.mark.skipif(not is_offered(), reason="only root may mount"),
]
ASKING = {
    "call": "exec_command",
    "args": {
        "cmd": "true",
        "sandbox_permissions": "require_escalated",
        "justification": "why",
    },
}
RULES = (Rule("needs a yes", [[ASKING]]),)


@dataclass(frozen=True, slots=True)
class Workstation:
    """A home of Codex, and a small disk for the state folder. Sockets lie elsewhere."""

    home: CodexHome
    disk: SmallDisk

    @property
    def admin(self) -> AdminTarget:
        """The owner's own door."""
        return AdminTarget(path=self.home.home.parent / "run" / "admin.sock")

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[ServedAgent]:
        """Run an Agent, as a process of its own."""
        environ = {"THREADGATE_RUNTIME_DIR": str(self.admin.path.parent)}
        async with open_served_agent(
            self.home, before=self.disk.before, environ=environ
        ) as agent:
            yield agent

    @asynccontextmanager
    async def owner(self) -> AsyncGenerator[Client]:
        """Connect at that door."""
        async with open_client(self.admin, client_info("local", "l" * 32)) as client:
            yield client


@asynccontextmanager
async def open_workstation() -> AsyncGenerator[Workstation]:
    async with open_codex_home(*RULES) as home:
        state = home.home.parent / "state"
        state.mkdir(mode=0o700)
        with open_small_disk(state, "8m") as disk:
            yield Workstation(home, disk)


async def start_thread(owner: Client, home: CodexHome) -> str:
    first = new_thread(home, key="n")
    made = await owner.call(rows.THREAD_START, first, timeout_s=60)
    read = threads.ThreadReadParams(thread_id=made.thread.id)
    while (
        await owner.call(rows.THREAD_READ, read)
    ).thread.status is ThreadStatus.RUNNING:
        pass  # each read is a round trip
    return made.thread.id


def new_thread(home: CodexHome, *, key: str) -> threads.ThreadStartParams:
    return threads.ThreadStartParams(
        cwd=str(home.workspace),
        input=[TextInput(type="text", text="hello")],
        request_key=key * 32,
        wait_ms=20_000,  # a foreign codex may just say its version
    )


async def ask(owner: Client, thread: str) -> Approval:
    """Start a turn that asks; return its question."""
    async with owner.subscribe("all") as events:
        assert isinstance(await anext(events), Resumed)
        asked = send_params(thread, "needs a yes", key="asked")
        await owner.call(rows.TURN_START, asked, timeout_s=60)
        async for event in events:
            if isinstance(event, EventSeen) and isinstance(
                event.data, ApprovalRequested
            ):
                return event.data.approval
    raise AssertionError("it never asked")


def answer(question: Approval, choice: str) -> approvals.ApprovalAnswerParams:
    return approvals.ApprovalAnswerParams(
        approval_id=question.id, digest=question.digest, choice=choice
    )


async def test_a_full_disk_refuses_what_is_new_and_lets_stop_and_no_through() -> None:
    with trio.fail_after(240):
        async with open_workstation() as here, here.serving(), here.owner() as owner:
            thread = await start_thread(owner, here.home)
            await send_to_end(owner, thread, "one more", key="more")
            question = await ask(owner, thread)
            async with owner.subscribe("all") as events:
                assert isinstance(await anext(events), Resumed)
                here.disk.fill()
                read = threads.ThreadReadParams(thread_id=thread)
                assert (await owner.call(rows.THREAD_READ, read)).turns
                with pytest.raises(Internal) as refused:
                    yes = answer(question, "allow")
                    await owner.call(rows.APPROVAL_ANSWER, yes)
                assert refused.value.retryable
                with pytest.raises(Internal):
                    await owner.call(rows.THREAD_START, new_thread(here.home, key="m"))
                await owner.call(rows.APPROVAL_ANSWER, answer(question, "deny"))
                async for event in events:
                    if isinstance(event, EventSeen) and isinstance(
                        event.data, TurnCompleted
                    ):
                        assert event.data.turn.status is TurnStatus.COMPLETED
                        break
            here.disk.free()
            turn = await send_to_end(owner, thread, "go on", key="next")
            assert turn.status is TurnStatus.COMPLETED
            page = await owner.call(rows.AUDIT_LIST, admin.AuditListParams())
            told = [entry.event for entry in reversed(page.entries)]
            assert told[-3:] == ["turn/start", "approval/answer", "turn/start"], (
                "what was refused is not there"
            )


@pytest.mark.parametrize("what", ["a device", "a message", "the gate"])
async def test_what_is_taken_away_on_a_full_disk_stays_so_though_the_agent_is_killed(
    what: str,
) -> None:
    with trio.fail_after(240):
        async with open_workstation() as here:
            async with here.serving() as agent, here.owner() as owner:
                thread = await start_thread(owner, here.home)
                lost = await pair_device(here, name="lost")
                await ask(owner, thread)
                waits = send_params(thread, "never say", key="q", delivery="queue")
                waiting = (await owner.call(rows.TURN_START, waits)).queued
                assert waiting is not None
                here.disk.fill()
                await take_away(owner, what, lost.id, waiting.queue_id)
                late = send_params(thread, "not now", key="r", delivery="queue")
                with pytest.raises(Internal):
                    await owner.call(rows.TURN_START, late)
                here.disk.fill()  # other programs take what is left
                agent.signal(signal.SIGKILL)
                await agent.wait()
            async with here.serving(), here.owner() as owner:
                assert await is_taken_away(owner, what)
                read = threads.ThreadReadParams(thread_id=thread)
                assert (await owner.call(rows.THREAD_READ, read)).turns
                with pytest.raises(Internal):
                    await owner.call(rows.TURN_START, late)
                with pytest.raises(Internal):
                    await owner.call(rows.GATEWAY_UNLOCK, admin.GatewayUnlockParams())
                assert await is_taken_away(owner, what)
                assert "diskFull" in await warnings(owner)
                here.disk.free()
                await owner.call(rows.TURN_START, late)
                assert "diskFull" not in await warnings(owner)


async def warnings(owner: Client) -> list[str]:
    asked = gateway.GatewayStatusParams()
    return (await owner.call(rows.GATEWAY_STATUS, asked)).warnings


async def take_away(owner: Client, what: str, device_id: str, queue_id: str) -> None:
    match what:
        case "a device":
            revoke = admin.DeviceRevokeParams(device_id=device_id)
            await owner.call(rows.DEVICE_REVOKE, revoke)
        case "a message":
            delete = queue.QueueDeleteParams(queue_id=queue_id, request_key="b" * 32)
            await owner.call(rows.QUEUE_DELETE, delete)
        case _:
            await owner.call(rows.GATEWAY_LOCK, admin.GatewayLockParams())


async def is_taken_away(owner: Client, what: str) -> bool:
    """Whether a next Agent knows it, though its disk is full, too."""
    match what:
        case "a device":
            listed = await owner.call(rows.DEVICE_LIST, admin.DeviceListParams())
            return [one.revoked for one in listed.devices] == [True]
        case "a message":
            waits = await owner.call(rows.QUEUE_LIST, queue.QueueListParams())
            return waits.queue == []
        case _:
            asked = gateway.GatewayStatusParams()
            status = await owner.call(rows.GATEWAY_STATUS, asked)
            return status.gate.reason is GateReason.LOCKED
