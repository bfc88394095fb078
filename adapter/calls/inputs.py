"""What a person sends, as Codex's inputs; made here and nowhere else. Sans-IO.

PROTOCOL.md section 4. No client can name a Codex input or a path of its own: a picture is
a file that the Agent took in, a mention is a file that the Agent found.
"""

from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from adapter.runtime.acts import FileMention, InputPart, LocalImage
from generated.codex import UserInput

MENTIONED: Final = "Mentioned file: "


def user_inputs(parts: Sequence[InputPart]) -> list[UserInput]:
    """Return the inputs in the order given."""
    return [one for part in parts for one in _inputs(part)]


def _inputs(part: InputPart) -> Iterator[UserInput]:
    match part:
        case str():
            yield {"type": "text", "text": part}
        case LocalImage():
            yield {"type": "localImage", "path": part.path}
        case FileMention():
            # Codex keeps a mention in the thread and tells its model nothing of it
            # (0.163 and 0.171): only text reaches the model.
            yield {"type": "text", "text": f"{MENTIONED}{part.name}"}
            yield {"type": "mention", "name": part.name, "path": part.path}
        case _:
            assert_never(part)
