"""The model's provider cannot be reached, or the computer slept while it spoke."""

from typing import Any

import pytest
import trio

from adapter.shapes.failures import slept_through
from tests.support.codex import locking_versions, open_codex_home
from tests.support.fake_app_server import completed
from tests.support.faulty_codex import (
    COMMAND,
    STARTED,
    THREAD,
    TURN,
    Ear,
    begun,
    open_faulty,
    question,
    send,
)
from tests.support.real_agent import open_local, open_real_agent, send_to_end
from transport.client import Client
from transport.protocol import threads, turns
from transport.protocol.approvals import ApprovalAnswerParams
from transport.protocol.events import ApprovalRequested, Notice, TurnCompleted
from transport.protocol.methods import (
    APPROVAL_ANSWER,
    THREAD_START,
    TURN_INTERRUPT,
    TURN_START,
)
from transport.protocol.turns import TextInput, TurnStatus

NEWEST = locking_versions()[-1]
GIVES_UP = ("0.147.0",)
NOBODY = "http://127.0.0.1:9/v1"  # nothing listens there
STOP_S = 25.0  # an answer to the interrupt would have 30 s
LOST: dict[str, Any] = {
    "message": "stream disconnected before completion",
    "codexErrorInfo": "other",
    "additionalDetails": None,
}
NAP_MS = 60_000


@pytest.mark.codex
@pytest.mark.parametrize(
    "version",
    [
        NEWEST,
        *(
            pytest.param(version, marks=pytest.mark.long)
            for version in locking_versions()[:-1]
        ),
    ],
)
async def test_a_provider_that_is_away_is_told_and_a_stop_works(version: str) -> None:
    """Codex tries for ever by itself; before 0.163 it gives the turn up."""
    with trio.fail_after(240):
        async with open_codex_home() as home:
            config = home.home / "config.toml"
            there = config.read_text()
            config.write_text(there.replace(home.model.base_url, NOBODY))
            async with (
                open_real_agent(home, version=version, idle_s=1) as house,
                open_local(house) as client,
                trio.open_nursery() as nursery,
            ):
                ear = Ear()
                await nursery.start(ear.listen, client)
                params = threads.ThreadStartParams(
                    cwd=str(home.workspace),
                    input=[TextInput(type="text", text="hello")],
                    request_key="n" * 32,
                    wait_ms=20_000,
                )
                started = await client.call(THREAD_START, params, timeout_s=60)
                if version in GIVES_UP:
                    over = (await ear.first(TurnCompleted)).turn
                    assert over.status is TurnStatus.FAILED
                    assert over.error is not None
                else:
                    await ear.until(lambda: "modelRetry" in ear.notices())
                    assert not ear.data(TurnCompleted)
                    await stop(client, started)
                config.write_text(there)
                await ear.wait_free()
                ear.check_ends()
                nursery.cancel_scope.cancel()
            async with (
                open_real_agent(home, version=version) as house,
                open_local(house) as client,
            ):
                thread = started.thread.id
                turn = await send_to_end(client, thread, "go on", key="next")
                assert turn.status is TurnStatus.COMPLETED


async def stop(client: Client, started: threads.ThreadStartResult) -> None:
    params = turns.TurnInterruptParams(
        thread_id=started.thread.id, turn_id=started.turn.id, request_key="i" * 32
    )
    with trio.fail_after(STOP_S):
        stopped = await client.call(TURN_INTERRUPT, params, timeout_s=30)
    assert stopped.turn.status is TurnStatus.INTERRUPTED


@pytest.mark.parametrize("nap_ms", [NAP_MS, 0])
async def test_a_turn_that_fails_after_the_computer_slept_says_so(nap_ms: int) -> None:
    clock = [1_000_000.0, trio.current_time() * 1_000]

    def up_ms() -> int:
        return round(clock[0] + trio.current_time() * 1_000 - clock[1])

    retry = {"error": LOST, "willRetry": True, "threadId": THREAD, "turnId": TURN}
    failed: dict[str, Any] = dict(completed(TURN, status="failed"))
    failed["params"]["turn"]["error"] = LOST
    closing = [
        {
            "notify": "serverRequest/resolved",
            "params": {"threadId": THREAD, "requestId": 0},
        },
        {"notify": "error", "params": retry},
        failed,
    ]
    asked = [*STARTED, begun(COMMAND), question()]
    with trio.fail_after(240):
        async with open_faulty(
            turn__start=[asked], answers={"0": closing}, clock=up_ms
        ) as run:
            await run.client.call(TURN_START, send(), timeout_s=20)
            approval = (await run.ear.first(ApprovalRequested)).approval
            clock[0] += nap_ms
            no = ApprovalAnswerParams(
                approval_id=approval.id, digest=approval.digest, choice="deny"
            )
            await run.client.call(APPROVAL_ANSWER, no, timeout_s=20)
            over = (await run.ear.first(TurnCompleted)).turn
            assert over.status is TurnStatus.FAILED
            assert over.error is not None
            said = slept_through(LOST["message"], nap_ms)
            assert over.error.message == said
            assert ("asleep for 60 s" in said) is bool(nap_ms)
            told = [n.message for n in run.ear.data(Notice) if n.code == "modelRetry"]
            assert told == [said]
