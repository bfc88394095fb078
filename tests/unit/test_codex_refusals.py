"""Errors of codex told apart by their text: real ones of 0.144 to 0.171."""

import pytest

from adapter.calls.refusals import not_offered, passes, refined
from adapter.errors import (
    AdapterError,
    BinaryNotFoundError,
    ChildExitedError,
    CodexChangedError,
    CodexGoneError,
    CodexRefusedError,
    HandshakeFailedError,
    NotRecordedError,
    OtherHomeError,
    ReaderFirstError,
    ThreadArchivedError,
    ThreadLockedError,
    ThreadUnknownError,
)
from agent.mutations.refusals import failed_before
from transport.errors import CodexUnavailable

ID = "01a22e34-4614-7242-b7a6-b16e1c8b4140"


def refusal(message: str, code: int = -32600) -> CodexRefusedError:
    return CodexRefusedError("thread/resume", code, message)


def test_a_foreign_lock_is_told_apart_from_every_other_32600() -> None:
    error = refined(refusal(f"thread {ID} already has an active writer"))
    assert type(error) is ThreadLockedError
    assert (error.method, error.code) == ("thread/resume", -32600)


@pytest.mark.parametrize(
    "message",
    [
        f"thread not loaded: {ID}",
        f"no rollout found for thread id {ID}",
        f"thread not found: {ID}",
        "invalid thread id: bad uuid",
        "invalid session id: invalid character: expected an optional prefix",
        f"invalid thread-store request: no rollout found for thread id {ID}",
        f"failed to read thread: rollout /h/rollout-{ID}.jsonl is empty",
    ],
)
def test_an_unknown_thread_has_many_words(message: str) -> None:
    assert type(refined(refusal(message))) is ThreadUnknownError


@pytest.mark.parametrize(
    "message",
    [
        "failed to load configuration: x",
        "no active turn to interrupt",
        "expected active turn id `a` but found `b`",
        "Server overloaded; retry later.",
    ],
)
def test_other_refusals_stay_what_they_are(message: str) -> None:
    error = refusal(message)
    assert refined(error) is error


@pytest.mark.parametrize(
    ("message", "first", "again"),
    [
        (f"invalid paginated history lineage for {ID}: missing source", True, True),
        ("failed to read lineage metadata", True, True),
        ("list_turns is not supported yet", True, False),
        (f"no rollout found for thread id {ID}", True, False),
        (f"thread {ID} already has an active writer", False, False),
        ("invalid cursor: zzz", False, False),
    ],
)
def test_only_errors_known_to_pass_are_tried_again(
    message: str, first: bool, again: bool
) -> None:
    assert passes(refusal(message), again=False) is first
    assert passes(refusal(message), again=True) is again


def test_an_unknown_method_is_not_offered() -> None:
    words = "Invalid request: unknown variant `thread/queue/list`, expected one of …"
    assert not_offered(refusal(words))
    assert not not_offered(refusal("thread name must not be empty"))


def test_an_archived_thread_is_told_apart() -> None:
    error = refined(refusal(f"session {ID} is archived. Run `codex unarchive {ID}`"))
    assert type(error) is ThreadArchivedError


@pytest.mark.parametrize(
    "error",
    [
        BinaryNotFoundError("/opt/codex cannot be run: it is just being replaced"),
        CodexGoneError("/opt/codex is not there any more"),
        CodexChangedError(),
        OtherHomeError("/home/ann/.codex", "/opt/.codex"),
        ReaderFirstError("a writer needs the reader"),
        ChildExitedError("codex writer", -9),
    ],
)
def test_a_writer_that_cannot_be_started_now_is_worth_another_try(
    error: AdapterError,
) -> None:
    refused = failed_before(error, thread_id=ID, at_ms=0)
    assert isinstance(refused, CodexUnavailable)
    assert refused.retryable
    assert "/opt" not in refused.message


WORDS = "/home/ann/.codex/config.toml:16: unclosed array"


@pytest.mark.parametrize(
    "error",
    [
        BinaryNotFoundError(WORDS),
        CodexGoneError(WORDS),
        CodexRefusedError("thread/resume", -32600, WORDS),
        CodexRefusedError("turn/start", -32600, WORDS),
        HandshakeFailedError(WORDS),
        OtherHomeError(WORDS, "/opt/.codex"),
        AdapterError(WORDS),
    ],
)
def test_what_codex_says_itself_is_for_the_workstation_alone(
    error: AdapterError,
) -> None:
    told = failed_before(error, thread_id=ID, at_ms=0)
    assert "/home" not in str(told.wire())
    assert told.whole is not None
    assert WORDS in told.whole.message
    assert (told.whole.code, told.whole.retryable) == (told.code, told.retryable)


def test_what_the_disk_does_not_take_is_told_as_such() -> None:
    refused = failed_before(NotRecordedError("codex writer"), thread_id=ID, at_ms=0)
    assert "disk" in refused.message
