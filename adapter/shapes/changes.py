"""The files of a patch: Codex's changes as v2 diffs. Sans-IO. PROTOCOL.md section 5."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from adapter.shapes.shapes import mapping, maybe_text, text
from generated import codex
from transport.protocol.items import ChangeKind, FileDiff


def changes_from(raw: Sequence[Any], cut_diff: Callable[[str], str]) -> list[FileDiff]:
    """Return one v2 diff a file; counts are of the whole diff, before `cut_diff`."""
    return [
        _change(cast("codex.FileUpdateChange", mapping(one)), cut_diff) for one in raw
    ]


def _change(raw: codex.FileUpdateChange, cut_diff: Callable[[str], str]) -> FileDiff:
    diff = text(raw["diff"])
    kind = mapping(raw["kind"])
    word = ChangeKind(text(kind["type"]))
    target = maybe_text(kind.get("move_path"))
    added, removed = _counts(word, diff)
    return FileDiff(
        path=cut_diff(text(raw["path"])),
        change=ChangeKind.MOVE if target else word,
        diff=cut_diff(diff),
        added=added,
        removed=removed,
        moved_to=cut_diff(target) if target else None,
    )


def _counts(kind: ChangeKind, diff: str) -> tuple[int, int]:
    """Count lines. Of an added or deleted file Codex gives the content, else hunks."""
    lines = diff.splitlines()
    if kind is ChangeKind.ADD:
        return len(lines), 0
    if kind is ChangeKind.DELETE:
        return 0, len(lines)
    added = sum(line.startswith("+") for line in lines)
    return added, sum(line.startswith("-") for line in lines)
