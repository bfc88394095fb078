"""What Codex is known to do at bad moments costs nobody a turn, a message or a thread.

| Codex does this | tested by |
|---|---|
| a request right behind `thread/unsubscribe` hangs the process | here: no thread is ever unsubscribed; `test_thread_given_back`: a message that comes while the thread is given back |
| an unsubscribe before `turn/started` cuts the turn short | here, the same; `test_desktop_during_a_turn`: before the response |
| an unload takes a queued message and answers it never | `test_foreign_queue_and_goal`, `test_next_turn_by_itself` |
| a queued message runs at the end of a turn, or when anyone loads | `test_foreign_queue_and_goal` |
| a `turn/start` in that moment goes into the queued turn | `test_foreign_queue_and_goal`, `test_next_turn_by_itself` |
| of two `turn/start` at once the second goes into the first's turn | here: two messages at once |
| a kill right behind an answer hides the turn from every list | here: killed right behind the answer; `test_admission_conflicts`: who expects the own turn that a crash hid |
| a full output keeps a process from ending; a lock outlives it by ms | `test_child_process`: much to say; `test_codex_runtime`: our own next writer |
| each load runs the person's login shell | here: reading runs none; `test_codex_runtime`: is not cut short; `test_closing_agent` |
| a command cut short leaves `.git` and the like in the folder | `test_desktop_during_a_turn`: command running |
| many starts on a fresh home kill processes | `test_thread_given_back`: on a fresh home |
| names and goals pass a running turn, archiving does not; an old codex lets it pass | here: acts on a thread whose turn runs |
| a fork without a turn stays, and keeps its source from being deleted | `test_forks`: a fork whose message is refused; `test_threads_real`: a fork goes on |
| a killed start leaves ghosts that no list shows | here: killed while it makes |
| reads fail while somebody archives | `test_thread_given_back`: never called deleted; `test_codex_with_fake`: tried again |
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from adapter.codex import CodexRuntime
from adapter.processes.binary import Codex
from agent.clocks import wall_ms
from clients.cli.scripted_model import Rule
from tests.support.codex import (
    BUNDLED,
    WITHOUT_LOCK,
    CodexHome,
    codex_binaries,
    locking_versions,
    open_codex_home,
)
from tests.support.foreign import open_foreign
from tests.support.killing_codex import is_armed, kill_after, place_killing
from tests.support.real_agent import (
    open_local,
    open_real_agent,
    send_params,
    send_to_end,
    status,
    thread_ids,
    wait_lease,
)
from transport.client import Client
from transport.errors import (
    CodexUnavailable,
    Conflict,
    NotFound,
    NotResumable,
    OutcomeUnknown,
    RuntimeFailure,
)
from transport.protocol import thread_acts, threads
from transport.protocol.gateway import LeaseState
from transport.protocol.methods import (
    THREAD_ARCHIVE,
    THREAD_DELETE,
    THREAD_FORK,
    THREAD_READ,
    THREAD_RENAME,
    THREAD_START,
    THREAD_UNARCHIVE,
    TURN_START,
)
from transport.protocol.turns import TextInput, Turn, TurnStatus

pytestmark = pytest.mark.codex
ROOT = Path(__file__).parents[2]
HELD = Rule("in the middle", [[{"partial": "words"}, {"hold": "middle"}]])
NEWEST = locking_versions()[-1]
WINDOW_MS = (0, 1, 2, 3, 5)
SOON_S = 20.0  # a repeat after a kill takes 2 s: far below each deadline of a request


def test_no_thread_is_ever_unsubscribed() -> None:
    """A thread is given back by the end of its process, and in no other way."""
    sources = [*(ROOT / "adapter").rglob("*.py"), *(ROOT / "agent").rglob("*.py")]
    assert len(sources) > 100
    assert not [one for one in sources if "thread/unsubscribe" in one.read_text()]


def key(name: str) -> str:
    return name.ljust(32, "-")


async def texts_of(home: CodexHome) -> list[str]:
    """What people said, in each request of the model its last."""
    return [one.user_texts[-1] for one in home.model.requests]


async def newest(client: Client, thread: str) -> Turn:
    read = threads.ThreadReadParams(thread_id=thread, turns=1)
    return (await client.call(THREAD_READ, read)).turns[0]


@asynccontextmanager
async def open_house(
    version: str, *rules: Rule, **settings: Any
) -> AsyncGenerator[tuple[CodexHome, Client, str]]:
    """An Agent, and a thread with one turn that nobody has loaded."""
    async with open_codex_home(*rules) as home:
        codex = codex_binaries()[version]
        async with open_foreign(codex, home.environ) as first:
            thread = await first.start_thread(home.workspace, "theirs")
        async with (
            open_real_agent(home, version=version, **settings) as house,
            open_local(house) as client,
        ):
            yield home, client, thread


@pytest.mark.parametrize(
    "version",
    [pytest.param(BUNDLED, marks=()), pytest.param(NEWEST, marks=pytest.mark.long)],
)
async def test_of_two_messages_at_once_one_runs_and_the_other_goes_into_no_turn(
    version: str,
) -> None:
    outcomes: list[str] = []
    with trio.fail_after(60):
        async with open_house(version, HELD) as (home, client, thread):

            async def send(name: str) -> None:
                params = send_params(
                    thread, f"in the middle {name}", key=name, wait_ms=20_000
                )
                try:
                    await client.call(TURN_START, params, timeout_s=60)
                except Conflict as refusal:
                    outcomes.append(refusal.data["what"])
                else:
                    outcomes.append("started")

            async with trio.open_nursery() as nursery:
                for name in ("one", "two"):
                    nursery.start_soon(send, name)
            assert sorted(outcomes) == ["running", "started"]
            await home.model.wait_held("middle")
            home.model.release("middle")
            while (turn := await newest(client, thread)).status is (
                TurnStatus.IN_PROGRESS
            ):
                pass  # each is a round trip
            assert turn.status is TurnStatus.COMPLETED
            said = [text for text in await texts_of(home) if "middle" in text]
            assert len(said) == 1


@asynccontextmanager
async def open_killing(
    version: str,
) -> AsyncGenerator[tuple[CodexHome, Client, str, Path]]:
    """An Agent whose codex can be killed right behind an answer."""
    async with open_codex_home() as home:
        codex = codex_binaries()[version]
        async with open_foreign(codex, home.environ) as first:
            thread = await first.start_thread(home.workspace, "theirs")
        folder = home.home.parent / "killing"
        runtime = CodexRuntime(
            codex=place_killing(folder, Codex(path=codex, version=version)),
            home=home.home,
            records=folder / "processes",
            now_ms=wall_ms,
        )
        async with (
            open_real_agent(home, version=version, runtime=runtime, idle_s=1) as house,
            open_local(house) as client,
        ):
            yield home, client, thread, folder


async def wait_reaped(client: Client, thread: str) -> None:
    await wait_lease(client, thread, LeaseState.NONE)
    while (await status(client)).leases:
        pass  # a new thread's, whose id is not known


@pytest.mark.parametrize(
    "version",
    [pytest.param(BUNDLED, marks=()), pytest.param(NEWEST, marks=pytest.mark.long)],
)
async def test_a_kill_right_behind_the_answer_is_no_conflict_and_sends_nothing_twice(
    version: str,
) -> None:
    """The client expects the newest turn that it can know of; the hidden one is ours."""
    with trio.fail_after(120):
        async with open_killing(version) as (home, client, thread, folder):
            for ms in WINDOW_MS:
                kill_after(folder, "turn/start", ms)
                params = send_params(
                    thread, f"cut {ms}", key=f"cut{ms}", wait_ms=20_000
                )
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


MAKING = {
    "a fork, killed when it is made": ("thread/fork", "thread/fork"),
    "a thread, killed when it is made": ("thread/start", "thread/start"),
    "a thread, killed as its turn begins": ("thread/start", "turn/start"),
    "a fork, killed as its turn begins": ("thread/fork", "turn/start"),
}


async def make(home: CodexHome, client: Client, thread: str, method: str) -> str:
    """Make a thread or a fork under its one key; return its id."""
    given: list[Any] = [TextInput(type="text", text="made")]
    if method == "thread/fork":
        fork = thread_acts.ThreadForkParams(
            thread_id=thread, input=given, request_key=key("made"), wait_ms=20_000
        )
        return (await client.call(THREAD_FORK, fork, timeout_s=60)).thread.id
    new = threads.ThreadStartParams(
        cwd=str(home.workspace), input=given, request_key=key("made"), wait_ms=20_000
    )
    return (await client.call(THREAD_START, new, timeout_s=60)).thread.id


@pytest.mark.long
@pytest.mark.parametrize("ms", [0, 1, 5])
@pytest.mark.parametrize("case", MAKING)
async def test_what_is_left_of_a_writer_killed_while_it_makes_is_nothing_or_has_a_name(
    case: str, ms: int
) -> None:
    method, answered = MAKING[case]
    with trio.fail_after(90):
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


async def outcome(home: CodexHome, client: Client, thread: str, method: str) -> str:
    """Make it, and return its id, also where its outcome is unknown."""
    try:
        return await make(home, client, thread, method)
    except OutcomeUnknown as unknown:
        return str(unknown.data["threadId"])


async def delete(client: Client, thread: str) -> None:
    """Delete a thread when nothing runs in it; a ghost may not be there at all.

    Forks of it that nobody knows would keep it for ever.
    """
    params = thread_acts.ThreadDeleteParams(
        thread_id=thread, request_key=key(f"delete{thread[-8:]}"), wait_ms=20_000
    )
    while True:
        try:
            with suppress(NotFound):
                await client.call(THREAD_DELETE, params, timeout_s=60)
        except Conflict as refusal:
            if refusal.data["what"] != "running":  # else it is being answered
                raise
        else:
            return


async def test_reading_runs_no_login_shell_of_the_person(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with trio.fail_after(60):
        async with open_codex_home() as home:
            async with open_foreign(codex_binaries()[BUNDLED], home.environ) as first:
                thread = await first.start_thread(home.workspace, "theirs")
            person = home.home.parent / "person"
            person.mkdir()
            ran = person / "ran"
            (person / ".bash_profile").write_text(f"touch {ran}\n")
            monkeypatch.setenv("HOME", str(person))
            monkeypatch.setenv("SHELL", "/bin/bash")
            async with open_real_agent(home) as house, open_local(house) as client:
                assert await thread_ids(client) == [thread]
                assert (await newest(client, thread)).status is TurnStatus.COMPLETED
                name = thread_acts.ThreadRenameParams(
                    thread_id=thread,
                    name="New",
                    request_key=key("name"),
                    wait_ms=20_000,
                )
                await client.call(THREAD_RENAME, name, timeout_s=60)
                away = thread_acts.ThreadArchiveParams(
                    thread_id=thread, request_key=key("away")
                )
                await client.call(THREAD_ARCHIVE, away, timeout_s=60)
                back = thread_acts.ThreadUnarchiveParams(
                    thread_id=thread, request_key=key("back")
                )
                await client.call(THREAD_UNARCHIVE, back, timeout_s=60)
                assert not ran.exists()
                await send_to_end(client, thread, "ours", key="ours")
                while not ran.exists():  # a writer does: the test can tell
                    await trio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    "version",
    [
        BUNDLED,
        pytest.param(
            WITHOUT_LOCK,
            marks=[
                pytest.mark.long,
                pytest.mark.skipif(
                    WITHOUT_LOCK not in codex_binaries(), reason="it is not here"
                ),
            ],
        ),
    ],
)
async def test_acts_on_a_thread_whose_turn_runs_pass_it_or_wait(version: str) -> None:
    """An old codex takes no lock: it would archive a thread under our own writer."""
    with trio.fail_after(90):
        async with open_house(version, HELD) as (home, client, thread):
            params = send_params(thread, "in the middle", key="turn", wait_ms=20_000)
            started = await client.call(TURN_START, params, timeout_s=60)
            await home.model.wait_held("middle")
            name = thread_acts.ThreadRenameParams(
                thread_id=thread, name="New", request_key=key("name")
            )
            await client.call(THREAD_RENAME, name, timeout_s=60)
            archive = thread_acts.ThreadArchiveParams(
                thread_id=thread, request_key=key("archive")
            )
            delete = thread_acts.ThreadDeleteParams(
                thread_id=thread, request_key=key("delete")
            )
            with pytest.raises(Conflict) as refusal:
                await client.call(THREAD_ARCHIVE, archive, timeout_s=60)
            assert refusal.value.data["what"] == "running"
            with pytest.raises(Conflict) as refusal:
                await client.call(THREAD_DELETE, delete, timeout_s=60)
            assert refusal.value.data["what"] == "running"
            home.model.release("middle")
            while (turn := await newest(client, thread)).status is (
                TurnStatus.IN_PROGRESS
            ):
                pass  # each is a round trip
            assert (turn.id, turn.status) == (started.sent.id, TurnStatus.COMPLETED)
            await client.call(THREAD_ARCHIVE, archive, timeout_s=60)
            assert (await status(client)).leases == [], "our writer has ended first"
            with pytest.raises((NotResumable, NotFound)):  # an old one does not say why
                more = send_params(thread, "more", key="more")
                await client.call(TURN_START, more, timeout_s=60)
            back = thread_acts.ThreadUnarchiveParams(
                thread_id=thread, request_key=key("back")
            )
            restored = await client.call(THREAD_UNARCHIVE, back, timeout_s=60)
            assert restored.thread.title == "New"
