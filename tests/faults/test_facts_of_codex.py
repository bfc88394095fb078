"""What Codex is known to do at bad moments costs nobody a turn, a message or a thread.

| Codex does this | tested by |
|---|---|
| a request right behind `thread/unsubscribe` hangs the process | here: no thread is ever unsubscribed; `test_thread_given_back`: a message that comes while the thread is given back |
| an unsubscribe before `turn/started` cuts the turn short | here, the same; `test_desktop_during_a_turn`: before the response |
| an unload takes a queued message and answers it never | `test_foreign_queue_and_goal`, `test_next_turn_by_itself` |
| a queued message runs at the end of a turn, or when anyone loads | `test_foreign_queue_and_goal` |
| a `turn/start` in that moment goes into the queued turn | `test_foreign_queue_and_goal`, `test_next_turn_by_itself` |
| of two `turn/start` at once the second goes into the first's turn | here: two messages at once |
| a kill right behind an answer hides the turn from every list | `test_killed_behind_an_answer`: no conflict; `test_admission_conflicts`: who expects the own turn that a crash hid |
| a full output keeps a process from ending; a lock outlives it by ms | `test_child_process`: much to say; `test_codex_runtime`: our own next writer |
| each load runs the person's login shell | here: reading runs none; `test_codex_runtime`: is not cut short; `test_closing_agent` |
| a command cut short leaves `.git` and the like in the folder | `test_desktop_during_a_turn`: command running |
| many starts on a fresh home kill processes | `test_thread_given_back`: on a fresh home |
| names and goals pass a running turn, archiving does not; an old codex lets it pass | here: acts on a thread whose turn runs |
| a fork without a turn stays, and keeps its source from being deleted | `test_forks`: a fork whose message is refused; `test_threads_real`: a fork goes on |
| a killed start leaves ghosts that no list shows | `test_killed_behind_an_answer`: killed while it makes |
| reads fail while somebody archives | `test_thread_given_back`: never called deleted; `test_codex_with_fake`: tried again |
"""

from pathlib import Path

import pytest
import trio

from clients.cli.scripted_model import Rule
from tests.support.codex import (
    BUNDLED,
    WITHOUT_LOCK,
    codex_binaries,
    locking_versions,
    open_codex_home,
)
from tests.support.foreign import open_foreign
from tests.support.real_agent import (
    open_local,
    open_real_agent,
    send_params,
    send_to_end,
    status,
    thread_ids,
)
from tests.support.real_threads import key
from tests.support.thread_of_another import newest, open_house, texts_of
from transport.errors import Conflict, NotFound, NotResumable
from transport.protocol import thread_acts
from transport.protocol.methods import (
    THREAD_ARCHIVE,
    THREAD_DELETE,
    THREAD_RENAME,
    THREAD_UNARCHIVE,
    TURN_START,
)
from transport.protocol.turns import TurnStatus

pytestmark = pytest.mark.codex
ROOT = Path(__file__).parents[2]
HELD = Rule("in the middle", [[{"partial": "words"}, {"hold": "middle"}]])
NEWEST = locking_versions()[-1]


def test_no_thread_is_ever_unsubscribed() -> None:
    """A thread is given back by the end of its process, and in no other way."""
    sources = [*(ROOT / "adapter").rglob("*.py"), *(ROOT / "agent").rglob("*.py")]
    assert len(sources) > 100
    assert not [one for one in sources if "thread/unsubscribe" in one.read_text()]


@pytest.mark.parametrize(
    "version",
    [pytest.param(BUNDLED, marks=()), pytest.param(NEWEST, marks=pytest.mark.long)],
)
async def test_of_two_messages_at_once_one_runs_and_the_other_goes_into_no_turn(
    version: str,
) -> None:
    outcomes: list[str] = []
    with trio.fail_after(240):
        async with open_house(version, HELD) as (home, client, thread):

            async def send(name: str) -> None:
                params = send_params(thread, f"in the middle {name}", key=name)
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


async def test_reading_runs_no_login_shell_of_the_person(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with trio.fail_after(240):
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
                    thread_id=thread, request_key=key("away"), wait_ms=20_000
                )
                await client.call(THREAD_ARCHIVE, away, timeout_s=60)
                back = thread_acts.ThreadUnarchiveParams(
                    thread_id=thread, request_key=key("back"), wait_ms=20_000
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
    with trio.fail_after(240):
        async with open_house(version, HELD) as (home, client, thread):
            params = send_params(thread, "in the middle", key="turn")
            started = await client.call(TURN_START, params, timeout_s=60)
            await home.model.wait_held("middle")
            name = thread_acts.ThreadRenameParams(
                thread_id=thread, name="New", request_key=key("name"), wait_ms=20_000
            )
            await client.call(THREAD_RENAME, name, timeout_s=60)
            archive = thread_acts.ThreadArchiveParams(
                thread_id=thread, request_key=key("archive"), wait_ms=20_000
            )
            delete = thread_acts.ThreadDeleteParams(
                thread_id=thread, request_key=key("delete"), wait_ms=20_000
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
                thread_id=thread, request_key=key("back"), wait_ms=20_000
            )
            restored = await client.call(THREAD_UNARCHIVE, back, timeout_s=60)
            assert restored.thread.title == "New"
