"""Turns of a real codex whose model call fails or is lost."""

from typing import Any

import pytest
import trio

from adapter.events.invariants import Invariants
from tests.support.codex import each_version
from tests.support.real_turns import told_in, told_of
from tests.support.runtimes import open_stage
from tests.support.scripts import script
from transport.protocol.items import (
    AgentMessage,
    ItemStatus,
)
from transport.protocol.turns import TurnStatus

pytestmark = pytest.mark.codex


@each_version
@pytest.mark.parametrize(
    ("answer", "code", "status"),
    [
        ({"http": 401}, "httpConnectionFailed", 401),
        ({"http": 429}, "responseTooManyFailedAttempts", 429),
        (
            {"failed": {"code": "context_length_exceeded", "message": "too long"}},
            "contextWindowExceeded",
            None,
        ),
        (
            {"failed": {"code": "insufficient_quota", "message": "no money"}},
            "usageLimitExceeded",
            None,
        ),
    ],
    ids=["401", "429", "context", "quota"],
)
async def test_a_failure_keeps_codex_s_code(
    version: str, answer: dict[str, Any], code: str, status: int | None
) -> None:
    with trio.fail_after(240):
        told = await told_of(version, script([answer]))
    assert told.turn.status is TurnStatus.FAILED
    for turn in (told.turn, told.stored):
        assert turn.error is not None
        assert (turn.error.code, turn.error.http_status) == (code, status)


@each_version
async def test_what_a_lost_model_call_began_ends_before_the_next_one_speaks(
    version: str,
) -> None:
    lost: list[dict[str, Any]] = [{"partial": "one two"}, {"disconnect": True}]
    async with open_stage(version) as stage:
        config = stage.home.home / "config.toml"
        text = config.read_text()
        config.write_text(
            text.replace("stream_max_retries = 0", "stream_max_retries = 2")
        )
        with trio.fail_after(240):
            told = await told_in(stage, script(lost, [{"msg": "all of it"}]))
    assert told.turn.status is TurnStatus.COMPLETED
    assert "modelRetry" in stage.seen.notices()
    rules = Invariants()
    assert [one for event in told.events for one in rules.see(event)] == []
    said = [(one.status, one.text.strip()) for one in told.of(AgentMessage)]
    assert said == [
        (ItemStatus.INTERRUPTED, "one two"),
        (ItemStatus.COMPLETED, "all of it"),
    ]
