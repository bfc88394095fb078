"""`threadgate models`, for a person and for a program."""

import json
from pathlib import Path

import pytest
import trio

from clients.cli.doubting import doubts
from tests.support import cli_asked
from tests.support import cli_samples as samples
from tests.support.agents import open_agent
from tests.support.cli_runs import cli_environ, run_cli
from tests.support.cli_samples import SHOP
from tests.support.fake_agent import FakeAgent, Frame, open_fake_agent
from transport.protocol.approvals import ApprovalState
from transport.protocol.capabilities import ModelInfo, ModelListResult
from transport.protocol.events import ApprovalResolved, TurnCompleted
from transport.protocol.threads import ThreadResult
from transport.protocol.turns import TurnStartResult, TurnStatus

pytestmark = pytest.mark.usefixtures("warm_runs")


async def test_models_are_listed_with_their_efforts(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            environ = {
                **cli_environ(house.config.state_dir),
                "THREADGATE_RUNTIME_DIR": str(house.config.runtime_dir),
            }
            shown = await run_cli("models", environ=environ)
            told = await run_cli("models", "--json", environ=environ)
    assert shown.out.splitlines()[1].split() == ["*", "m-1", "M", "1", "low*"]
    assert json.loads(told.out)["models"][0]["id"] == "m-1"


def model(name: str, *efforts: str) -> ModelInfo:
    return ModelInfo(id=name, name=name, efforts=[*efforts], is_default=False)


LISTED = [model("m-1", "low"), model("m-2", "low", "high")]


@pytest.mark.parametrize(
    ("wished", "effort", "told"),
    [
        ("m-2", "high", []),
        (None, "high", []),  # which model the thread has is not known
        ("nope", None, ["Codex lists no model “nope”"]),
        ("m-1", "high", ["Codex lists no effort “high” for m-1"]),
        (None, "nonsense", ["Codex lists no effort “nonsense”"]),
        ("nope", "nonsense", ["no model “nope”", "no effort “nonsense”"]),
    ],
)
def test_a_word_that_codex_does_not_list_is_doubted(
    wished: str | None, effort: str | None, told: list[str]
) -> None:
    said = list(doubts(LISTED, wished, effort))
    assert len(said) == len(told)
    assert all(part in line for part, line in zip(told, said, strict=True))


@pytest.mark.parametrize(
    "args", [("send", SHOP, "Go.", "--no-follow"), ("settings", SHOP)]
)
async def test_a_doubt_is_said_and_the_word_is_sent_all_the_same(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    started = TurnStartResult(turn=samples.turn("turn-1"), delivery="started")
    changed = ThreadResult(thread=samples.thread())
    agent = FakeAgent(
        answers={
            "model/list": lambda _: ModelListResult(models=LISTED),
            "turn/start": lambda _: started,
            "thread/settings": lambda _: changed,
        }
    )
    with trio.fail_after(240):
        async with open_fake_agent(tmp_path / "run" / "admin.sock", agent):
            environ = cli_environ(tmp_path)
            ran = await run_cli(*args, "--model", "nope", environ=environ)
            plain = await run_cli(*args, "--model", "m-1", environ=environ)
    assert (ran.code, plain.code) == (0, 0), (ran, plain)
    assert "“nope”" in ran.err
    assert plain.err == ""
    sent = agent.called("turn/start") + agent.called("thread/settings")
    assert [params["model"] for params in sent] == ["nope", "m-1"]


async def test_send_at_the_workstation_names_the_device_that_answered(
    tmp_path: Path,
) -> None:
    turn = samples.turn("turn-1", status=TurnStatus.IN_PROGRESS)
    device = samples.device()
    over = cli_asked.command_approval().model_copy(
        update={
            "state": ApprovalState.ANSWERED,
            "choice": "decline",
            "decided_by": device.id,
        }
    )
    agent = FakeAgent()

    def start(params: Frame) -> TurnStartResult:
        del params
        agent.tell(ApprovalResolved(approval=over))
        agent.tell(TurnCompleted(turn=samples.turn("turn-1")))
        return TurnStartResult(turn=turn, delivery="started")

    agent.answers["turn/start"] = start
    with trio.fail_after(240):
        async with open_fake_agent(tmp_path / "run" / "admin.sock", agent):
            ran = await run_cli("send", SHOP, "Go.", environ=cli_environ(tmp_path))
    assert ran.code == 0, ran
    assert f"({device.name})" in ran.out
