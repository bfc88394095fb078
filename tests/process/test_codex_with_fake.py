"""The runtime against an app-server that misbehaves on purpose."""

import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from adapter.errors import (
    AnswerShapeError,
    ChildExitedError,
    CodexOverloadedError,
    CodexRefusedError,
    DiedUnansweredError,
    HandshakeFailedError,
    NoAnswerError,
    NotDeliveredError,
    ThreadLockedError,
    ThreadUnknownError,
)
from adapter.limits import END_S, REQUESTS_IN_FLIGHT, RETRY_PAUSES_S
from adapter.runtime.events import ItemDelta
from adapter.runtime.reader import ThreadQuery, TurnPage
from adapter.runtime.threads import NewThread
from tests.support.codex import work_folder
from tests.support.fake_app_server import (
    MISFIT,
    completed,
    loaded,
    place_fake,
    sent,
    started,
    thread,
    turn,
)
from tests.support.measures import in_time
from tests.support.runtimes import Running, open_codex_runtime, open_gate
from transport.protocol.approvals import ApprovalState
from transport.protocol.turns import TurnStatus

THREAD, KEY = "thr_1", "key-0123456789abcdef"
LOCKED: Any = {
    "code": -32600,
    "message": f"thread {THREAD} already has an active writer",
}
MOVING: Any = {"code": -32600, "message": "failed to read lineage metadata: gone"}
UNSURE: Any = {"code": -32600, "message": f"thread not loaded: {THREAD}"}
RESUMED: list[Any] = [{"result": loaded(THREAD)}]
NO_TURNS: list[Any] = [[{"result": {"data": [], "nextCursor": None}}]]
ROWS: list[Any] = [{"result": {"data": [thread(THREAD)], "nextCursor": None}}]


@pytest.fixture
def folder() -> Iterator[Path]:
    with work_folder("fake") as made:
        yield made


@asynccontextmanager
async def open_fake(
    folder: Path, *, start: object = (), answers: object = None, **on: object
) -> AsyncGenerator[Running]:
    """Run a runtime on a fake; `on`: thread__list for thread/list, and so on."""
    plays = {name.replace("__", "/"): play for name, play in on.items()}
    script = {"on": plays, "start": start, "answers": answers or {}}
    codex = place_fake(folder / "bin", script)
    (folder / "home").mkdir(exist_ok=True)
    with trio.fail_after(240):
        async with open_codex_runtime(codex, folder / "home") as run:
            yield run


def sent_methods(folder: Path) -> list[str]:
    return [str(message.get("method")) for message in sent(folder / "bin")]


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


async def test_our_own_lock_is_waited_for_once_and_a_foreign_one_is_not(
    folder: Path,
) -> None:
    plays = [RESUMED]
    async with open_fake(
        folder, thread__resume=plays, thread__turns__list=NO_TURNS
    ) as run:
        async with run.writer(THREAD):
            pass
        # The next process says "locked" once, as codex does while the old one dies.
        place_fake(
            folder / "bin",
            {
                "on": {
                    "thread/resume": [[{"error": LOCKED}], RESUMED],
                    "thread/turns/list": NO_TURNS,
                }
            },
        )
        looks: list[str] = []
        async with run.runtime.open_writer(run.seen, guard=open_gate) as writer:
            await writer.resume(THREAD, guard=lambda: looks.append("looked"))
            assert looks == ["looked", "looked"]
        async with run.runtime.open_writer(run.seen, guard=open_gate) as writer:
            with pytest.raises(ThreadLockedError):
                await writer.resume("thr_other", guard=open_gate)


DONE: list[Any] = [{"result": {}}]
STARTED: list[Any] = [{"result": {"turn": turn("turn_1")}}, started("turn_1")]


@asynccontextmanager
async def open_loaded(
    folder: Path, **on: object
) -> AsyncGenerator[tuple[Running, Any]]:
    """A fake with a writer in which THREAD is loaded."""
    plays: dict[str, Any] = {
        "thread__resume": [RESUMED],
        "thread__turns__list": NO_TURNS,
        **on,
    }
    async with open_fake(folder, **plays) as run, run.writer(THREAD) as writer:
        yield run, writer


