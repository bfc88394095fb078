"""What else may be at work on a person's CODEX_HOME, as real programs where possible."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import trio

from adapter.calls.refusals import LOCKED
from tests.support.codex import CodexHome
from tests.support.fake_desktop import APP, open_program, place, shell
from tests.support.foreign import ForeignCodex, ForeignRefusedError

GIVEN_BACK_S: Final = 4.0  # the end of a process, on a machine that is busy


def open_desktop(
    home: CodexHome, folder: Path
) -> AbstractAsyncContextManager[trio.Process]:
    """Open a program where the desktop's lies, on this home."""
    return open_program(shell(place(folder, APP)), home.environ)


async def resume_when_free(other: ForeignCodex, thread_id: str) -> None:
    """Load a thread as soon as nobody holds it; GIVEN_BACK_S at most."""
    with trio.fail_after(GIVEN_BACK_S):
        while True:
            try:
                await other.resume(thread_id)
            except ForeignRefusedError as refusal:
                if LOCKED not in str(refusal):
                    raise
            else:
                return
