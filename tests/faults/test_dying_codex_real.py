"""The real codex, killed at each stage of a turn, and what a person sees of it."""

import os
import signal

import pytest
import trio

from tests.support.codex import locking_versions, open_codex_home
from tests.support.killed_writers import (
    RULES,
    SLEEP,
    STAGES,
    new_thread,
    open_ear,
    open_stage,
    spoke,
    wait_stored,
    writers,
)
from tests.support.leftovers import marked_processes
from tests.support.real_agent import (
    lock_files,
    open_local,
    open_real_agent,
    send_params,
    send_to_end,
    status,
)
from tests.support.served_agent import (
    LOST,
    TURN_LINE,
    app_servers,
    freeze,
    is_alive,
    unread,
    wait_gone,
)
from transport.client import Client
from transport.errors import OutcomeUnknown
from transport.protocol.approvals import (
    ApprovalAnswerParams,
    ApprovalListParams,
    ApprovalState,
)
from transport.protocol.events import ApprovalRequested, ApprovalResolved, TurnCompleted
from transport.protocol.gateway import RuntimePhase
from transport.protocol.methods import APPROVAL_ANSWER, APPROVAL_LIST, TURN_START
from transport.protocol.turns import TurnStatus

pytestmark = pytest.mark.codex
NEWEST = locking_versions()[-1]
LONG = [
    pytest.param(stage, version, marks=pytest.mark.long)
    for version in locking_versions()
    for stage in STAGES
    if version != NEWEST or stage != "runs long"
]
QUICK = [("runs long", NEWEST)]


@pytest.mark.parametrize(("stage", "version"), [*QUICK, *LONG])
async def test_a_writer_that_is_killed_in_its_turn_costs_that_turn_and_no_more(
    stage: str, version: str, run_mark: str
) -> None:
    """`at once`, Codex may not have stored the message; at a later stage it has."""
    reached, number = STAGES[stage]
    with trio.fail_after(240):
        async with open_stage(version) as (home, client, ear, reader):
            thread = await new_thread(client, home)
            await ear.first(TurnCompleted)
            params = send_params(thread, stage, key="killed")
            first = await client.call(TURN_START, params, timeout_s=60)
            assert first.turn is not None
            await ear.until(lambda: reached(ear))
            if stage != "at once":
                await wait_stored(home, stage)
            (writer,) = writers(reader)
            os.kill(writer, number)
            await ear.until(lambda: len(ear.data(TurnCompleted)) > 1)
            over = ear.data(TurnCompleted)[-1].turn
            assert (over.id, over.status) == (first.turn.id, TurnStatus.INTERRUPTED)
            await ear.until(lambda: "runtimeDied" in ear.notices())
            await ear.wait_free()
            ear.check_ends()
            for one in ear.data(ApprovalResolved):
                assert one.approval.state is ApprovalState.WITHDRAWN
            assert not lock_files(home.home)
            left = marked_processes(run_mark).values()
            assert not [line for line in left if SLEEP in line]
            requests = len(home.model.requests)
            again = await client.call(TURN_START, params, timeout_s=60)
            assert again.turn is not None
            assert again.turn.id == first.turn.id
            assert len(home.model.requests) == requests, "sent a second time"
            turn = await send_to_end(client, thread, "go on", key="next")
            assert turn.status is TurnStatus.COMPLETED
            if stage != "at once":
                assert stage in home.model.requests[-1].texts


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
async def test_a_message_that_lay_in_the_pipe_of_a_killed_writer_is_not_sent_again(
    version: str,
) -> None:
    """Killed before the response: the writer stands still while its message comes."""
    with trio.fail_after(240):
        async with open_stage(version) as (home, client, ear, reader):
            thread = await new_thread(client, home)
            await ear.first(TurnCompleted)
            (writer,) = writers(reader)
            await freeze(writer)
            requests = len(home.model.requests)
            params = send_params(thread, LOST, key="lost")

            async def send_it() -> None:
                with pytest.raises(OutcomeUnknown):
                    await client.call(TURN_START, params, timeout_s=60)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_it)
                while unread(writer) < TURN_LINE:
                    await trio.lowlevel.checkpoint()
                os.kill(writer, signal.SIGKILL)
            await send_it()  # a repeat
            turn = await send_to_end(client, thread, "go on", key="next")
            assert turn.status is TurnStatus.COMPLETED
            assert len(home.model.requests) == requests + 1
            assert LOST not in home.model.requests[-1].texts