async def test_a_turn_without_proof_is_unknown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.servers.running.PROOF_S", 0.3)
    phantom: Any = [{"result": {"turn": turn("phantom")}}, started("another")]
    async with open_loaded(folder, turn__start=[phantom]) as (_, writer):
        with pytest.raises(NoAnswerError):
            await writer.start_turn(["x"], client_key=KEY, guard=open_gate)


async def test_a_phantom_id_gives_way_to_the_turn_with_our_key(folder: Path) -> None:
    item: Any = {
        "type": "userMessage",
        "id": "i1",
        "clientId": "$clientUserMessageId",
        "content": [{"type": "text", "text": "x"}],
    }
    params: Any = {"threadId": THREAD, "turnId": "real", "item": item, "startedAtMs": 1}
    play: Any = [
        started("real"),
        {"result": {"turn": turn("phantom")}},
        {"notify": "item/started", "params": params},
    ]
    async with open_loaded(folder, turn__start=[play]) as (_, writer):
        ours = await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
        assert ours.id == "real"
        assert writer.running_turn_id == "real"


async def test_dying_after_the_bytes_is_unknown_and_before_them_certain(
    folder: Path,
) -> None:
    outcomes: list[Exception] = []
    with pytest.raises(ChildExitedError):
        async with open_loaded(folder, turn__start=[[{"kill": True}]]) as (_, writer):
            try:
                await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
            except NoAnswerError as exc:
                outcomes.append(exc)
            with trio.CancelScope(shield=True):  # as from a task outside the block
                try:
                    await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
                except NotDeliveredError as exc:
                    outcomes.append(exc)
    assert [type(one) for one in outcomes] == [DiedUnansweredError, NotDeliveredError]


async def test_a_refused_turn_leaves_a_new_threads_name_unsaid(folder: Path) -> None:
    refused: Any = [
        {"error": {"code": -32600, "message": "failed to load configuration"}}
    ]
    async with (
        open_fake(folder, thread__start=[RESUMED], turn__start=[refused]) as run,
        run.writer() as writer,
    ):
        await writer.start_thread(NewThread(cwd="/w", name="N"), guard=open_gate)
        with pytest.raises(CodexRefusedError, match="configuration"):
            await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
    assert "thread/name/set" not in sent_methods(folder)


async def test_only_what_was_asked_for_reaches_a_new_thread(folder: Path) -> None:
    async with (
        open_fake(folder, thread__start=[RESUMED], turn__start=[STARTED]) as run,
        run.writer() as writer,
    ):
        await writer.start_thread(NewThread(cwd="/w"), guard=open_gate)
        every = NewThread(
            cwd="/w",
            name="N",
            model="m",
            effort="low",
            sandbox="read-only",
            approval_policy="untrusted",
        )
        await writer.start_thread(every, guard=open_gate)
        await writer.start_turn(["a", "b"], client_key=KEY, guard=open_gate)
    asked = {m["method"]: m["params"] for m in sent(folder / "bin") if "params" in m}
    first, second = [
        m["params"] for m in sent(folder / "bin") if m["method"] == "thread/start"
    ]
    assert first == {"cwd": "/w"}
    assert second == {
        "cwd": "/w",
        "model": "m",
        "config": {"model_reasoning_effort": "low"},
        "sandbox": "read-only",
        "approvalPolicy": "untrusted",
    }
    assert asked["thread/name/set"] == {"threadId": THREAD, "name": "N"}
    assert asked["turn/start"] == {
        "threadId": THREAD,
        "input": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "clientUserMessageId": KEY,
    }
    assert run.seen.notices() == ["notNamed"]  # the fake knows no thread/name/set


async def test_a_question_that_nobody_here_can_answer_is_refused_at_once(
    folder: Path,
) -> None:
    odd: Any = {"ask": "odd/question", "id": 0, "params": {"threadId": THREAD}}
    known: Any = {
        "ask": "item/tool/call",
        "id": 1,
        "params": {
            "threadId": THREAD,
            "turnId": "turn_1",
            "callId": "c",
            "tool": "t",
            "arguments": {},
        },
    }
    play: Any = [*STARTED, odd, known]
    ends: Any = {"1": [completed("turn_1")]}
    async with open_loaded(folder, turn__start=[play], answers=ends) as (run, writer):
        await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
        await run.seen.turn_completed("turn_1")  # the fake says it when both came
        assert writer.approvals() == []
    answers = {m["id"]: m for m in sent(folder / "bin") if "method" not in m}
    assert "error" in answers[0]
    assert "error" in answers[1] or answers[1]["result"]["success"] is False


