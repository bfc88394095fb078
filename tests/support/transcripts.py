"""A transcript of real commands as a page that is the same every time. Sans-IO.

Ids, times, ports, paths and keys differ from run to run: each gets a stand-in, the same
for the same thing, and tables are set anew around them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

_UUID: Final = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b"
)
_APPROVAL: Final = re.compile(r"\bapr_[0-9a-f]{32}\b")
_QR: Final = re.compile("[█▀▄\x1b]")
_GAP: Final = re.compile(r"\s{2,}")
_QUEUED: Final = re.compile(r"\bq-[0-9a-f]{32}\b")
_HEADER: Final = re.compile(r"^ *[A-Z]+( [A-Z]+)*(\s{2,}[A-Z]+( [A-Z]+)*)+$")
_BAR: Final = re.compile(r"^(\s*\S+\s+)\| (.*)$")
_FOLD: Final = re.compile(r"^\s+> (.*)$")
_INSIDE: Final = re.compile(r"[\w-]")
_LEAST: Final = 8  # characters of an id that a person would type
_SIMPLE: Final = (
    (re.compile(r"TGATE:[A-Z2-7]+"), "TGATE:AEQY5HGBZWYHNIEAJ5P2X22UPABC4MP3NTTB…"),
    (re.compile(r"\b[A-Z2-7]{4}(-[A-Z2-7]{4}){5}\b"), "BF32-YWJB-UBMB-LXIW-GSOA-M4HZ"),
    (re.compile(r"\b\d{3} \d{3}\b"), "985 309"),
    (re.compile(r"…\S*/bakery"), "~/bakery"),
    (re.compile(r"\bcli-[0-9a-f]{32}\b"), "cli-9f86d081884c7d65…"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:7130"),
    (re.compile(r"\bpid \d+"), "pid 27050"),
    # On the day after, a time comes with its date; what always has one has seconds, too.
    (re.compile(r"\b\d{4}-\d\d-\d\d (?=\d\d:\d\d(?!:))"), ""),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "2026-12-01"),
    (re.compile(r"\b\d\d:\d\d(:\d\d)?\b"), "12:00"),
    (re.compile(r"(?<!\bin )(?<!\band )\b\d+ min( \d+ s)?(?=$| | *,)"), "1 s"),
    (re.compile(r"\b\d+ min( \d+ s)?\b"), "5 min"),
    (re.compile(r"(?<=for one device and )5 min"), "2 min"),
    (re.compile(r"(?<!again in )\b\d+(\.\d+)? (m?s)\b"), "1 s"),
    (re.compile(r"(?<=  )now(?=  )"), "1 s"),  # of who was seen right now
    (re.compile(r"(?<=exit \d), 1 s$"), ""),  # said of a command that took long
    # … and of a thread that a writer holds: on a slow machine it was let go of before.
    (re.compile(r"(?<=  idle  /home/ann/bakery), workspace-write, on-request$"), ""),
)


@dataclass(slots=True)
class Stand:
    """Stand-ins. `names`: what is replaced by what, longest first; ids come by themselves."""

    names: dict[str, str]
    _ids: dict[str, str] = field(default_factory=dict[str, str])

    def rows(self, text: str) -> list[str]:
        """Return the lines of an output, as the page shows them."""
        rows = [row.rstrip() for row in text.replace("\r", "").splitlines()]
        shown = list(_unfolded([row for row in rows if not _QR.search(row)]))
        return list(_tables([self.row(row) for row in _squeezed(shown)]))[:-1]

    def row(self, row: str) -> str:
        """Return one line with its stand-ins."""
        for real in sorted(self.names, key=len, reverse=True):
            row = row.replace(real, self.names[real])
        self.learn(row)
        for real, stand in self._ids.items():
            row = _replaced(row, real, stand)
        row = re.sub(r"^(\s+\w+\s+)\| (?=/home/ann)", r"\1", row)
        for pattern, stand in _SIMPLE:
            row = pattern.sub(stand, row)
        return row

    def know(self, real: str, stand: str) -> None:
        """Take in an id that cannot be recognised by itself."""
        self._ids[real] = stand

    def prefer(self, real: str) -> None:
        """From now on the beginning of this id means it, and not one that begins alike."""
        self._ids = {real: self._ids.pop(real), **self._ids}

    def learn(self, row: str) -> None:
        """Give stand-ins to the ids in a line."""
        for real in _UUID.findall(row):
            threads = sum(1 for one in self._ids if _UUID.fullmatch(one))
            self._ids.setdefault(
                real,
                f"01a22e{0x55 + threads:02x}-13fb-7221-b972-3e11912772{80 + threads}",
            )
        for real in _QUEUED.findall(row):
            count = sum(1 for one in self._ids if _QUEUED.fullmatch(one))
            stand = f"q-{count + 1}91ffa63edf37d0dc7ad219456d9e7b0"
            self._ids.setdefault(real, stand)
        for real in _APPROVAL.findall(row):
            count = sum(1 for one in self._ids if one.startswith("apr_"))
            stand = f"apr_{count + 1}31ffa63edf37d0dc7ad219456d9e7b0"
            self._ids.setdefault(real, stand)


def _replaced(row: str, real: str, stand: str) -> str:
    """Replace an id and each beginning of it that is long enough to be one."""
    least = real[:_LEAST]
    place = row.find(least)
    while place >= 0:
        end = place + _LEAST
        while (
            end - place < len(real) and row[place : end + 1] == real[: end + 1 - place]
        ):
            end += 1
        whole = not (_INSIDE.match(row[place - 1 : place]) or _INSIDE.match(row[end:]))
        kept = stand if end - place == len(real) else stand[: _short(stand)]
        if whole:
            row = row[:place] + kept + row[end:]
        place = row.find(least, place + (len(kept) if whole else 1))
    return row


def _short(stand: str) -> int:
    if stand.startswith("q-"):
        return 10
    return 12 if stand.startswith("apr_") else _LEAST


def _unfolded(rows: Sequence[str]) -> Iterator[str]:
    """A text that was folded at the width of the screen is one line again."""
    last = ""
    for row in rows:
        if (first := _BAR.match(last)) and (more := _FOLD.match(row)):
            last = f"{first[1]}| {first[2]}{more[1]}"
            continue
        yield last
        last = row
    yield last


def _squeezed(rows: Sequence[str]) -> Iterator[str]:
    """At most one empty row between others, none at the ends."""
    said = False
    for row in rows:
        if row:
            yield row
        elif said:
            yield ""
        said = bool(row)


def _tables(rows: Sequence[str]) -> Iterator[str]:
    table: list[list[str]] = []
    for row in [*rows, ""]:
        if _HEADER.match(row) or (table and row):
            table.append(_GAP.split(row))
            continue
        yield from _aligned(table)
        table = []
        yield row


def _aligned(table: Sequence[Sequence[str]]) -> Iterator[str]:
    wide = [
        max(len(row[column]) for row in table if column < len(row))
        for column in range(max(map(len, table), default=0))
    ]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, wide, strict=False))
        yield "  ".join(cells).rstrip()


@dataclass(slots=True)
class Page:
    """A page of Markdown: headings, sentences, and what was typed and said."""

    stand: Stand
    rows: list[str] = field(default_factory=list[str])

    def title(self, text: str) -> None:
        """Begin a section."""
        self.rows += ["", f"## {text}"]

    def tell(self, sentence: str) -> None:
        """Say what comes next."""
        self.rows += ["", sentence]

    def block(self, *said: tuple[str, str]) -> None:
        """Show (who and a mark, text) pairs: `desk $` a command, `desk |` an output."""
        self.rows += ["", "```"]
        for who, text in said:
            self.rows += [f"{who} {row}".rstrip() for row in self.stand.rows(text)]
        self.rows.append("```")

    def text(self) -> str:
        """Return the page."""
        return "\n".join(self.rows).strip() + "\n"
