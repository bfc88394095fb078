"""What a person sees, kept as text files that a reviewer can read.

`THREADGATE_GOLDEN=write pytest …` writes them anew; without it a difference fails.
"""

import os
from difflib import unified_diff
from pathlib import Path

import pytest

_WRITE = os.environ.get("THREADGATE_GOLDEN") == "write"


def check_golden(path: Path, text: str) -> None:
    """Compare `text` with the file; with `THREADGATE_GOLDEN=write` replace the file."""
    if _WRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    if not path.exists():
        pytest.fail(f"{path} is missing: run once with THREADGATE_GOLDEN=write")
    kept = path.read_text(encoding="utf-8")
    if text != kept:
        rows = unified_diff(kept.splitlines(), text.splitlines(), "kept", "now", n=1)
        pytest.fail(
            f"{path.name} differs; if it should, run with THREADGATE_GOLDEN=write\n"
            + "\n".join(rows)
        )
