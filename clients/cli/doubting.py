"""Whether Codex lists the model and the effort that are wished. Trio shell.

Codex takes any word, and the thread keeps it. Its list may be older than what it can
reach, or know nothing of a provider of one's own: so it is said, and nothing is refused.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import trio

from clients.cli.screen import Screen
from transport.client import Client
from transport.errors import Refusal
from transport.protocol.capabilities import ModelInfo, ModelListParams
from transport.protocol.methods import MODEL_LIST

LIST_S: Final = 3.0  # the message does not wait longer for a list that may tell nothing


async def doubt(
    screen: Screen, client: Client, model: str | None, effort: str | None
) -> None:
    """Say on stderr which of these words Codex does not list."""
    if model is None and effort is None:
        return
    listed: list[ModelInfo] = []
    with suppress(Refusal), trio.move_on_after(LIST_S):
        listed = (await client.call(MODEL_LIST, ModelListParams())).models
    if listed:
        for doubted in doubts(listed, model, effort):
            screen.note(f"{doubted} (see `threadgate models`); it is asked for anyway")


def doubts(
    listed: Sequence[ModelInfo], model: str | None, effort: str | None
) -> Iterator[str]:
    """Yield what is not in the list. An effort alone: of the model the thread has."""
    found = [one for one in listed if one.id == model]
    if model is not None and not found:
        yield f"Codex lists no model “{model}”"
    efforts = {word for one in found or listed for word in one.efforts}
    if effort is not None and efforts and effort not in efforts:
        of = f" for {model}" if found else ""
        yield f"Codex lists no effort “{effort}”{of}"
