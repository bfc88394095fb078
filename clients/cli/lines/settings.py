"""What a thread's turns run with, as lines. Sans-IO."""

from typing import Final

from clients.cli.plain import one_line, visible
from clients.cli.style import Line, Span, dim, line
from transport.protocol.threads import Thread

_WIDTH: Final = 8  # cells; the longest name has seven letters
_ASKS: Final = {
    "untrusted": "before commands that are not known to be harmless",
    "on-request": "when it wants to do more than the sandbox lets it",
    "never": "never: what the sandbox does not let through fails",
}
_LETS: Final = {
    "read-only": "nothing is written",
    "workspace-write": "writes in the folder",
    "danger-full-access": "everything is let through",
}
_MODES: Final = {"plan": "plan only: nothing is changed", "default": "work"}


def settings_lines(thread: Thread) -> list[Line]:
    """Return the thread and its settings, each with what it means."""
    head = line(Span(thread.id, "name"))
    if (found := thread.settings) is None:
        why = "not known yet: Codex tells them when it loads the thread, which a message does"
        return [head, line(dim(why))]
    rows = [
        _row("model", found.model, found.effort and f"effort {found.effort}"),
        _row("mode", found.mode, _MODES.get(found.mode or "")),
        _row("sandbox", found.sandbox, _LETS.get(found.sandbox or "")),
        _row("asks", found.approval_policy, _ASKS.get(found.approval_policy or "")),
        _row("folder", visible(found.cwd or thread.cwd)),
    ]
    return [head, *(row for row in rows if row)]


def _row(name: str, value: str | None, means: str | None = None) -> Line:
    if not value:
        return ()
    meaning = dim(f"  ({one_line(means, 80)})" if means else "")
    return line("  ", dim(f"{name:<{_WIDTH}}"), one_line(value, 200), meaning)
