"""What `doctor` finds, one line each, and the same without what is private. Sans-IO."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

_ADDRESS: Final = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b(?!\.\d)")
_HOST_PORT: Final = re.compile(r"[\w.\-\[\]:]+:(\d{1,5})\b")
_PATH: Final = re.compile(r"(?<![\w.])(?:~|/)(?:[^\s,;:“”\"'()]*/)[^\s,;:“”\"'()]*")
_PID: Final = re.compile(r"\b(pid|process) \d+")


class Level(StrEnum):
    """`warn`: it works, with a limit. `fail`: it does not, or is not safe."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at. `advice`: what to do, where there is something."""

    name: str
    level: Level
    text: str
    advice: str = ""

    def wire(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        row = {"name": self.name, "level": str(self.level), "text": self.text}
        return {**row, "advice": self.advice} if self.advice else row


def ok(name: str, text: str) -> Finding:
    """Return a good finding."""
    return Finding(name=name, level=Level.OK, text=text)


def warn(name: str, text: str, advice: str) -> Finding:
    """Return a limit, and what to do about it."""
    return Finding(name=name, level=Level.WARN, text=text, advice=advice)


def fail(name: str, text: str, advice: str) -> Finding:
    """Return a fault, and what to do about it."""
    return Finding(name=name, level=Level.FAIL, text=text, advice=advice)


def redacted(findings: Sequence[Finding], *, private: Iterable[str]) -> list[Finding]:
    """Return the findings for a bug report: no path, address, pid or name in `private`.

    Names of programs at the end of a path stay: they say which codex it was.
    """
    words = sorted({word for word in private if len(word) > 2}, key=len, reverse=True)
    return [
        replace(one, text=_plain(one.text, words), advice=_plain(one.advice, words))
        for one in findings
    ]


def _plain(text: str, words: Sequence[str]) -> str:
    text = _PATH.sub(_shortened, text)
    text = _HOST_PORT.sub(r"<host>:\1", text)
    text = _ADDRESS.sub("<address>", text)
    text = _PID.sub(r"\1 <n>", text)
    for word in words:
        text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", "<name>", text)
    return text


def _shortened(match: re.Match[str]) -> str:
    last = match[0].rstrip("/").rpartition("/")[2]
    known = last in {"codex", "config.toml", "identity.key", "devices.json"}
    return f"<path>/{last}" if known else "<path>"
