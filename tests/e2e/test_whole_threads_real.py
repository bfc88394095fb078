"""Compacting, taking back and reviewing on real codex: as clients see it live and stored."""

import subprocess

import pytest

from tests.support.codex import (
    BUNDLED,
    WITHOUT_LOCK,
    codex_binaries,
)
from tests.support.foreign import open_foreign
from tests.support.real_agent import (
    send_params,
    wait_lease,
)
from tests.support.real_views import key, shape, stage
from transport.errors import Conflict, InvalidParams, NotFound, UnavailableFeature
from transport.protocol import contents, methods, thread_acts, turns
from transport.protocol.capabilities import CapabilitiesParams, CapabilityStatus
from transport.protocol.gateway import LeaseState
from transport.protocol.items import Item
from transport.protocol.turns import TextInput, TurnStatus

pytestmark = pytest.mark.codex
VERSIONS = [
    pytest.param(v, marks=[] if v == BUNDLED else pytest.mark.long)
    for v in (BUNDLED, "0.171.0")
    if v in codex_binaries()
]
OLD = [v for v in (WITHOUT_LOCK, "0.147.0") if v in codex_binaries()]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_thread_is_compacted_in_a_turn_that_is_seen_and_can_be_stopped(
    version: str,
) -> None:
    async with stage(version) as on:
        thread_id, _ = await on.new_thread("one", "two")
        first = await on.compact(thread_id)
        await on.home.model.wait_held("summary")
        steer = turns.TurnSteerParams(
            thread_id=thread_id,
            turn_id=first.id,
            input=[TextInput(type="text", text="more")],
            request_key=key("steer"),
        )
        with pytest.raises(Conflict) as refused:
            await on.client.call(methods.TURN_STEER, steer)
        assert refused.value.data["what"] == "running"
        assert (await on.interrupt(thread_id, first.id)).status is (
            TurnStatus.INTERRUPTED
        )
        on.home.model.release("summary")
        params = thread_acts.ThreadCompactParams(
            thread_id=thread_id, request_key=key("once-more")
        )
        result = await on.client.call(methods.THREAD_COMPACT, params, timeout_s=60)
        assert (await on.view.until_ended(result.turn.id)).status is (
            TurnStatus.COMPLETED
        )
        assert [one.kind for one in on.view.items[result.turn.id].values()] == [
            "compaction"
        ]
        await on.send(thread_id, "three")
        texts = on.home.model.requests[-1].texts
        assert any("three harbours" in text for text in texts)  # the model reads it
        assert await on.stored(thread_id) == on.view.picture()


@pytest.mark.parametrize("version", VERSIONS)
async def test_turns_are_taken_back_for_good_and_every_view_is_right(
    version: str,
) -> None:
    async with stage(version, idle_s=600.0) as on:
        thread_id, ids = await on.new_thread("one", "two", "three", "four")
        before = await on.stored(thread_id)
        with pytest.raises(NotFound):
            await on.revert(thread_id, "01a22d81-d37a-77a3-886f-99744ba923c3")
        with pytest.raises(InvalidParams):
            await on.revert(thread_id, ids[0])
        with pytest.raises(Conflict) as moved:
            await on.revert(thread_id, ids[2], expected_last_turn_id=ids[2])
        assert moved.value.data["what"] == "lastTurn"
        assert await on.stored(thread_id) == before
        assert on.view.reverted == []

        thread = await on.revert(thread_id, ids[2], expected_last_turn_id=ids[3])
        assert thread.last_turn_id == ids[1]
        await on.view.until_reverted()
        assert on.view.reverted == [ids[1]]
        assert list(on.view.turns) == ids[:2]
        assert await on.stored(thread_id) == on.view.picture() == before[:2]

        fifth = await on.send(thread_id, "five")  # by the same writer, which knows
        assert list(on.view.turns) == [*ids[:2], fifth]
        assert await on.stored(thread_id) == on.view.picture()
        texts = on.home.model.requests[-1].user_texts
        assert "two" in texts
        assert "three" not in texts
        assert "foreignTurn" not in on.view.notices