async def test_a_yes_that_lay_in_the_pipe_of_a_killed_writer_is_withdrawn_as_sent() -> (
    None
):
    with trio.fail_after(240):
        async with open_stage(NEWEST) as (home, client, ear, reader):
            thread = await new_thread(client, home, "needs a yes")
            question = (await ear.first(ApprovalRequested)).approval
            (writer,) = writers(reader)
            await freeze(writer)
            yes = ApprovalAnswerParams(
                approval_id=question.id, digest=question.digest, choice="allow"
            )

            async def answer() -> None:
                got = (await client.call(APPROVAL_ANSWER, yes, timeout_s=60)).approval
                assert (got.state, got.sent) == (ApprovalState.WITHDRAWN, True)

            async with trio.open_nursery() as answering:
                answering.start_soon(answer)
                while not await is_answering(client):
                    pass  # each is a round trip
                os.kill(writer, signal.SIGKILL)
            await answer()  # a repeat
            over = (await ear.first(TurnCompleted)).turn
            assert over.status is TurnStatus.INTERRUPTED
            await ear.wait_free()
            ear.check_ends()
            turn = await send_to_end(client, thread, "go on", key="next")
            assert turn.status is TurnStatus.COMPLETED


async def is_answering(client: Client) -> bool:
    page = await client.call(APPROVAL_LIST, ApprovalListParams())
    return any(one.state is ApprovalState.ANSWERING for one in page.approvals)


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(signal.SIGABRT, marks=pytest.mark.long),
    ],
)
async def test_a_turn_goes_on_while_the_reader_dies_and_comes_back(
    number: signal.Signals,
) -> None:
    with trio.fail_after(240):
        async with open_stage(NEWEST) as (home, client, ear, reader):
            await new_thread(client, home, "in the middle")
            await ear.until(lambda: spoke(ear))
            (writer,) = writers(reader)
            os.kill(reader, number)
            await wait_gone([reader])
            home.model.release("the rest")
            over = (await ear.first(TurnCompleted)).turn
            assert over.status is not TurnStatus.INTERRUPTED
            assert is_alive(writer)
            while (await status(client)).runtime.state is not RuntimePhase.READY:
                pass  # each is a round trip
            ear.check_ends()


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)],
)
@pytest.mark.parametrize("text", ["in the background", "to stay"])
async def test_under_full_access_only_what_has_a_session_of_its_own_outlives_a_writer(
    text: str, number: signal.Signals, run_mark: str, caplog: pytest.LogCaptureFixture
) -> None:
    """And the log names it."""
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            config = home.home / "config.toml"
            wide = config.read_text().replace("workspace-write", "danger-full-access")
            config.write_text(wide)
            async with (
                open_real_agent(home, version=NEWEST) as house,
                open_local(house) as client,
                open_ear(house) as ear,
            ):
                (reader,) = app_servers(os.getpid())
                await new_thread(client, home, text)
                while not (sleeping := sleepers(run_mark)):
                    await trio.lowlevel.checkpoint()
                (writer,) = writers(reader)
                os.kill(writer, number)
                await ear.wait_free()
                left = sleepers(run_mark)
            try:
                assert left == (sleeping if text == "to stay" else [])
                said = f"process {sleeping[0]} outlived it in a session of its own"
                assert (said in caplog.text) is (text == "to stay")
            finally:
                for pid in left:
                    os.kill(pid, signal.SIGKILL)


def sleepers(mark: str) -> list[int]:
    return [pid for pid, line in marked_processes(mark).items() if line == SLEEP]
