"""Items as lines: a label, then text that is indented under it. Sans-IO."""

from collections.abc import Iterable, Sequence
from typing import Final

from clients.cli.clock import duration
from clients.cli.plain import block, one_line, visible, wrapped
from clients.cli.style import Line, Span, Style, bold, dim, line
from transport.protocol.items import (
    AgentMessage,
    ChangeKind,
    Command,
    FileChange,
    FileDiff,
    Item,
    ItemStatus,
    OtherItem,
    Reasoning,
    UserMessage,
)

LABEL: Final = 7  # cells; the longest label has five letters
INDENT: Final = " " * LABEL

WORTH_SAYING_MS: Final = 100  # a shorter time says nothing
HEAD_LINES: Final = 4  # of a long output, before and
TAIL_LINES: Final = 8  # after what is left out

_CHANGES: Final = {
    ChangeKind.ADD: "new file",
    ChangeKind.UPDATE: "changed",
    ChangeKind.DELETE: "deleted",
    ChangeKind.MOVE: "moved",
}


def label(name: str, style: Style = "bold") -> Span:
    """Return the label of an item, padded to the column where its text begins."""
    return Span(f"{name:<{LABEL}}", style)


def labelled(first: Span, text: str, style: Style = "") -> list[Line]:
    """Return `text` beside its label; its further lines are indented."""
    head, *rest = text.split("\n")
    return [
        line(first, Span(head, style)),
        *(line(INDENT, Span(row, style)) for row in rest),
    ]


def quoted(text: str) -> list[Line]:
    """Return text that others wrote, each line behind a bar: none passes for ours."""
    return [line(INDENT, dim("| "), row) for row in text.split("\n")]


def item_lines(item: Item, *, full: bool = False) -> list[Line]:
    """Return one item; long outputs and diffs are whole only with `full`."""
    match item:
        case UserMessage():
            return labelled(label("you", "name"), block(item.text))
        case AgentMessage():
            return [*labelled(label("codex"), block(item.text)), *unfinished(item)]
        case Reasoning():
            return reasoning_lines(item)
        case Command():
            return [command_line(item), *command_result(item, full=full)]
        case FileChange():
            return change_lines(item, full=full)
        case OtherItem():
            text = one_line(item.summary) or item.source_type
            return labelled(label("note", "dim"), text, "dim")


def unfinished(item: Item) -> list[Line]:
    """Return a line that says so where an item did not end well; else none."""
    if item.status in {ItemStatus.INTERRUPTED, ItemStatus.FAILED}:
        return [line(INDENT, Span(f"({item.status})", "warn"))]
    return []


def reasoning_lines(item: Reasoning) -> list[Line]:
    """Return the summary of the model's reasoning, nothing where it has none."""
    text = block("\n\n".join(item.summary)).strip()
    return labelled(label("think", "dim"), text, "dim") if text else []


def command_line(item: Command) -> Line:
    """Return the command itself, whole, whatever characters it holds."""
    head, *rest = visible(item.command).split("\n")
    more = "".join(f" ⏎ {row}" for row in rest)
    return line(label("run"), bold(head + more))


def command_result(item: Command, *, full: bool = False) -> list[Line]:
    """Return a command's output and how it ended."""
    output = block(item.output).strip("\n")
    rows = output.split("\n") if output else []
    return [*_output(rows, full=full), line(INDENT, _command_end(item))]


def _output(rows: Sequence[str], *, full: bool) -> list[Line]:
    left_out = len(rows) - HEAD_LINES - TAIL_LINES
    if full or left_out <= 1:  # a line about one line saves nothing
        return quoted("\n".join(rows)) if rows else []
    return [
        *quoted("\n".join(rows[:HEAD_LINES])),
        line(INDENT, dim(f"… {left_out} lines more")),
        *quoted("\n".join(rows[-TAIL_LINES:])),
    ]


def _command_end(item: Command) -> Span:
    if item.status is ItemStatus.DECLINED:
        return Span("declined: it did not run", "warn")
    if item.status is ItemStatus.IN_PROGRESS:
        return Span("still running", "warn")
    parts: list[str] = [] if item.exit_code is None else [f"exit {item.exit_code}"]
    if item.status is ItemStatus.INTERRUPTED or not parts:
        parts.append(str(item.status))
    if item.duration_ms is not None and item.duration_ms >= WORTH_SAYING_MS:
        parts.append(duration(item.duration_ms))
    return Span(", ".join(parts), "good" if item.exit_code == 0 else "bad")


def change_lines(item: FileChange, *, full: bool = False) -> list[Line]:
    """Return the files of a patch, and with `full` their diffs."""
    files = [line for change in item.changes for line in file_lines(change, full=full)]
    hidden = item.files - len(item.changes)
    if hidden > 0:
        files.append(line(INDENT, dim(f"… {hidden} files more")))
    if item.status is ItemStatus.DECLINED:
        files.append(line(INDENT, Span("declined: nothing was changed", "warn")))
    return [*files, *unfinished(item)]


def file_lines(change: FileDiff, *, full: bool) -> list[Line]:
    """Return one file of a patch."""
    target = f" → {change.moved_to}" if change.moved_to else ""
    (_, name), *more = wrapped(f"{change.path}{target}".replace("\n", "\\n"))
    rows = [line(label("edit"), bold(name), *(() if more else _extent(change)))]
    rows += [line(INDENT, bar(goes_on=True), bold(row)) for _, row in more]
    if more:
        rows.append(line(INDENT.removesuffix("  "), *_extent(change)))
    return [*rows, *diff_lines(change.diff)] if full else rows


def _extent(change: FileDiff) -> Line:
    """Return what happens to a file, and how much."""
    what = _CHANGES.get(change.change, str(change.change))
    return line(
        dim(f"  {what}, "),
        Span(f"+{change.added}", "added"),
        " ",
        Span(f"-{change.removed}", "removed"),
    )


def diff_lines(diff: str) -> list[Line]:
    """Return a diff, whole, nothing hidden in it."""
    rows: list[Line] = []
    style: Style = ""
    for goes_on, row in wrapped(diff.rstrip("\n")) if diff else []:
        style = style if goes_on else _diff_style(row)
        rows.append(line(INDENT, bar(goes_on=goes_on), Span(row, style)))
    return rows


def bar(*, goes_on: bool) -> Span:
    """Return what stands before a row of others' text: a new line, or more of one."""
    return dim("> " if goes_on else "| ")


def _diff_style(row: str) -> Style:
    if row.startswith(("+++", "---")):
        return "dim"
    return {"+": "added", "-": "removed", "@": "name"}.get(row[:1], "")  # type: ignore[return-value]


def all_items(items: Iterable[Item], *, full: bool = False) -> list[Line]:
    """Return items one below the other."""
    return [row for item in items for row in item_lines(item, full=full)]