@pytest.mark.parametrize("version", VERSIONS)
async def test_nothing_is_taken_back_while_anything_runs(version: str) -> None:
    async with stage(version) as on:
        thread_id, ids = await on.new_thread("one", "two")
        await on.send(thread_id, "left behind")
        with pytest.raises(Conflict) as runs:  # a command in the background
            await on.revert(thread_id, ids[1])
        assert runs.value.data["what"] == "running"
        params = turns.TurnInterruptParams(
            thread_id=thread_id,
            turn_id=list(on.view.turns)[-1],
            background=True,
            request_key=key("end-it"),
        )
        await on.client.call(methods.TURN_INTERRUPT, params)
        turn = await on.compact(thread_id)
        await on.home.model.wait_held("summary")
        with pytest.raises(Conflict) as runs:  # and a turn
            await on.revert(thread_id, ids[1])
        assert runs.value.data["what"] == "running"
        assert on.view.turns[turn.id].status is TurnStatus.IN_PROGRESS
        await on.interrupt(thread_id, turn.id)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_review_is_one_turn_live_and_stored_and_can_be_taken_back(
    version: str,
) -> None:
    async with stage(version) as on:
        git = "git init -q . && touch new.txt"
        subprocess.run(git, shell=True, cwd=on.home.workspace, check=True)  # noqa: ASYNC221, S602 - a test's own words
        thread_id, ids = await on.new_thread("one")
        turn = await on.review(thread_id, {"type": "uncommitted"})
        assert (await on.view.until_ended(turn.id)).status is TurnStatus.COMPLETED
        items = shape(list(on.view.items[turn.id].values()))
        kinds = [kind for kind, _ in items]
        assert kinds == ["review", "userMessage", "review", "agentMessage"]
        assert on.view.picture() == await on.stored(thread_id)
        last = await on.send(thread_id, "two")
        assert await on.stored(thread_id) == on.view.picture()
        assert list(on.view.turns) == [*ids, turn.id, last]
        told: list[Item] = []
        for order in ("asc", "desc"):
            listed = contents.ItemListParams(thread_id=thread_id, order=order)
            page = await on.client.call(methods.ITEM_LIST, listed)
            assert {item.turn_id for item in page.items} == set(on.view.turns)
            listed = contents.ItemListParams(
                thread_id=thread_id, turn_id=turn.id, order=order
            )
            page = await on.client.call(methods.ITEM_LIST, listed)
            told = list(page.items) if order == "asc" else page.items[::-1]
            assert shape(told) == items
            assert {item.turn_id for item in told} == {turn.id}
        prompt = told[1].id
        words = contents.ThreadFindParams(thread_id=thread_id, query="code changes")
        hits = (await on.client.call(methods.THREAD_FIND, words)).hits
        assert (turn.id, prompt) in {(hit.turn_id, hit.item_id) for hit in hits}
        assert {hit.turn_id for hit in hits} <= set(on.view.turns)
        await on.revert(thread_id, last, expected_last_turn_id=last)
        await on.view.until_reverted()  # what this run told is read from history now
        whole = contents.ItemOutputParams(
            thread_id=thread_id, turn_id=turn.id, item_id=prompt, field="text"
        )
        text = await on.client.call(methods.ITEM_OUTPUT, whole)
        assert b"code changes" in text.bytes

        forked = thread_acts.ThreadForkParams(
            thread_id=thread_id,
            before_turn_id=turn.id,
            input=[TextInput(type="text", text="instead")],
            request_key=key("fork"),
        )
        fork = await on.client.call(methods.THREAD_FORK, forked, timeout_s=60)
        params = turns.TurnListParams(thread_id=fork.thread.id, order="asc")
        found = await on.client.call(methods.TURN_LIST, params)
        assert [one.id for one in found.turns] == [*ids, fork.turn.id]
        await on.view.until_ended(fork.turn.id)
        del on.view.turns[fork.turn.id]

        await on.revert(thread_id, turn.id, expected_last_turn_id=turn.id)
        await on.view.until(lambda: list(on.view.turns) == ids)
        assert await on.stored(thread_id) == on.view.picture()


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_review_can_be_stopped_and_reads_the_same_while_it_runs(
    version: str,
) -> None:
    async with stage(version) as on:
        thread_id, ids = await on.new_thread("one")
        turn = await on.review(thread_id, {"type": "custom", "text": "Look slowly."})
        await on.home.model.wait_held("slowly")
        assert [one[0] for one in await on.stored(thread_id)] == [*ids, turn.id]
        with pytest.raises(Conflict) as busy:
            await on.client.call(
                methods.TURN_START, send_params(thread_id, "and?", key="and")
            )
        assert busy.value.data["what"] == "running"
        ended = await on.interrupt(thread_id, turn.id)
        assert (ended.id, ended.status) == (turn.id, TurnStatus.INTERRUPTED)
        assert await on.stored(thread_id) == on.view.picture()
        on.home.model.release("slowly")
        last = await on.send(thread_id, "two")
        assert list(on.view.turns) == [*ids, turn.id, last]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_review_keeps_to_the_sandbox_and_asks_nobody(version: str) -> None:
    async with stage(version) as on:
        thread_id, _ = await on.new_thread("one")
        target = {"type": "custom", "text": "Look with commands."}
        turn = await on.review(thread_id, target)
        assert (await on.view.until_ended(turn.id)).status is TurnStatus.COMPLETED
        assert (on.home.workspace / "inside").exists()
        beside = {path.name for path in on.home.workspace.parent.iterdir()}
        assert not beside & {"outside", "asked"}


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_another_program_reviews_and_takes_back_is_told_alike(
    version: str,
) -> None:
    async with stage(version, watch=None) as on:
        codex = codex_binaries()[version]
        async with open_foreign(codex, on.home.environ) as foreign:
            thread_id = await foreign.start_thread(on.home.workspace, "one")
            second = await foreign.turn(thread_id, "two")
            target = {"type": "custom", "instructions": "Look slowly."}
            asked = {"threadId": thread_id, "target": target}
            review = (await foreign.request("review/start", asked))["turn"]["id"]
            await on.home.model.wait_held("slowly")
            await on.view.until_begun(review)
            assert on.view.turns[review].status is TurnStatus.IN_PROGRESS
            on.home.model.release("slowly")
            assert (await on.view.until_ended(review)).status is TurnStatus.COMPLETED
            await on.view.until(lambda: len(on.view.items[review]) == 4)
            assert list(on.view.turns)[-1] == review
            params = {"threadId": thread_id, "beforeTurnId": second["id"]}
            await foreign.request("thread/revert", params)
            await on.view.until_reverted()
            assert [row[:2] for row in on.view.picture()] == [
                row[:2] for row in await on.stored(thread_id)
            ]
            assert len(on.view.turns) == 1


@pytest.mark.parametrize("version", OLD)
async def test_a_codex_that_cannot_says_so_and_still_compacts(version: str) -> None:
    async with stage(version, idle_s=1.0) as on:
        on.home.model.release("summary")
        thread_id, ids = await on.new_thread("one", "two")
        rows = await on.client.call(methods.GATEWAY_CAPABILITIES, CapabilitiesParams())
        status = {row.feature: row.status for row in rows.rows}
        assert status["thread/compact"] is CapabilityStatus.SUPPORTED
        assert status["thread/revert"] is CapabilityStatus.UNAVAILABLE
        assert status["review/start"] is CapabilityStatus.UNAVAILABLE
        with pytest.raises(UnavailableFeature):
            await on.revert(thread_id, ids[1])
        with pytest.raises(UnavailableFeature):
            await on.review(thread_id, {"type": "uncommitted"})
        turn = await on.compact(thread_id)
        assert (await on.view.until_ended(turn.id)).status is TurnStatus.COMPLETED
        assert [one[0] for one in await on.stored(thread_id)] == [*ids, turn.id]
        await wait_lease(on.client, thread_id, LeaseState.NONE)
