"""`doctor`: one line for each thing that was looked at, and what to do. Trio shell."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from clients.cli.exits import ExitCode
from clients.cli.plain import one_line
from clients.cli.screen import Screen
from clients.cli.style import Line, Span, Style, dim, line
from clients.cli.workstation import examine

_STYLES: Final[Mapping[str, Style]] = {"ok": "good", "warn": "warn", "fail": "bad"}
_ADVICE: Final = " " * 20


async def doctor(screen: Screen, *, report: bool) -> ExitCode:
    """Examine this workstation; FAILED where something must be mended."""
    findings = await examine(report=report)
    failed = any(row["level"] == "fail" for row in findings)
    if screen.as_json:
        screen.json({"ok": not failed, "findings": findings})
    screen.lines(finding_lines(findings))
    return ExitCode.FAILED if failed else ExitCode.OK


def finding_lines(findings: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Return one line for each finding, and one for its advice."""
    lines: list[Line] = []
    for row in findings:
        level = str(row["level"])
        head = Span(f"{level:<6}", _STYLES.get(level, ""))
        lines.append(line(head, dim(f"{row['name']:<14}"), one_line(str(row["text"]))))
        if advice := row.get("advice"):
            lines.append(line(_ADVICE, f"→ {one_line(str(advice))}"))
    return lines
