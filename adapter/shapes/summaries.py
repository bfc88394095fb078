"""One line for each type of item that v2 does not map in full. Sans-IO.

PROTOCOL.md section 5, kind `other`. A type without a row here is named, no more.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from adapter.limits import LINE_CHARS
from adapter.shapes.texts import one_line

Raw = Mapping[str, Any]


def summary_of(raw: Raw) -> str:
    """Return a line for a person; never raises on what is in the item."""
    kind = str(raw.get("type", "item"))
    build = _LINES.get(kind)
    return one_line(build(raw) if build else kind, LINE_CHARS)


def _word(raw: Raw, key: str) -> str:
    """A text of the item, with nothing in it that UTF-8 cannot hold."""
    value = raw.get(key)
    words = value if isinstance(value, str) else ""
    return words.encode("utf-8", "replace").decode()


def _hook(raw: Raw) -> str:
    fragments = raw.get("fragments")
    parts = cast("list[object]", fragments) if isinstance(fragments, list) else []
    said = [
        _word(cast("Raw", one), "text") for one in parts if isinstance(one, Mapping)
    ]
    return f"a hook added to the prompt: {' '.join(said)}".rstrip(": ")


def _sleep(raw: Raw) -> str:
    return f"waited {raw.get('durationMs', '?')} ms"


_LINES: Final[Mapping[str, Callable[[Raw], str]]] = {
    "hookPrompt": _hook,
    "sleep": _sleep,
}
