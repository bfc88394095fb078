"""File changes as one text that `patch` would take, and counted by file. Sans-IO.

PROTOCOL.md section 4 (`thread/diff`). Codex gives the whole content of a file that was
added or deleted, and hunks of one that was changed.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from adapter.shapes.texts import byte_size, packed_bound
from agent.limits import DIFF_BYTES, DIFF_FILES
from transport.protocol.contents import ChangedFile
from transport.protocol.items import (
    ChangeKind,
    FileChange,
    FileDiff,
    Item,
    ItemStatus,
)

_MOVED: Final = "\nMoved to: "  # Codex's own line behind the hunks of a move
_NOWHERE: Final = "/dev/null"


def changes_of(items: Iterable[Item]) -> list[FileChange]:
    """Return the changes that were made; a declined or failed one was not."""
    return [
        item
        for item in items
        if isinstance(item, FileChange) and item.status is ItemStatus.COMPLETED
    ]


def joined(
    changes: Sequence[FileChange], *, limit: int = DIFF_BYTES
) -> tuple[str, list[ChangedFile], bool]:
    """Return one text of at most `limit` bytes, the files, and whether more was changed.

    `changes`: oldest first. Where all is too much, the newest files of it are kept.
    """
    diffs = [diff for change in changes for diff in change.changes]
    cut = any("changes" in (change.truncated or ()) for change in changes)
    parts: list[str] = []
    room = limit
    for diff in reversed(diffs):
        part = as_patch(diff)
        room -= byte_size(part)
        if room < 0:
            cut = True
            break
        parts.append(part)
    files = _files(diffs)
    listed = _newest(files)
    return "".join(reversed(parts)), listed, cut or len(listed) < len(files)


def as_patch(diff: FileDiff) -> str:
    """Return one file's change as a unified diff."""
    body = diff.diff if diff.diff.endswith("\n") or not diff.diff else diff.diff + "\n"
    match diff.change:
        case ChangeKind.ADD:
            hunk = f"@@ -0,0 +1,{diff.added} @@\n{_marked(body, '+')}"
            return f"--- {_NOWHERE}\n+++ {diff.path}\n{hunk}"
        case ChangeKind.DELETE:
            hunk = f"@@ -1,{diff.removed} +0,0 @@\n{_marked(body, '-')}"
            return f"--- {diff.path}\n+++ {_NOWHERE}\n{hunk}"
        case _:
            hunks = body.partition(_MOVED)[0] if diff.moved_to else body
            end = "" if hunks.endswith("\n") or not hunks else "\n"
            return f"--- {diff.path}\n+++ {diff.moved_to or diff.path}\n{hunks}{end}"


def _marked(body: str, mark: str) -> str:
    return "".join(mark + line for line in body.splitlines(keepends=True))


def _newest(files: Sequence[ChangedFile]) -> list[ChangedFile]:
    """Return the last files, as many as are named: paths can be as long as texts."""
    kept: list[ChangedFile] = []
    room = DIFF_BYTES
    for file in reversed(files[-DIFF_FILES:]):
        room -= packed_bound(file.wire())
        if room < 0:
            break
        kept.append(file)
    return kept[::-1]


def _files(diffs: Iterable[FileDiff]) -> list[ChangedFile]:
    added: dict[str, int] = {}
    removed: dict[str, int] = {}
    for diff in diffs:
        added[diff.path] = added.get(diff.path, 0) + diff.added
        removed[diff.path] = removed.get(diff.path, 0) + diff.removed
    return [
        ChangedFile(path=path, added=count, removed=removed[path])
        for path, count in added.items()
    ]
