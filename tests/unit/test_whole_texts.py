"""Texts of raw items before they are cut, and what Codex itself has cut out of them."""

from typing import Any

import pytest

from adapter.runtime.store import HeldText
from adapter.shapes.whole_texts import held_output, true_size, whole_texts

LIVE = b"\n... 1640319 bytes omitted ...\n"
STORED = b"\n... command output truncated for persistence ...\n"


def test_a_live_output_says_how_much_is_missing() -> None:
    half = b"x" * 524_288
    told = held_output(half + LIVE + half)
    assert told == HeldText(
        data=half + half, total=1_048_576 + 1_640_319, gap_at=524_288
    )


def test_a_stored_output_does_not_say_it() -> None:
    half = b"x" * 32_743
    assert len(half + STORED + half) == 65_536
    told = held_output(half + STORED + half)
    assert told == HeldText(data=half + half, total=None, gap_at=32_743)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x" * 65_536,
        b"short" + STORED + b"short",
        b"short" + LIVE + b"short",
        STORED + b"x" * 70_000,
        b"x" * 32_743 + STORED + b"x" * 50_000,
    ],
)
def test_a_program_may_write_such_a_line_itself(data: bytes) -> None:
    assert held_output(data) == HeldText(data=data, total=len(data))


def test_the_true_size_of_a_cut_output_counts_what_is_missing() -> None:
    half = "x" * 524_288
    assert true_size(half + LIVE.decode() + half) == 1_048_576 + 1_640_319
    assert true_size("né") == 3


@pytest.mark.parametrize(
    ("raw", "texts"),
    [
        (
            {"type": "commandExecution", "aggregatedOutput": None},
            {("output", ""): b""},
        ),
        (
            {
                "type": "fileChange",
                "changes": [{"path": "/a", "diff": "+x"}, {"path": "/b", "diff": ""}],
            },
            {("diff", "/a"): b"+x", ("diff", "/b"): b""},
        ),
        ({"type": "agentMessage", "text": "né"}, {("text", ""): "né".encode()}),
        (
            {
                "type": "userMessage",
                "content": [{"type": "text", "text": "a"}, {"type": "image"}],
            },
            {("text", ""): b"a"},
        ),
        ({"type": "reasoning", "content": ["a", "b"]}, {("text", ""): b"a\n\nb"}),
        ({"type": "somethingNew", "text": "a"}, {}),
        ({"type": "fileChange", "changes": [{"path": 7}]}, {}),
    ],
)
def test_every_kind_has_its_texts(
    raw: dict[str, Any], texts: dict[tuple[str, str], bytes]
) -> None:
    assert {name: text.data for name, text in whole_texts(raw).items()} == texts
