"""A review is one turn, live and stored; and what one may ask to have reviewed."""

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from adapter.calls.capabilities import capabilities
from adapter.calls.proof import RunProof
from adapter.calls.versions import traits_of
from adapter.events.normalize import Normalizer
from adapter.runtime.events import Emitted
from adapter.shapes.reviews import as_told, has_inner, inner_of
from tests.support import codex_says as says
from tests.support.codex_says import AT, THREAD, Raw
from transport.protocol.capabilities import CapabilityStatus
from transport.protocol.events import ThreadReverted
from transport.protocol.reviews import BranchTarget, CommitTarget, CustomTarget


def row(turn_id: str, root: str | None = None, *kinds: str) -> Raw:
    items = [{"type": kind, "id": f"{turn_id}-{kind}"} for kind in kinds]
    return {"id": turn_id, "rootTurnId": root or turn_id, "items": items}


PLAIN = row("t1", None, "userMessage", "agentMessage")
INNER = row("x", "r", "userMessage")
REVIEW = row("r", None, "enteredReviewMode", "exitedReviewMode", "agentMessage")


def told(rows: Sequence[Raw], *, follows: bool = False, goes_on: bool = False) -> Any:
    page = as_told(rows, follows=follows, goes_on=goes_on)
    return [(one["id"], [item["type"] for item in one["items"]]) for one in page]


JOINED = (
    "r",
    ["enteredReviewMode", "userMessage", "exitedReviewMode", "agentMessage"],
)
FIRST = ("t1", ["userMessage", "agentMessage"])


@pytest.mark.parametrize("rows", [[PLAIN, INNER, REVIEW], [PLAIN, REVIEW, INNER]])
def test_a_finished_review_is_one_turn_whichever_row_comes_first(
    rows: list[Raw],
) -> None:
    assert told(rows) == [FIRST, JOINED]
    assert told(rows[::-1]) == [JOINED, FIRST]


def test_a_review_that_runs_or_was_cut_off_is_told_under_its_own_id() -> None:
    assert told([INNER, PLAIN]) == [("r", ["userMessage"]), FIRST]
    assert told([PLAIN, INNER]) == [FIRST, ("r", ["userMessage"])]
    assert told([PLAIN, INNER, PLAIN | {"id": "t2"}])[1] == ("r", ["userMessage"])
    page = as_told([INNER], follows=False, goes_on=True)  # the newest turn alone
    assert [(one["id"], one["rootTurnId"]) for one in page] == [("r", "r")]


def test_at_the_edge_of_a_page_the_other_half_tells_the_review() -> None:
    assert told([INNER, PLAIN], follows=True) == [FIRST]
    assert told([PLAIN, INNER], goes_on=True) == [FIRST]


def test_where_a_review_began_is_found_by_the_turn_that_works_for_it() -> None:
    assert has_inner([PLAIN, INNER])
    assert not has_inner([PLAIN, REVIEW])
    assert not has_inner([{"id": "old", "items": []}])  # before turns had a root
    assert inner_of([PLAIN, REVIEW, INNER], "r") == "x"
    assert inner_of([PLAIN, REVIEW], "r") is None


def started(turn_id: str, root: str | None = None) -> tuple[str, Raw]:
    turn = {"id": turn_id, "rootTurnId": root or turn_id}
    return "turn/started", {"threadId": "thr", "turn": turn}


def item(kind: str, turn_id: str, thread: str = "thr") -> tuple[str, Raw]:
    about = {"threadId": thread, "turnId": turn_id, "item": {"type": kind}}
    return "item/started", about


def test_a_compaction_is_seen_by_its_item() -> None:
    proof = RunProof("thr", "contextCompaction")
    proof.accepted({})
    proof.notified(*started("t1"))
    proof.notified(*item("userMessage", "t1"))
    proof.notified(*item("contextCompaction", "t9", thread="other"))
    assert proof.turn_id is None
    proof.notified(*item("contextCompaction", "t1"))
    assert proof.turn_id == "t1"


def test_a_compaction_that_ends_at_once_was_one() -> None:
    proof = RunProof("thr", "contextCompaction")
    proof.notified("turn/completed", {"threadId": "thr", "turn": {"id": "t0"}})
    assert proof.turn_id is None
    proof.notified(*started("t1"))
    proof.notified("turn/completed", {"threadId": "thr", "turn": {"id": "t1"}})
    assert proof.turn_id == "t1"


def test_a_review_is_seen_by_the_turn_that_works_for_the_answered_one() -> None:
    proof = RunProof("thr", "enteredReviewMode")
    proof.accepted({"turn": {"id": "r"}})
    proof.notified(*item("enteredReviewMode", "r"))
    assert proof.turn_id is None  # it cannot be stopped yet
    proof.notified(*started("x", "r"))
    assert proof.turn_id == "r"


def test_a_review_is_stopped_under_the_id_that_codex_runs_it_by() -> None:
    normalizer = Normalizer()
    normalizer.adopt(says.thread(), [])
    assert normalizer.codex_turn("r") == "r"
    normalizer.notification(
        "turn/started",
        {"threadId": THREAD, "turn": says.turn("x", rootTurnId="r")},
        AT,
    )
    assert normalizer.codex_turn("r") == "x"
    assert normalizer.running_turn(THREAD) == "r"


def test_turns_that_were_taken_back_are_forgotten_and_it_is_told() -> None:
    normalizer = Normalizer()
    normalizer.adopt(says.thread(), [says.turn("t1", "completed")])
    for method, turn in (
        ("turn/started", says.turn("t2")),
        ("turn/completed", says.turn("t2", "completed")),
    ):
        normalizer.notification(method, {"threadId": THREAD, "turn": turn}, AT)
    assert normalizer.last_turn(THREAD) == "t2"
    events = normalizer.reverted(THREAD, "t1", AT)
    first = events[0]
    assert isinstance(first, Emitted)
    assert first.data == ThreadReverted(thread_id=THREAD, last_turn_id="t1")
    assert normalizer.last_turn(THREAD) == "t1"
    assert not normalizer.knows_turn("t2")
    assert normalizer.ended_turn("t2") is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-x",
        "--upload-pack=x",
        "a b",
        "a..b",
        "a~1",
        "a^",
        "a:b",
        "a@{1}",
        "@",
        "a\n",
    ],
)
def test_what_is_no_branch_to_git_never_gets_to_it(name: str) -> None:
    with pytest.raises(ValidationError):
        BranchTarget(type="branch", base=name)


@pytest.mark.parametrize("name", ["main", "feature/a-b", "größer", "v1.2", "a@b"])
def test_names_of_branches_are_taken(name: str) -> None:
    assert BranchTarget(type="branch", base=name).base == name


@pytest.mark.parametrize("sha", ["", "abc", "HEAD", "-abcd", "g" * 8, "a" * 65])
def test_a_commit_is_named_by_hex_digits(sha: str) -> None:
    with pytest.raises(ValidationError):
        CommitTarget(type="commit", sha=sha)
    with pytest.raises(ValidationError):
        CustomTarget(type="custom", text="  ")


def test_a_codex_whose_reviews_fall_apart_is_said_not_to_have_them() -> None:
    methods = {"review/start", "thread/revert"}
    for version, status in (
        ("0.147.0", CapabilityStatus.UNAVAILABLE),
        ("0.163.0", CapabilityStatus.SUPPORTED),
    ):
        rows = {one.feature: one for one in capabilities(methods, version)}
        assert rows["review/start"].status is status
        assert rows["review/start"].since == "0.163"
        assert traits_of(version).joins_reviews is (
            status is CapabilityStatus.SUPPORTED
        )
