"""What must never be written down, planted everywhere and looked for everywhere.

A whole Agent on real sockets, with everything logged that can be; its runtime is played by
the test and fails at every step, in words that quote the canary.
"""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from adapter.errors import ChildExitedError, CodexRefusedError, NoAnswerError
from tests.support.agents import House, open_agent, pair_device
from tests.support.edge import Peer
from tests.support.raw_devices import open_peer

CANARY = "canary-7d41"
STEPS = [
    *("list_threads", "read_thread", "list_turns", "pending_work", "writer.open"),
    *("writer.open:done", "resume", "resume:done", "start_turn", "start_turn:done"),
    *("interrupt", "interrupt:done", "answer", "writer.close"),
]
FAULTS: list[Callable[[], Exception]] = [
    lambda: ValueError(CANARY),
    lambda: CodexRefusedError("m", -1, CANARY),
    lambda: ChildExitedError("codex", 1, CANARY),
    lambda: NoAnswerError("m"),
    lambda: OSError(5, CANARY, CANARY),
]


async def use_all(house: House, peer: Peer, number: int) -> None:
    """Make every kind of request once, whatever comes of it."""
    text = [{"type": "text", "text": CANARY}]
    await peer.call("thread/list", {"query": CANARY})
    await peer.call("thread/read", {"threadId": "thr_1"})
    start = {"threadId": "thr_1", "input": text, "requestKey": f"start-{number:016d}"}
    turn = (await peer.call("turn/start", start)).get("result", {}).get("turn", {})
    for writer in house.runtime.live:
        if writer.running_turn_id is not None:
            writer.say(CANARY)
            asked = writer.ask(command=CANARY)
            answer = {"approvalId": asked.id, "digest": asked.digest}
            await peer.call("approval/answer", {**answer, "choice": CANARY})
            await peer.call("approval/answer", {**answer, "choice": "accept"})
    stop = {"threadId": "thr_1", "turnId": turn.get("id", "t1")}
    await peer.call("turn/interrupt", {**stop, "requestKey": f"stop-{number:016d}"})
    for writer in house.runtime.live:
        writer.die()


def fail_at(house: House, step: str, fault: Callable[[], Exception]) -> None:
    def fail() -> None:
        raise fault()

    house.runtime.forget_actions()
    house.runtime.at(step, fail)


async def test_83_no_log_and_no_audit_quotes_a_thread_a_name_or_a_secret(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    number = 0
    folder = tmp_path / CANARY
    folder.mkdir()
    with trio.fail_after(240):
        async with open_agent(
            tmp_path / "agent", doors={"handshakes_per_second": 1000.0}
        ) as house:
            house.runtime.add("thr_1", "t1", cwd=str(folder))
            device = await pair_device(
                house, scopes=["read", "write", "approve"], name=CANARY
            )
            psk = device.paired.psk.reveal()
            for step in STEPS:
                for fault in FAULTS:
                    number += 1
                    fail_at(house, step, fault)
                    async with open_peer(house, device) as peer:
                        await use_all(house, peer, number)
    audit = house.config.state_dir / "audit.jsonl"
    told = capfd.readouterr()
    written = caplog.text + audit.read_text() + told.out + told.err
    assert "approval/answer" in written, "the audit is looked at"
    assert "ValueError at" in written, "the faults are logged"
    for secret in (CANARY, psk.hex(), str(psk)[2:-1]):
        assert secret not in written
