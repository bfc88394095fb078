"""Stored threads and turns, and what versions do."""

from typing import Any

import pytest

from adapter.calls.versions import parse_version, traits_of, version_of
from adapter.errors import AnswerShapeError
from adapter.shapes.settings import settings_from, thread_settings_from
from adapter.shapes.threads import thread_from
from adapter.shapes.turns import turn_from
from tests.support import codex_says as says
from transport.codec import pack
from transport.protocol.items import AgentMessage, Command, ItemStatus, OtherItem
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import TurnStatus


def stored(*items: dict[str, Any], status: str = "completed", **more: Any) -> Any:
    raw = says.turn(status=status, itemsView="full", items=list(items), **more)
    return turn_from(raw, says.THREAD)


def test_a_thread_of_a_list() -> None:
    raw = says.thread(
        name="Tests",
        preview="fix\nthe tests",
        status={"type": "notLoaded"},
        source={"subAgent": {"thread_spawn": {"parent_thread_id": "p1", "depth": 1}}},
        gitInfo={"branch": "main", "sha": "abc", "originUrl": None},
        forkedFromId="f1",
    )
    thread = thread_from(raw, archived=True)
    assert (thread.title, thread.preview) == ("Tests", "fix the tests")
    assert thread.status is ThreadStatus.UNKNOWN
    assert (thread.source, thread.parent_id, thread.forked_from_id) == (
        "subAgent",
        "p1",
        "f1",
    )
    assert thread.created_at == says.AT
    assert thread.archived
    assert thread.git is not None
    assert thread.git.branch == "main"


@pytest.mark.parametrize(
    ("origin", "shown"),
    [
        ("https://me:secret@host.example/a.git", "https://host.example/a.git"),
        ("https://secret@host.example/a?token=secret#x", "https://host.example/a"),
        ("git@host.example:a/b.git", "git@host.example:a/b.git"),
        ("me:secret@host.example:a.git", "host.example:a.git"),
        ("/srv/git/a.git", "/srv/git/a.git"),
        ("ssh://git:secret@host.example:22/a", "ssh://host.example:22/a"),
    ],
)
def test_an_origin_is_shown_without_credentials(origin: str, shown: str) -> None:
    raw = says.thread(gitInfo={"branch": None, "sha": None, "originUrl": origin})
    git = thread_from(raw).git
    assert git is not None
    assert git.origin == shown


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ({"type": "idle"}, "idle"),
        ({"type": "systemError"}, "failed"),
        ({"type": "active", "activeFlags": []}, "running"),
        ({"type": "active", "activeFlags": ["waitingOnUserInput"]}, "waitingOnInput"),
        ({"type": "hibernating"}, "unknown"),
    ],
)
def test_a_thread_s_status(raw: dict[str, Any], status: str) -> None:
    assert thread_from(says.thread(status=raw)).status == status


def test_an_interrupted_turn_without_an_end_is_inferred() -> None:
    cut_off = stored(status="interrupted", completedAt=None)
    assert (cut_off.status, cut_off.inferred) == (TurnStatus.INTERRUPTED, True)
    assert stored(status="interrupted").inferred is None


def test_a_failed_turn_says_why_in_codex_s_word() -> None:
    error = {
        "message": "unexpected status 429",
        "codexErrorInfo": {"responseTooManyFailedAttempts": {"httpStatusCode": 429}},
        "additionalDetails": "slow down",
    }
    turn = stored(status="failed", error=error)
    assert turn.error.code == "responseTooManyFailedAttempts"
    assert turn.error.message == "unexpected status 429: slow down"


def test_a_turn_keeps_its_items_and_one_that_cannot_be_read_does_no_harm() -> None:
    broken = {"type": "agentMessage", "id": "m2", "text": 7}
    turn = stored(says.message(text="hi"), broken, says.command())
    message, other, command = turn.items
    assert isinstance(message, AgentMessage)
    assert message.provenance == "codex:history"
    assert isinstance(other, OtherItem)
    assert isinstance(command, Command)
    assert command.status is ItemStatus.INTERRUPTED  # nothing runs in history


def test_a_moment_that_the_wire_cannot_carry_is_none() -> None:
    turn = stored(startedAt=2**63 - 1, completedAt=-(2**63))
    assert (turn.started_at, turn.completed_at) == (None, None)
    assert pack(turn.wire())


def test_a_turn_without_its_items_has_none() -> None:
    assert turn_from(says.turn(status="completed"), says.THREAD).items is None


def test_a_legacy_thread_s_ids_are_said_to_be_its_own() -> None:
    raw = says.turn("t", "completed", itemsView="full", items=[says.message("item-1")])
    items = turn_from(raw, says.THREAD, legacy=True).items
    assert items is not None
    assert items[0].stable_id is False


ANSWER: dict[str, Any] = {
    "thread": says.thread(),
    "cwd": "/home/user/project",
    "model": "gpt-5.5",
    "reasoningEffort": None,
    "approvalPolicy": "on-request",
    "sandbox": {"type": "readOnly", "networkAccess": False},
}


@pytest.mark.parametrize(
    ("sandbox", "word"),
    [
        ("readOnly", "read-only"),
        ("workspaceWrite", "workspace-write"),
        ("dangerFullAccess", "danger-full-access"),
        ("externalSandbox", "externalSandbox"),
    ],
)
def test_effective_settings_use_the_ceiling_s_words(sandbox: str, word: str) -> None:
    settings = settings_from({**ANSWER, "sandbox": {"type": sandbox}})
    assert (settings.sandbox, settings.approval_policy) == (word, "on-request")
    assert thread_settings_from(ANSWER).sandbox == "read-only"


def test_a_policy_of_parts_is_its_own_word_which_no_ceiling_holds() -> None:
    granular = {"granular": {"rules": True, "sandbox_approval": True}}
    settings = settings_from({**ANSWER, "approvalPolicy": granular})
    assert settings.approval_policy == "granular"


def test_settings_that_cannot_be_read_are_an_error() -> None:
    for key in ("cwd", "sandbox", "approvalPolicy"):
        with pytest.raises(AnswerShapeError):
            settings_from({**ANSWER, key: None})
    with pytest.raises(AnswerShapeError):
        thread_from({"id": "x"})
    with pytest.raises(AnswerShapeError):
        turn_from({"status": "completed"}, "t")


def test_versions_are_compared_as_numbers() -> None:
    assert parse_version("codex-cli 0.171.0") == (0, 171, 0)
    assert parse_version("nonsense") is None
    agent = "lab 1.2.3/0.163.0 (Debian 12.0.0; x86_64) xterm (lab; 0.1)"
    assert version_of(agent) == "0.163.0"
    assert version_of("nothing here") is None


@pytest.mark.parametrize(
    ("version", "locks", "queue"),
    [
        ("0.146.9", False, False),
        ("0.147.0", True, False),
        ("0.163.0", True, True),
        ("1.0.0", True, True),
        ("0.99.0", False, False),
        (None, False, False),
        ("?", False, False),
    ],
)
def test_what_a_version_does(version: str | None, locks: bool, queue: bool) -> None:
    traits = traits_of(version)
    assert (traits.locks_threads, traits.lists_queue) == (locks, queue)
