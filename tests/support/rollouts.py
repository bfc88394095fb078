"""Threads of any size for the tests, cloned from one that a real codex has recorded.

A rollout is Codex's own file of a thread: JSON lines under `CODEX_HOME/sessions`. Nobody
wants to wait until a scripted model has played 2,000 turns, so a test records a few turns
with a real codex and lets `Recording` write them again: as often as wanted, under new
thread, turn and item ids, a minute apart, with texts as large as wanted (`change`).

Only tests do that, in a CODEX_HOME of their own that is removed with them, and while no
codex runs on it. The product never reads or writes these files. Codex takes clones in by
itself: a home without a state database is read through at the next start (`forget_state`),
and a `paginated` thread's turns are shown from its next `thread/resume` on (`take_in`).
"""

import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, cast

from tests.support.foreign import ForeignCodex

Line = dict[str, Any]
Change = Callable[[Line], None]
"""Changes the payload of a cloned line in place."""

MINUTE_MS: Final = 60_000
INSTRUCTIONS: Final = 200  # characters that are kept of what Codex tells its model


@dataclass(frozen=True, slots=True)
class Recording:
    """The lines of one recorded thread: what comes before its turns, and its turns."""

    thread_id: str
    head: list[Line]
    turns: list[list[Line]]

    @classmethod
    def of(cls, home: Path, thread_id: str) -> "Recording":
        """Read a thread's rollout; Codex's own long instructions are cut short."""
        (path,) = (home / "sessions").rglob(f"rollout-*-{thread_id}.jsonl")
        with path.open() as file:
            lines = [_short(cast("Line", json.loads(line))) for line in file]
        begins = [n for n, line in enumerate(lines) if _kind(line) == "task_started"]
        bounds = [*begins, len(lines)]
        turns = [lines[a:b] for a, b in pairwise(bounds)]
        return cls(thread_id, lines[: bounds[0]], turns)

    def write(
        self,
        home: Path,
        *,
        number: int = 1,
        at_ms: int,
        turns: int | None = None,
        cwd: str | None = None,
        change: Change | None = None,
    ) -> str:
        """Write a clone of it and return its thread id.

        `number`: makes the ids of one home differ. `at_ms`: when the thread began; each
        turn begins a minute after the one before. `turns`: how many, the recorded ones
        again and again; without it as recorded.
        """
        thread_id = _uuid7(at_ms, number << 20)
        path = _path(home, thread_id, at_ms)
        path.parent.mkdir(parents=True, exist_ok=True)
        count = len(self.turns) if turns is None else turns
        changed_at = at_ms * 1_000_000
        with path.open("wb") as file:
            names = {self.thread_id: thread_id}
            if cwd is not None:
                names[str(self.head[0]["payload"]["cwd"])] = cwd
            lines = self._lines(names, number, at_ms, count)
            for ordinal, line in enumerate(lines):
                if "ordinal" in line:
                    line["ordinal"] = ordinal
                if change is not None:
                    change(line["payload"])
                file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
                changed_at = _ms(line["timestamp"]) * 1_000_000
        # When it was written is, to Codex, when the thread changed. Up to 0.163 its cursor
        # is that time alone: of threads that changed in the same ms it skips some.
        os.utime(path, ns=(changed_at, changed_at))
        return thread_id

    def _lines(
        self, names: Mapping[str, str], number: int, at_ms: int, count: int
    ) -> Iterator[Line]:
        for line in self.head:
            yield _moved(_renamed(line, names), at_ms - _ms(self.head[0]["timestamp"]))
        for place in range(count):
            lines = self.turns[place % len(self.turns)]
            begins = at_ms + place * MINUTE_MS
            ids = {
                **names,
                lines[0]["payload"]["turn_id"]: _uuid7(
                    begins, (number << 20) + place + 1
                ),
                **{
                    one: f"{one[:8]}_{place}_{n}" for n, one in enumerate(_items(lines))
                },
            }
            shift = begins - _ms(lines[0]["timestamp"])
            for line in lines:
                yield _moved(_renamed(line, ids), shift)


def forget_state(home: Path) -> None:
    """Remove Codex's databases: at its next start it goes through all rollouts."""
    for path in home.glob("*.sqlite*"):
        path.unlink()


async def take_in(codex: ForeignCodex, thread_id: str) -> None:
    """Have the turns of a paginated clone shown from now on (a resume, then nothing)."""
    await codex.request("thread/resume", {"threadId": thread_id, "excludeTurns": True})
    await codex.request("thread/unsubscribe", {"threadId": thread_id})


def _kind(line: Line) -> str:
    return str(line["payload"].get("type", ""))


def _short(line: Line) -> Line:
    payload = line["payload"]
    if line["type"] == "session_meta":
        told = payload["base_instructions"]
        told["text"] = told["text"][:INSTRUCTIONS]
    if payload.get("role") == "developer":
        for part in payload["content"]:
            part["text"] = part["text"][:INSTRUCTIONS]
    return line


def _items(lines: Iterable[Line]) -> list[str]:
    items = [line["payload"]["item"] for line in lines if "item" in line["payload"]]
    return [str(item["id"]) for item in items]


def _renamed(line: Line, names: Mapping[str, str]) -> Line:
    raw = json.dumps(line)
    for old, new in names.items():
        raw = raw.replace(old, new)
    return cast("Line", json.loads(raw))


def _moved(line: Line, shift_ms: int) -> Line:
    """Shift a line in time."""
    line["timestamp"] = _text(_ms(line["timestamp"]) + shift_ms)
    payload = line["payload"]
    if line["type"] == "session_meta":
        payload["timestamp"] = line["timestamp"]
    for key in ("started_at", "completed_at", "started_at_ms", "completed_at_ms"):
        if isinstance(payload.get(key), int):
            payload[key] += shift_ms if key.endswith("_ms") else shift_ms // 1_000
    return line


def _uuid7(at_ms: int, number: int) -> str:
    """Return a UUID as Codex's ids are: ordered by time, then by number."""
    return str(uuid.UUID(int=at_ms << 80 | 7 << 76 | 2 << 62 | number))


def _ms(timestamp: str) -> int:
    return round(datetime.fromisoformat(timestamp).timestamp() * 1_000)


def _text(at_ms: int) -> str:
    moment = datetime.fromtimestamp(at_ms / 1_000, tz=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1_000:03d}Z"


def _path(home: Path, thread_id: str, at_ms: int) -> Path:
    moment = datetime.fromtimestamp(at_ms / 1_000, tz=UTC)
    folder = home / "sessions" / f"{moment:%Y/%m/%d}"
    return folder / f"rollout-{moment:%Y-%m-%dT%H-%M-%S}-{thread_id}.jsonl"
