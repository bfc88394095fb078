"""Recorded runs of a real app-server: where they are, and what is said in them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from adapter.events.replay import Message, Replay

__all__ = ["TRACES", "Message", "Replay", "read_trace", "said", "trace_names"]

TRACES: Final = Path(__file__).parents[1] / "traces"


def trace_names() -> list[str]:
    """Return the names of all traces."""
    return sorted(path.stem for path in TRACES.glob("*.jsonl"))


def read_trace(name: str) -> list[Message]:
    """Return the lines of a trace."""
    lines = (TRACES / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def said(lines: list[Message], *methods: str) -> Iterator[Message]:
    """Return the params of these notifications, in order."""
    for line in lines:
        message = line["msg"]
        told = line["dir"] == "in" and "id" not in message
        if told and message.get("method") in methods:
            yield message["params"]
