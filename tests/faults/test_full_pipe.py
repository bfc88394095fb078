"""An answer waits because codex takes nothing; what is true when it does take it counts."""

import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import pytest
import trio

from adapter.calls.commands import Command
from adapter.calls.jsonrpc import encode
from adapter.calls.turn_commands import steer
from clients.cli.scripted_answers import Rule
from tests.support.agents import Device, House, client_info, pair_device
from tests.support.codex import CodexHome, locking_versions, open_codex_home
from tests.support.door import DESKTOP, FakeWatch
from tests.support.faulty_codex import Ear
from tests.support.real_agent import open_local, open_real_agent
from tests.support.served_agent import app_servers, freeze, unread
from transport.background import open_background
from transport.client import Client, open_client
from transport.errors import CodexUnavailable, OutcomeUnknown, Timeout, TransportError
from transport.protocol import threads
from transport.protocol.admin import DeviceRevokeParams
from transport.protocol.approvals import (
    Approval,
    ApprovalAnswerParams,
    ApprovalListParams,
    ApprovalState,
)
from transport.protocol.events import ApprovalRequested, TurnCompleted, TurnStarted
from transport.protocol.methods import (
    APPROVAL_ANSWER,
    APPROVAL_LIST,
    DEVICE_REVOKE,
    THREAD_START,
    TURN_STEER,
)
from transport.protocol.turns import TextInput, TurnSteerParams

pytestmark = pytest.mark.codex
NEWEST: Final = locking_versions()[-1]
PIPE: Final = 65_536  # what a pipe of Linux holds
ROOM: Final = 20  # bytes that are left in it: fewer than the shortest answer has
RAN: Final = "it-ran"
ASKING: Final = {
    "call": "exec_command",
    "args": {
        "cmd": f"touch {RAN}",
        "yield_time_ms": 30_000,
        "sandbox_permissions": "require_escalated",
        "justification": "why",
    },
}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A turn that asks, of a codex that stands still and whose input is full."""

    house: House
    home: CodexHome
    watch: FakeWatch
    owner: Client
    phone: Device
    ear: Ear
    asked: Approval
    writer: int

    @property
    def ran(self) -> bool:
        return (self.home.workspace / RAN).exists()

    async def say(self, client: Client, choice: str) -> Approval:
        """Answer the question."""
        params = ApprovalAnswerParams(
            approval_id=self.asked.id, digest=self.asked.digest, choice=choice
        )
        return (await client.call(APPROVAL_ANSWER, params, timeout_s=60)).approval

    async def wait_looked(self, looks: int) -> None:
        """Return when a yes was looked at, right before it found no room."""
        while self.watch.looks == looks:
            await trio.lowlevel.checkpoint()

    def go_on(self) -> None:
        """Let codex read again."""
        os.kill(self.writer, signal.SIGCONT)

    async def waits(self) -> bool:
        """Whether nobody has answered the question."""
        page = await self.owner.call(APPROVAL_LIST, ApprovalListParams())
        return [one.state for one in page.approvals] == [ApprovalState.PENDING]


@asynccontextmanager
async def open_stage() -> AsyncGenerator[Stage]:
    rules, watch, ear = (Rule("needs a yes", [[ASKING]]),), FakeWatch(), Ear()
    async with (
        open_codex_home(*rules) as home,
        open_real_agent(home, version=NEWEST, watch=watch) as house,
        open_local(house) as owner,
        open_client(house.admin, client_info("ear", "e" * 32)) as listener,
        open_background(partial(ear.listen, listener)),
    ):
        phone = await pair_device(house, scopes=("read", "write", "approve"))
        await owner.call(THREAD_START, _first(home), timeout_s=60)
        asked = (await ear.first(ApprovalRequested)).approval
        (_reader, writer) = app_servers(os.getpid())
        await freeze(writer)
        fill = partial(_fill, owner, (await ear.first(TurnStarted)).turn.id, asked)
        async with open_background(fill):
            try:
                while unread(writer) < PIPE - 2 * ROOM:
                    await trio.lowlevel.checkpoint()
                yield Stage(
                    house=house,
                    home=home,
                    watch=watch,
                    owner=owner,
                    phone=phone,
                    ear=ear,
                    asked=asked,
                    writer=writer,
                )
            finally:
                os.kill(writer, signal.SIGCONT)


def _first(home: CodexHome) -> threads.ThreadStartParams:
    return threads.ThreadStartParams(
        cwd=str(home.workspace),
        input=[TextInput(type="text", text="needs a yes")],
        request_key="n" * 32,
        wait_ms=20_000,
    )


async def _fill(
    owner: Client, turn_id: str, asked: Approval, *, task_status: trio.TaskStatus[None]
) -> None:
    """Say so much into the turn that codex's input is full but for ROOM bytes."""
    task_status.started()
    key = "s" * 32
    line = _length(steer(asked.thread_id, turn_id, ["x"], key))
    said = TextInput(type="text", text="x" * (PIPE - ROOM - line))
    params = TurnSteerParams(
        thread_id=asked.thread_id, turn_id=turn_id, input=[said], request_key=key
    )
    with suppress(OutcomeUnknown):  # codex stands still for longer than it waits
        await owner.call(TURN_STEER, params, timeout_s=60)
    await trio.sleep_forever()


def _length(command: Command) -> int:
    two_digits = {"id": 10, "method": command.method, "params": command.params}
    return len(encode(two_digits))


async def revoke(stage: Stage, revoked: trio.Event) -> None:
    """Revoke the device; that returns once what it had begun has ended."""
    gone = DeviceRevokeParams(device_id=stage.phone.id)
    await stage.owner.call(DEVICE_REVOKE, gone, timeout_s=60)
    revoked.set()


@pytest.mark.parametrize("how", ["revoked", "a desktop opens"])
async def test_a_yes_that_waits_for_the_pipe_is_not_given_once_it_may_not(
    how: str,
) -> None:
    with trio.fail_after(240):
        async with open_stage() as stage, trio.open_nursery() as nursery:
            said: list[Exception] = []

            async def yes() -> None:
                target = stage.house.target(stage.phone)
                info = client_info("phone", "p" * 32)
                async with open_client(target, info) as client:
                    try:
                        await stage.say(client, "allow")
                    except (CodexUnavailable, TransportError) as exc:
                        said.append(exc)

            looks = stage.watch.looks
            nursery.start_soon(yes)
            await stage.wait_looked(looks)
            assert await stage.waits()  # no byte of it is out: nothing is answered
            revoked = trio.Event()
            if how == "revoked":
                nursery.start_soon(revoke, stage, revoked)
                while not said:  # its session ends at once, its yes still waits
                    await trio.lowlevel.checkpoint()
                assert not revoked.is_set()
            else:
                stage.watch.foreign.append(DESKTOP)
                revoked.set()
            stage.go_on()
            while not said:
                await trio.lowlevel.checkpoint()
            await revoked.wait()
            assert await stage.waits()
            assert (await stage.say(stage.owner, "deny")).choice == "deny"
            await stage.ear.first(TurnCompleted)
            assert not stage.ran


async def test_a_yes_that_found_no_room_in_time_is_not_given_and_may_be_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent.approvals.approving.CONFIRM_S", 0.5)
    with trio.fail_after(240):
        async with open_stage() as stage:
            with pytest.raises(Timeout, match="no answer was given"):
                await stage.say(stage.owner, "allow")
            assert await stage.waits()
            monkeypatch.undo()
            stage.go_on()
            assert (await stage.say(stage.owner, "allow")).choice == "allow"
            await stage.ear.first(TurnCompleted)
            assert stage.ran
