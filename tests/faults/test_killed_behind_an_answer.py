"""A writer killed some ms behind an answer: a turn may be hidden, a thread half made."""

from contextlib import suppress

import pytest
import trio

from tests.support.codex import BUNDLED, locking_versions
from tests.support.killed_behind import delete, open_killing, outcome, wait_reaped
from tests.support.killing_codex import is_armed, kill_after
from tests.support.real_agent import send_params, status, thread_ids
from tests.support.thread_of_another import newest, texts_of
from transport.errors import CodexUnavailable, OutcomeUnknown, RuntimeFailure
from transport.protocol.methods import TURN_START
from transport.protocol.turns import TurnStatus

pytestmark = pytest.mark.codex
NEWEST = locking_versions()[-1]
WINDOW_MS = (0, 1, 2, 3, 5)
SOON_S = 20.0  # a repeat after a kill takes 2 s: far below each deadline of a request
MAKING = {
    "a fork, killed when it is made": ("thread/fork", "thread/fork"),
    "a thread, killed when it is made": ("thread/start", "thread/start"),
    "a thread, killed as its turn begins": ("thread/start", "turn/start"),
    "a fork, killed as its turn begins": ("thread/fork", "turn/start"),
}


@pytest.mark.parametrize(
    "version",
    [pytest.param(BUNDLED, marks=()), pytest.param(NEWEST, marks=pytest.mark.long)],
)
async def test_a_kill_right_behind_the_answer_is_no_conflict_and_sends_nothing_twice(
    version: str,
) -> None:
    """The client expects the newest turn that it can know of; the hidden one is ours."""
    with trio.fail_after(240):
        async with open_killing(version) as (home, client, thread, folder):
            for ms in WINDOW_MS:
                kill_after(folder, "turn/start", ms)
                params = send_params(thread, f"cut {ms}", key=f"cut{ms}")
                try:
                    started = await client.call(TURN_START, params, timeout_s=60)
                    expected = started.sent.id
                except OutcomeUnknown:
                    expected = ""
                assert not is_armed(folder)
                await wait_reaped(client, thread)
                expected = expected or (await newest(client, thread)).id
                after = send_params(
                    thread,
                    f"after {ms}",
                    key=f"after{ms}",
                    expected_last_turn_id=expected,
                )
                going = await client.call(TURN_START, after, timeout_s=60)
                while (await newest(client, thread)).status is TurnStatus.IN_PROGRESS:
                    pass  # each is a round trip
                turn = await newest(client, thread)
                assert (turn.id, turn.status) == (going.sent.id, TurnStatus.COMPLETED)
                with suppress(OutcomeUnknown):  # its key sends nothing
                    told = await client.call(TURN_START, params, timeout_s=60)
                    assert told.sent.id != going.sent.id
            texts = await texts_of(home)
            for ms in WINDOW_MS:
                assert texts.count(f"cut {ms}") <= 1
                assert texts.count(f"after {ms}") == 1


@pytest.mark.long
@pytest.mark.parametrize("ms", [0, 1, 5])
@pytest.mark.parametrize("case", MAKING)
async def test_what_is_left_of_a_writer_killed_while_it_makes_is_nothing_or_has_a_name(
    case: str, ms: int
) -> None:
    method, answered = MAKING[case]
    with trio.fail_after(240):
        async with open_killing(NEWEST) as (home, client, thread, folder):
            kill_after(folder, answered, ms)
            made: str | None = None
            with trio.fail_after(SOON_S):
                try:
                    made = await outcome(home, client, thread, method)
                except (CodexUnavailable, RuntimeFailure):
                    assert await thread_ids(client) == [thread], "nothing is left"
            assert not is_armed(folder)
            while (await status(client)).leases:
                pass  # each is a round trip
            again = await outcome(home, client, thread, method)
            assert again != thread, "the source is no outcome"
            assert made in (None, again), "the key was free, or tells the same"
            texts = await texts_of(home)
            assert texts.count("made") <= 1, "once"
            for one in (again, thread):
                await delete(client, one)
            assert await thread_ids(client) == []
