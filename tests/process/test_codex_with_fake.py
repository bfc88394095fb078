"""The runtime against an app-server that misbehaves on purpose: its start, its reads, its answers, its end."""

import signal
from pathlib import Path
from typing import Any

import pytest
import trio

from adapter.errors import (
    AnswerShapeError,
    ChildExitedError,
    CodexOverloadedError,
    CodexRefusedError,
    HandshakeFailedError,
    NoAnswerError,
    ThreadUnknownError,
)
from adapter.limits import REQUESTS_IN_FLIGHT, RETRY_PAUSES_S
from adapter.runtime.reader import ThreadQuery, TurnPage
from tests.support.fake_app_server import (
    MISFIT,
    sent,
    thread,
)
from tests.support.runtimes import Running, open_gate
from tests.support.scripted_codex import (
    LOCKED,
    NO_TURNS,
    RESUMED,
    ROWS,
    THREAD,
    open_fake,
    sent_methods,
)

MOVING: Any = {"code": -32600, "message": "failed to read lineage metadata: gone"}
UNSURE: Any = {"code": -32600, "message": f"thread not loaded: {THREAD}"}


async def test_initialize_asks_for_the_experimental_methods(folder: Path) -> None:
    async with open_fake(folder) as run:
        assert run.reader.info.home == str(folder / "home")
    first, second = sent(folder / "bin")
    assert first["method"] == "initialize"
    assert first["params"]["capabilities"] == {"experimentalApi": True}
    assert first["params"]["clientInfo"]["name"] == "threadgate"
    assert second == {"method": "initialized"}


@pytest.mark.parametrize(
    "play",
    [
        [{"error": {"code": -32600, "message": "no"}}],
        [{"raw": '{"id": 1, "result": {"userAgent": 5}}'}],
        [{"raw": '{"id": 1, "result": []}'}],
    ],
    ids=["refused", "odd", "no object"],
)
async def test_a_garbled_greeting_is_a_failed_handshake(
    folder: Path, play: object
) -> None:
    with pytest.raises(HandshakeFailedError):
        async with open_fake(folder, initialize=[play]):
            pytest.fail("it must not start")


async def test_one_that_leaves_before_its_greeting_says_why(folder: Path) -> None:
    steps: Any = [
        {"stderr": "failed to initialize sqlite state runtime\n"},
        {"exit": 1},
    ]
    with pytest.raises(ChildExitedError) as caught:
        async with open_fake(folder, start=steps):
            pytest.fail("it must not start")
    assert caught.value.returncode == 1
    assert "sqlite state runtime" in caught.value.last_words


async def test_a_message_that_codex_would_not_say_ends_the_fake(folder: Path) -> None:
    odd: Any = {"result": {"data": [{"id": 5}]}}
    with pytest.raises(ChildExitedError) as caught:
        async with open_fake(folder, thread__list=[[odd]]) as run:
            with pytest.raises(NoAnswerError):
                await run.reader.list_threads(ThreadQuery())
            await trio.sleep_forever()
    assert caught.value.returncode == MISFIT
    assert "fake app-server" in caught.value.last_words


async def test_the_first_list_scans_and_the_next_ones_read_the_database(
    folder: Path,
) -> None:
    async with open_fake(folder, thread__list=[ROWS]) as run:
        for query in (
            ThreadQuery(),
            ThreadQuery(cwd="/w", query="words", sort="createdAt", archived=True),
            ThreadQuery(parent_id="p", cursor="c", limit=7),
        ):
            page = await run.reader.list_threads(query)
            assert [one.id for one in page.threads] == [THREAD]
    asked = [m["params"] for m in sent(folder / "bin") if m["method"] == "thread/list"]
    scan, *asked = asked
    assert "useStateDbOnly" not in scan
    assert "cwd" not in scan, "it is for all threads, not for who asked first"
    assert [p.get("useStateDbOnly") for p in asked] == [True, True, True]
    assert all(p["modelProviders"] == [] for p in asked)
    assert asked[0]["sourceKinds"] == ["cli", "vscode", "appServer"]
    assert (asked[1]["cwd"], asked[1]["searchTerm"]) == ("/w", "words")
    assert (asked[1]["sortKey"], asked[1]["archived"]) == ("created_at", True)
    assert (asked[2]["parentThreadId"], asked[2]["limit"]) == ("p", 7)
    assert all(kind.startswith("subAgent") for kind in asked[2]["sourceKinds"])


@pytest.mark.parametrize(
    ("refusals", "tries"),
    [
        ([MOVING], 2),
        ([MOVING] * 4, 5),
        ([UNSURE], 2),
        ([UNSURE, MOVING, UNSURE, MOVING], 5),
    ],
    ids=["archived", "again and again", "not there", "in turns"],
)
async def test_a_read_that_fails_in_passing_is_tried_again(
    refusals: list[Any], tries: int, folder: Path
) -> None:
    good: Any = [{"result": {"thread": thread(THREAD)}}]
    plays = [[{"error": one}] for one in refusals] + NO_TURNS
    async with open_fake(folder, thread__read=[good], thread__turns__list=plays) as run:
        page = await newest_turn(run)
        assert page.turns == ()
    assert sent_methods(folder).count("thread/turns/list") == tries


