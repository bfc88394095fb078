"""File changes as one text: in order, counted by file, cut at the old end."""

from agent.reading.diffs import as_patch, changes_of, joined
from transport.protocol.contents import ChangedFile
from transport.protocol.items import (
    AgentMessage,
    ChangeKind,
    FileChange,
    FileDiff,
    ItemStatus,
)

HUNK = "@@ -1 +1 @@\n-a\n+b\n"


def change(
    path: str, kind: ChangeKind = ChangeKind.UPDATE, diff: str = HUNK, **more: object
) -> FileDiff:
    values = {"path": path, "change": kind, "diff": diff, "added": 1, "removed": 1}
    return FileDiff.model_validate({**values, **more})


def item(
    *changes: FileDiff,
    status: ItemStatus = ItemStatus.COMPLETED,
    truncated: list[str] | None = None,
) -> FileChange:
    return FileChange(
        id="i",
        turn_id="t",
        status=status,
        changes=[*changes],
        files=len(changes),
        truncated=truncated,
    )


def test_added_and_deleted_files_become_hunks() -> None:
    added = change("/w/a", ChangeKind.ADD, "x\ny\n", added=2, removed=0)
    assert as_patch(added) == "--- /dev/null\n+++ /w/a\n@@ -0,0 +1,2 @@\n+x\n+y\n"
    deleted = change("/w/a", ChangeKind.DELETE, "x", added=0, removed=1)
    assert as_patch(deleted) == "--- /w/a\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n"


def test_a_move_names_both_places() -> None:
    moved = change(
        "/w/a", ChangeKind.MOVE, f"{HUNK}\n\nMoved to: /w/b", moved_to="/w/b"
    )
    assert as_patch(moved) == f"--- /w/a\n+++ /w/b\n{HUNK}\n"


def test_changes_that_were_not_made_do_not_count() -> None:
    said = AgentMessage(id="m", turn_id="t", status=ItemStatus.COMPLETED, text="x")
    made = item(change("/w/a"))
    declined = item(change("/w/b"), status=ItemStatus.DECLINED)
    assert changes_of([said, made, declined]) == [made]


def test_a_file_that_is_changed_twice_is_counted_once() -> None:
    diff, files, cut = joined([item(change("/w/a")), item(change("/w/a"))])
    assert files == [ChangedFile(path="/w/a", added=2, removed=2)]
    assert diff.count("+++ /w/a") == 2
    assert not cut


def test_the_newest_changes_are_kept_where_all_are_too_much() -> None:
    changes = [item(change("/w/old")), item(change("/w/new"))]
    diff, files, cut = joined(changes, limit=60)
    assert cut
    assert "/w/new" in diff
    assert "/w/old" not in diff
    assert [file.path for file in files] == ["/w/old", "/w/new"]


def test_so_many_files_that_no_client_takes_them_are_named_as_far_as_they_go() -> None:
    many = [item(*(change(f"/w/{n}/{m}") for m in range(200))) for n in range(30)]
    _, files, cut = joined(many)
    assert (cut, len(files), files[-1].path) == (True, 1_000, "/w/29/199")
    long = [item(change(f"/w/{n}/" + "x" * 60_000)) for n in range(30)]
    _, files, cut = joined(long)
    assert cut
    assert [file.path[:5] for file in files] == [f"/w/{n}" for n in range(26, 30)]


def test_a_diff_that_was_cut_before_says_so() -> None:
    assert joined([item(change("/w/a"), truncated=["changes"])])[2]
