"""A turn counts as started only when the stream shows it."""

from typing import Any

import pytest

from adapter.calls.proof import TurnProof

THREAD, KEY = "thr", "key-1"


def started(turn_id: str, thread_id: str = THREAD) -> tuple[str, dict[str, Any]]:
    return "turn/started", {"threadId": thread_id, "turn": {"id": turn_id}}


def message(
    turn_id: str, key: str | None, kind: str = "userMessage", thread_id: str = THREAD
) -> tuple[str, dict[str, Any]]:
    item = {"type": kind, "id": "i", "clientId": key}
    return "item/started", {"threadId": thread_id, "turnId": turn_id, "item": item}


@pytest.fixture
def proof() -> TurnProof:
    return TurnProof(THREAD, KEY)


def test_the_answer_alone_proves_nothing(proof: TurnProof) -> None:
    proof.accepted({"turn": {"id": "t1"}})
    assert proof.turn_id is None


@pytest.mark.parametrize("answer_first", [True, False])
def test_the_answered_turn_seen_to_start_is_proof(
    proof: TurnProof, answer_first: bool
) -> None:
    if answer_first:
        proof.accepted({"turn": {"id": "t1"}})
    proof.notified(*started("t1"))
    proof.accepted({"turn": {"id": "t1"}})
    assert proof.turn_id == "t1"


def test_a_phantom_id_gives_way_to_the_turn_that_holds_our_key(
    proof: TurnProof,
) -> None:
    proof.accepted({"turn": {"id": "phantom"}})
    proof.notified(*message("real", KEY))
    assert proof.turn_id == "real"


def test_our_key_is_proof_even_where_the_answer_made_no_sense(proof: TurnProof) -> None:
    proof.accepted({"turn": 5})
    proof.notified(*message("real", KEY))
    assert proof.turn_id == "real"


@pytest.mark.parametrize(
    "news",
    [
        started("another"),
        started("t1", thread_id="child"),
        message("t1", "other-key"),
        message("t1", None),
        message("t1", KEY, kind="agentMessage"),
        message("t1", KEY, thread_id="child"),
        ("turn/started", {"threadId": THREAD}),
        ("item/started", {"threadId": THREAD, "turnId": "t1", "item": None}),
        ("turn/completed", {"threadId": THREAD, "turn": {"id": "t1"}}),
        ("turn/started", {}),
    ],
    ids=str,
)
def test_other_news_prove_nothing(
    proof: TurnProof, news: tuple[str, dict[str, Any]]
) -> None:
    proof.accepted({"turn": {"id": "t1"}})
    proof.notified(*news)
    assert proof.turn_id is None
