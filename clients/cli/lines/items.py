"""Items as lines: a label, then text that is indented under it. Sans-IO."""

from collections.abc import Iterable
from typing import Final

from clients.cli.clock import duration
from clients.cli.lines.layout import (
    INDENT,
    WORTH_SAYING_MS,
    bar,
    label,
    labelled,
    some_of,
    unfinished,
)
from clients.cli.lines.work import (
    COMPACTED,
    agent_lines,
    image_lines,
    review_lines,
    search_lines,
    tool_line,
    tool_result,
)
from clients.cli.plain import block, one_line, visible, wrapped
from clients.cli.style import Line, Span, Style, bold, dim, line
from transport.protocol.items import (
    AgentMessage,
    ChangeKind,
    Citation,
    Command,
    Compaction,
    FileChange,
    FileDiff,
    Image,
    Item,
    ItemStatus,
    OtherItem,
    Plan,
    Reasoning,
    Review,
    Subagent,
    ToolCall,
    UserMessage,
    WebSearch,
)

_CHANGES: Final = {
    ChangeKind.ADD: "new file",
    ChangeKind.UPDATE: "changed",
    ChangeKind.DELETE: "deleted",
    ChangeKind.MOVE: "moved",
}


def item_lines(item: Item, *, full: bool = False) -> list[Line]:
    """Return one item; long outputs and diffs are whole only with `full`."""
    match item:
        case UserMessage():
            return labelled(label("you", "name"), block(item.text))
        case AgentMessage(text="", status=ItemStatus.INTERRUPTED):
            return []  # nothing was said: a review leaves one like that behind
        case AgentMessage():
            return [*labelled(label("codex"), block(item.text)), *message_end(item)]
        case Reasoning():
            return reasoning_lines(item)
        case Command():
            return [command_line(item), *command_result(item, full=full)]
        case FileChange():
            return change_lines(item, full=full)
        case ToolCall():
            return [tool_line(item, full=full), *tool_result(item, full=full)]
        case WebSearch():
            return search_lines(item)
        case Plan():
            text = block(item.text).strip("\n")
            return [*labelled(label("plan"), text), *message_end(item)]
        case Image():
            return image_lines(item)
        case Subagent():
            return agent_lines(item)
        case Review():
            return review_lines(item)
        case Compaction():
            return labelled(label("note", "dim"), COMPACTED, "dim")
        case OtherItem():
            text = one_line(item.summary) or item.source_type
            return labelled(label("note", "dim"), text, "dim")


def text_label(item: Item) -> Span:
    """Return the label of a text that grows."""
    return label("plan" if isinstance(item, Plan) else "codex")


def call_line(item: Item) -> Line | None:
    """Return the line that is told when a call begins; its result comes under it."""
    match item:
        case Command():
            return command_line(item)
        case ToolCall():
            return tool_line(item)
        case _:
            return None


def message_end(item: AgentMessage | Plan) -> list[Line]:
    """Return what is said under a message: how it ended, and what it draws on."""
    rows = unfinished(item)
    if isinstance(item, Plan):
        return rows
    if item.delivery == "async":
        rows.append(line(INDENT, dim("(it does not wait: your next message answers)")))
    return rows + [_citation_line(one) for one in item.citations or ()]


def _citation_line(cited: Citation) -> Line:
    first, last = cited.line_start, cited.line_end
    place = "" if first is None else f":{first}"
    place += f"-{last}" if place and last not in {None, first} else ""
    note = f" ({one_line(cited.note, 200)})" if cited.note else ""
    return line(INDENT, dim(f"from {visible(cited.path)}{place}{note}"))


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
    return [*some_of(rows, full=full), line(INDENT, _command_end(item))]


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


def near(item: Item, folder: str | None) -> Item:
    """Return the same item, its files named from inside the folder, where they are.

    Not for what is decided on: an approval names them whole.
    """
    if folder is None or not isinstance(item, FileChange):
        return item
    inside = folder.rstrip("/") + "/"
    changes = [
        change.model_copy(
            update={
                "path": change.path.removeprefix(inside),
                "moved_to": change.moved_to and change.moved_to.removeprefix(inside),
            }
        )
        for change in item.changes
    ]
    return item.model_copy(update={"changes": changes})


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


def _diff_style(row: str) -> Style:
    if row.startswith(("+++", "---")):
        return "dim"
    return {"+": "added", "-": "removed", "@": "name"}.get(row[:1], "")  # type: ignore[return-value]


def all_items(items: Iterable[Item], *, full: bool = False) -> list[Line]:
    """Return items one below the other."""
    return [row for item in items for row in item_lines(item, full=full)]
