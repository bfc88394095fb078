"""What the adapter's errors say: to logs and to every device, so nothing of a thread."""

from typing import Any

import pytest

from adapter.errors import (
    AnswerShapeError,
    BinaryNotFoundError,
    ChildExitedError,
    CodexGoneError,
    CodexRefusedError,
    HandshakeFailedError,
    OtherHomeError,
    told_at_start,
    told_to_all,
)
from adapter.shapes.shapes import MISFITS, mapping, text, why
from adapter.shapes.threads import thread_from
from transport.protocol.gateway import GateState

CANARY = "canary-51d0"
KNOWN: dict[str, str] = {"folder": CANARY}


def test_the_log_of_a_child_is_kept_and_not_said() -> None:
    error = ChildExitedError("codex writer", 101, f"INFO start\nrunning {CANARY}\n")
    assert str(error) == "codex writer ended with 101"
    assert str(ChildExitedError("r", -9)) == "r was killed by signal 9"
    assert error.last_words == f"running {CANARY}"
    assert ChildExitedError("codex writer", 0).last_words == ""


def test_the_last_words_are_the_error_and_not_its_backtrace() -> None:
    log = "INFO x\nError: no such folder\n\nStack backtrace:\n   0: <unknown>\n"
    assert ChildExitedError("r", 1, log).last_words == "Error: no such folder"
    coloured = "\x1b[2m2026\x1b[0m \x1b[31mERROR\x1b[0m bad\n"
    assert ChildExitedError("r", 1, coloured).last_words == "2026 ERROR bad"


@pytest.mark.parametrize(
    "error",
    [
        BinaryNotFoundError(f"/home/ann/{CANARY} is no codex"),
        FileNotFoundError(2, "No such file or directory", f"/home/ann/{CANARY}"),
        ChildExitedError("codex reader", 1, f"Error: /home/ann/{CANARY}/config.toml"),
        CodexGoneError(f"/home/ann/{CANARY} is not there any more"),
        OtherHomeError(f"/home/ann/{CANARY}", "/opt/.codex"),
        HandshakeFailedError(f"codex did not initialize: /home/ann/{CANARY}"),
        CodexRefusedError("initialize", -32600, f"/home/ann/{CANARY}"),
    ],
)
def test_devices_are_told_no_path_of_a_codex_that_does_not_start(
    error: Exception,
) -> None:
    assert "codex" in told_to_all(error)
    assert CANARY not in told_to_all(error)
    assert CANARY in told_at_start(error)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda: text([CANARY]), "a text was expected, not list"),
        (lambda: mapping(CANARY), "an object was expected, not str"),
        (lambda: int(CANARY), "ValueError"),
        (lambda: KNOWN["cwd"], "no 'cwd'"),
        (
            lambda: GateState.model_validate({"state": "open", "since": CANARY}),
            "since: int_parsing",
        ),
    ],
)
def test_a_misfit_is_described_without_its_value(read: Any, said: str) -> None:
    with pytest.raises(MISFITS) as caught:
        read()
    assert why(caught.value) == said


@pytest.mark.parametrize("broken", ["id", "cwd", "createdAt"])
def test_a_thread_of_another_shape_is_refused_without_a_word_of_it(broken: str) -> None:
    raw = {
        "id": CANARY,
        "cwd": CANARY,
        "preview": CANARY,
        "createdAt": 1,
        "updatedAt": 1,
        "source": "cli",
        "status": {"type": "idle"},
        broken: [CANARY],
    }
    with pytest.raises(AnswerShapeError) as caught:
        thread_from(raw, archived=False)
    assert CANARY not in str(caught.value)