@pytest.mark.parametrize(
    ("refusal", "tries"),
    [(MOVING, 1 + len(RETRY_PAUSES_S)), (UNSURE, 2), (LOCKED, 1)],
    ids=["always moving", "not there", "another refusal"],
)
async def test_a_read_that_keeps_failing_is_believed_at_last(
    refusal: Any, tries: int, folder: Path
) -> None:
    async with open_fake(folder, thread__turns__list=[[{"error": refusal}]]) as run:
        with pytest.raises(CodexRefusedError, match=refusal["message"][:10]):
            await newest_turn(run)
    assert sent_methods(folder).count("thread/turns/list") == tries


async def newest_turn(run: Running) -> TurnPage:
    return await run.reader.list_turns(
        THREAD, cursor=None, limit=1, order="desc", items="full"
    )


async def test_what_a_killed_start_left_is_no_thread(folder: Path) -> None:
    empty: Any = {
        "code": -32603,
        "message": "failed to read: rollout /r.jsonl is empty",
    }
    async with open_fake(folder, thread__read=[[{"error": empty}]]) as run:
        with pytest.raises(ThreadUnknownError):
            await run.reader.read_thread(THREAD)


async def test_an_answer_of_another_shape_is_told_apart(folder: Path) -> None:
    odd: Any = [{"raw": '{"id": 2, "result": {"thread": 5}}'}]
    async with open_fake(folder, thread__read=[odd]) as run:
        with pytest.raises(AnswerShapeError):
            await run.reader.read_thread(THREAD)


async def test_overload_is_a_definite_no(folder: Path) -> None:
    busy: Any = {"code": -32001, "message": "Server overloaded; retry later."}
    async with open_fake(folder, thread__list=[[{"error": busy}]]) as run:
        with pytest.raises(CodexOverloadedError):
            await run.reader.list_threads(ThreadQuery())


async def test_at_most_sixty_four_requests_wait_and_the_next_is_refused(
    folder: Path,
) -> None:
    async with (
        open_fake(folder, thread__read=[[{"hold": True}]]) as run,
        trio.open_nursery() as nursery,
    ):
        for _ in range(REQUESTS_IN_FLIGHT):
            nursery.start_soon(run.reader.read_thread, THREAD)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(CodexOverloadedError):
            await run.reader.read_thread(THREAD)
        nursery.cancel_scope.cancel()


async def test_answers_twice_late_and_out_of_order_reach_who_asked(
    folder: Path,
) -> None:
    answer: Any = {"result": {"thread": thread("$threadId")}}
    plays: list[Any] = [
        [{"hold": True}],
        [answer, answer, {"raw": '{"id": 999, "result": {}}'}],
        [{"release": True, **answer}, answer],
    ]
    got: list[str] = []

    async with open_fake(folder, thread__read=plays) as run:

        async def read(thread_id: str) -> None:
            got.append((await run.reader.read_thread(thread_id)).id)

        async with trio.open_nursery() as nursery:
            for name in ("a", "b", "c"):
                nursery.start_soon(read, name)
                await trio.testing.wait_all_tasks_blocked()
    assert len(got) == 3


async def test_noise_on_stdout_ends_nothing(folder: Path) -> None:
    noise: Any = [{"raw": "warning: no json"}, {"raw": "[]"}, {"raw": '{"method": 5}'}]
    async with open_fake(folder, start=noise, thread__list=[ROWS]) as run:
        page = await run.reader.list_threads(ThreadQuery())
        assert len(page.threads) == 1


async def test_one_that_ignores_every_end_but_the_last_is_killed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.processes.process.END_S", 0.3)
    deaf: Any = [{"deaf": True}]
    async with open_fake(
        folder, thread__resume=[RESUMED], thread__turns__list=[*NO_TURNS, deaf]
    ) as run:
        async with run.writer(THREAD) as writer:
            with trio.move_on_after(0.5):
                await writer.resume(THREAD, guard=open_gate)
            before = trio.current_time()
        took = trio.current_time() - before
        assert took >= 0.6, "each end has its time"


async def test_a_dead_reader_leaves_its_block_and_no_writer_starts_after(
    folder: Path,
) -> None:
    runs: list[Running] = []
    with pytest.raises(ChildExitedError) as caught:
        async with open_fake(folder, thread__list=[[{"kill": True}]]) as run:
            runs.append(run)
            with pytest.raises(NoAnswerError):
                await run.reader.list_threads(ThreadQuery())
            await trio.sleep_forever()
    assert caught.value.returncode == -signal.SIGKILL
    assert runs[0].runtime.own_pids() == set()
