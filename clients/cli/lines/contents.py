"""What threads hold, as lines: diffs, texts, places where words were found. Sans-IO."""

from collections.abc import Sequence

from clients.cli.choose import short
from clients.cli.clock import Clock
from clients.cli.columns import table
from clients.cli.lines.threads import thread_name
from clients.cli.plain import block, one_line, visible
from clients.cli.style import Line, Span, Style, bold, dim, line
from transport.protocol.contents import (
    ChangedFile,
    ItemHit,
    ItemOutputResult,
    ThreadDiffResult,
    ThreadHit,
)
from transport.protocol.items import Item

SNIPPET = 100  # characters


def text_lines(text: str) -> list[Line]:
    """Return a text that a program wrote; nothing of it moves the cursor."""
    return [line(row) for row in block(text).splitlines()]


def diff_lines(told: ThreadDiffResult) -> list[Line]:
    """Return the files with their counts, then the changes."""
    if not told.files:
        return [
            line("Codex has edited no files; what its commands wrote is not known.")
        ]
    rows = [_file(file) for file in told.files]
    return [
        *rows,
        line(""),
        *(_diff_line(row) for row in block(told.diff).splitlines()),
    ]


def _file(file: ChangedFile) -> Line:
    return line(
        bold(visible(file.path)),
        Span(f"  +{file.added}", "good"),
        Span(f" -{file.removed}", "bad"),
    )


def _diff_line(row: str) -> Line:
    if row.startswith(("+++", "---", "@@")):
        return line(dim(row))
    styles: dict[str, Style] = {"+": "good", "-": "bad"}
    return line(Span(row, styles.get(row[:1], "")))


def hit_table(
    hits: Sequence[ThreadHit], clock: Clock, *, width: int | None
) -> list[Line]:
    """Return a table of threads with the words that were found."""
    if not hits:
        return [line("No thread has these words.")]
    length = short([hit.thread.id for hit in hits])
    rows = [
        [
            Span(hit.thread.id[:length], "name"),
            Span(clock.ago(hit.thread.updated_at)),
            Span(one_line(thread_name(hit.thread), 40)),
            Span(one_line(hit.snippet, SNIPPET)),
        ]
        for hit in hits
    ]
    return table(("THREAD", "CHANGED", "TITLE", "FOUND"), rows, width=width)


def found_lines(hits: Sequence[ItemHit]) -> list[Line]:
    """Return the places, with the ids that `output --field text` takes."""
    if not hits:
        return [line("This thread does not have these words.")]
    return [
        line(Span(hit.item_id, "name"), "  ", one_line(hit.snippet, SNIPPET))
        for hit in hits
    ]


def file_lines(paths: Sequence[str]) -> list[Line]:
    """Return the paths, each as `--mention` takes it."""
    if not paths:
        return [line("No file there has these letters in its path.")]
    return [line(Span(visible(path), "name")) for path in paths]


def item_choice(item: Item) -> Line:
    """Return an item as one of several that a person may have meant."""
    return line("  ", Span(item.id, "name"), f"  {item.kind}  ", dim(item.turn_id))


def missing_note(told: ItemOutputResult) -> str | None:
    """Return what of a text is not there, in words; `None` where all is."""
    if told.total is not None and told.total > told.available:
        missing = f"{told.total - told.available} of {told.total} bytes are not here"
    elif told.gap_at is not None:
        missing = "a part of this is not here; nobody kept how much"
    else:
        return None
    where = "" if told.gap_at is None else f" (behind the first {told.gap_at} bytes)"
    return f"{missing}{where}"