async def test_an_interrupt_that_is_never_confirmed_is_unknown_and_withdraws_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.servers.interrupt.TURN_END_S", 0.3)
    question: Any = {
        "ask": "item/commandExecution/requestApproval",
        "id": 0,
        "params": {
            "threadId": THREAD,
            "turnId": "turn_1",
            "itemId": "c1",
            "startedAtMs": 1,
            "command": "touch /x",
            "cwd": "/w",
            "availableDecisions": ["accept", "cancel"],
        },
    }
    async with open_loaded(
        folder, turn__start=[[*STARTED, question]], turn__interrupt=[DONE]
    ) as (run, writer):
        await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
        await run.seen.approval()
        with pytest.raises(NoAnswerError):
            await writer.interrupt("turn_1")
        assert [end.state for end in run.seen.resolved()] == [ApprovalState.WITHDRAWN]
        assert writer.running_turn_id == "turn_1"
        assert writer.busy


async def test_a_turn_that_ends_while_it_is_interrupted_is_just_ended(
    folder: Path,
) -> None:
    gone: Any = {"error": {"code": -32600, "message": "no active turn to interrupt"}}
    play: Any = [completed("turn_1"), gone]
    async with open_loaded(folder, turn__start=[STARTED], turn__interrupt=[play]) as (
        _,
        writer,
    ):
        await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
        ended = await writer.interrupt("turn_1")
        assert ended.status is TurnStatus.COMPLETED


async def test_an_interrupt_reaches_the_turns_of_sub_agents(folder: Path) -> None:
    child: Any = thread("thr_child", parentThreadId=THREAD)
    play: Any = [
        *STARTED,
        {"notify": "thread/started", "params": {"thread": child}},
        started("turn_child", "thr_child"),
    ]
    stop: Any = [{"result": {}}, completed("$turnId", "$threadId", "interrupted")]
    async with open_loaded(folder, turn__start=[play], turn__interrupt=[stop]) as (
        run,
        writer,
    ):
        await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
        await run.seen.until(lambda: "turn_child" in run.seen.turns_started())
        await writer.interrupt("turn_1")
        await writer.wait_idle()
    stopped = [
        (m["params"]["threadId"], m["params"]["turnId"])
        for m in sent(folder / "bin")
        if m.get("method") == "turn/interrupt"
    ]
    assert stopped == [(THREAD, "turn_1"), ("thr_child", "turn_child")]


async def test_a_flood_of_deltas_arrives_whole_and_in_order(folder: Path) -> None:
    item: Any = {"type": "agentMessage", "id": "m1", "text": ""}
    begin: Any = {
        "threadId": THREAD,
        "turnId": "turn_1",
        "item": item,
        "startedAtMs": 1,
    }
    delta: Any = {
        "threadId": THREAD,
        "turnId": "turn_1",
        "itemId": "m1",
        "delta": "x" * 900,
    }
    play: Any = [
        *STARTED,
        {"notify": "item/started", "params": begin},
        {"notify": "item/agentMessage/delta", "params": delta, "flood": 5_000},
        completed("turn_1", status="interrupted"),
    ]
    async with open_loaded(folder, turn__start=[play]) as (run, writer):
        await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
        await run.seen.turn_completed("turn_1")
        text = "".join(e.text for e in run.seen.events if isinstance(e, ItemDelta))
    assert len(text) == 5_000 * 900


async def test_noise_on_stdout_ends_nothing(folder: Path) -> None:
    noise: Any = [{"raw": "warning: no json"}, {"raw": "[]"}, {"raw": '{"method": 5}'}]
    async with open_fake(folder, start=noise, thread__list=[ROWS]) as run:
        page = await run.reader.list_threads(ThreadQuery())
        assert len(page.threads) == 1


async def test_one_that_ignores_every_end_but_the_last_is_killed(folder: Path) -> None:
    deaf: Any = [{"deaf": True}]
    async with open_fake(
        folder, thread__resume=[RESUMED], thread__turns__list=[*NO_TURNS, deaf]
    ) as run:
        async with run.writer(THREAD) as writer:
            with trio.move_on_after(0.5):
                await writer.resume(THREAD, guard=open_gate)
            before = trio.current_time()
        took = trio.current_time() - before
        assert 2 * END_S <= took < 2 * END_S + in_time(2)


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
