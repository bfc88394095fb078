"""Codex's items as v2 items: what is kept, what is cut, and that it is said."""

from typing import Any

import pytest

from adapter.limits import ITEM_BYTES, LINE_CHARS, TEXT_BYTES
from adapter.shapes.item_frame import Frame
from adapter.shapes.items import item_from
from adapter.shapes.shapes import MISFITS
from adapter.shapes.texts import packed_bound
from tests.support import codex_says as says
from transport.codec import pack
from transport.protocol.items import (
    AgentMessage,
    ChangeKind,
    Command,
    FileChange,
    Item,
    ItemStatus,
    OtherItem,
    Reasoning,
    UserMessage,
)

FRAME = Frame(turn_id="t1", provenance="codex:item/completed", completed_at=9)


def mapped(raw: dict[str, Any], frame: Frame = FRAME) -> Item:
    item = item_from(raw, frame)
    assert len(pack(item.wire())) <= packed_bound(item.wire()) <= ITEM_BYTES
    return item


def changed(*files: dict[str, Any]) -> FileChange:
    item = mapped(says.change(status="completed", changes=list(files)))
    assert isinstance(item, FileChange)
    return item


def test_a_user_message_keeps_its_key_and_names_what_came_with_it() -> None:
    content = [
        {"type": "text", "text": "look at"},
        {"type": "text", "text": "these"},
        {"type": "image", "url": "data:image/png;base64,AAAA"},
        {"type": "localImage", "path": "/w/a.png"},
        {"type": "mention", "name": "b", "path": "/w/b.py"},
    ]
    item = mapped(says.user(content=content, clientId="key-0123456789abcdef"))
    assert isinstance(item, UserMessage)
    assert item.text == "look at\nthese"
    assert item.attachments == ["image", "/w/a.png", "/w/b.py"]
    assert item.client_key == "key-0123456789abcdef"


def test_questions_that_are_beside_the_text_are_not_lost() -> None:
    asked = [{"title": "Which one?", "options": [{"label": "red"}, {"label": "blue"}]}]
    item = mapped(says.message(text="", delivery="async", questions=asked))
    assert isinstance(item, AgentMessage)
    assert item.text == "Which one? (red / blue)"
    assert item.delivery == "async"


def test_a_message_names_the_files_that_it_draws_on() -> None:
    entry = {"path": "notes.md", "note": "the plan", "lineStart": 3, "lineEnd": 9}
    cited = {"entries": [entry] * 60, "threadIds": ["t"]}
    item = mapped(says.message(text="so", memoryCitation=cited))
    assert isinstance(item, AgentMessage)
    assert item.citations is not None
    assert len(item.citations) == 50
    assert item.citations[0].wire() == entry
    assert item.truncated == ["citations"]


def test_a_long_text_keeps_head_and_tail_and_says_its_true_size() -> None:
    text = "a" * 100_000 + "é" * 50_000
    item = mapped(says.message(text=text))
    assert isinstance(item, AgentMessage)
    assert item.truncated == ["text"]
    assert item.sizes == {"text": 200_000}
    assert len(item.text.encode()) <= TEXT_BYTES
    assert item.text.startswith("a" * 48 * 1024)
    assert item.text.endswith("é" * 8_000)


def test_a_command_is_mapped_whole() -> None:
    raw = says.command(
        status="failed", aggregatedOutput="no\n", exitCode=2, durationMs=5
    )
    item = mapped(raw)
    assert isinstance(item, Command)
    assert (item.status, item.exit_code, item.duration_ms) == ("failed", 2, 5)
    assert (item.output, item.output_bytes) == ("no\n", 3)
    assert item.actions[0].command == "make test"
    assert item.truncated is None


def test_an_item_of_many_long_texts_is_cut_until_it_fits() -> None:
    action = {"type": "read", "command": "x" * 5_000, "path": "/" + "y" * 5_000}
    item = mapped(
        says.command(
            status="completed",
            command="c" * 300_000,
            aggregatedOutput="o" * 1_000_000,
            commandActions=[action] * 300,
        )
    )
    assert item.truncated == ["actions", "command", "output"]
    assert item.sizes is not None
    assert item.sizes["output"] == 1_000_000


def test_the_kinds_of_a_file_change() -> None:
    hunk = "@@ -1,2 +1,2 @@\n-line one\n+line ONE\n line two\n"
    item = changed(
        {"path": "/w/new", "kind": {"type": "add"}, "diff": "one\ntwo\n"},
        {"path": "/w/old", "kind": {"type": "delete"}, "diff": "one\n"},
        {"path": "/w/x", "kind": {"type": "update", "move_path": None}, "diff": hunk},
        {"path": "/w/x", "kind": {"type": "update", "move_path": "/w/y"}, "diff": hunk},
    )
    assert [one.change for one in item.changes] == [
        ChangeKind.ADD,
        ChangeKind.DELETE,
        ChangeKind.UPDATE,
        ChangeKind.MOVE,
    ]
    counts = [(one.added, one.removed) for one in item.changes]
    assert counts == [(2, 0), (0, 1), (1, 1), (1, 1)]
    assert item.changes[3].moved_to == "/w/y"


def test_a_change_of_too_many_files_says_how_many_there_are() -> None:
    file = {"path": "/w/f", "kind": {"type": "add"}, "diff": "x\n" * 20_000}
    item = changed(*[file] * 300)
    assert (len(item.changes), item.files) == (200, 300)
    assert item.truncated == ["changes"]
    assert item.changes[0].added == 20_000  # counted before it was cut


def test_a_reasoning_of_more_parts_than_a_client_takes_is_told_as_one() -> None:
    item = mapped({"type": "reasoning", "id": "x", "summary": ["so"] * 5_000})
    assert isinstance(item, Reasoning)
    assert item.summary == ["\n\n".join(["so"] * 5_000)]
    assert item.truncated is None


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ({"type": "daydream", "depth": 7}, "daydream"),
        ({"type": "sleep", "durationMs": 40}, "waited 40 ms"),
        (
            {
                "type": "hookPrompt",
                "fragments": [{"text": "be\nkind"}, {"text": "now"}],
            },
            "a hook added to the prompt: be kind now",
        ),
    ],
)
def test_every_other_type_is_one_line(raw: dict[str, Any], line: str) -> None:
    item = mapped({"id": "x", **raw})
    assert isinstance(item, OtherItem)
    assert (item.source_type, item.summary) == (raw["type"], line)


def test_the_line_is_short_whatever_is_in_the_item() -> None:
    words = [{"text": "word " * 50_000}]
    item = mapped({"type": "hookPrompt", "id": "x", "fragments": words})
    assert isinstance(item, OtherItem)
    assert len(item.summary) == LINE_CHARS


def test_an_item_that_says_in_progress_at_its_end_gets_the_given_status() -> None:
    item = mapped(says.command(status="inProgress"))
    assert item.status is ItemStatus.COMPLETED
    frame = Frame(turn_id="t", provenance="p", unfinished=ItemStatus.INTERRUPTED)
    assert mapped(says.command(), frame).status is ItemStatus.INTERRUPTED


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "agentMessage", "id": "x"},
        {"type": "agentMessage", "id": 3, "text": ""},
        {"type": "commandExecution", "id": "x", "command": 1, "cwd": "/"},
        {"id": "x"},
    ],
)
def test_a_shape_that_does_not_fit_is_a_misfit(raw: dict[str, Any]) -> None:
    with pytest.raises(MISFITS):
        item_from(raw, FRAME)
