"""What Codex tells a person in passing, said once for a thread. Sans-IO.

PROTOCOL.md section 6, event `notice`. Codex repeats a warning with every turn; a phone
should not. What Codex says of the workstation itself is for who sits there: where it may
name a path, devices are told a sentence of ours.
"""

import re
from typing import Final

from adapter.limits import NOTICE_CHARS, NOTICES_SAID
from adapter.runtime.events import Emitted, RuntimeEvent
from transport.protocol.events import Notice, NoticeLevel

_URL: Final = re.compile(r"https?://[\w.-]+[^\s]*")
_BRIEF: Final = {
    "codexWarning": "Codex has a warning that names files of the workstation",
    "configWarning": "Codex has a warning about its configuration",
    "hookStopped": "a hook of the workstation stopped something or failed",
    "mcpServerFailed": "an MCP server did not start",
    "notNamed": "the thread has no name: Codex did not take it",
    "reviewWarning": "Codex's own review has a warning that names files",
    "signIn": "Codex signs in to its model provider again",
    "worldWritable": "folders that everybody may write to weaken the sandbox",
}
_WHERE: Final = "at the workstation `threadgate watch` tells it whole"


def public_of(whole: Notice) -> Notice | None:
    """Return what devices are told instead; `None`: the same.

    Whatever has a slash, outside of a web address, may be a path.
    """
    brief = _BRIEF.get(whole.code)
    words = _URL.sub("", whole.message)
    if brief is None or not ("/" in words or "\\" in words):
        return None
    return whole.model_copy(update={"message": f"{brief}; {_WHERE}"})


class Notices:
    """Makes notices, each text once for a thread."""

    def __init__(self) -> None:
        self._said: dict[tuple[str | None, str, str], None] = {}

    def once(
        self,
        notice: Notice,
        *,
        root: str | None,
        at: int,
    ) -> list[RuntimeEvent]:
        """Return the notice as an event, or nothing where it has been said lately."""
        key = (notice.thread_id, notice.code, notice.message)
        if key in self._said:
            return []
        self._said[key] = None
        if len(self._said) > NOTICES_SAID:
            del self._said[next(iter(self._said))]
        return [event_of(notice, root=root, at=at)]


def event_of(notice: Notice, *, root: str | None, at: int) -> RuntimeEvent:
    """Return a notice as an event, however often it was said."""
    return Emitted(
        at=at,
        thread_id=notice.thread_id,
        root_thread_id=root,
        data=notice,
        public=public_of(notice),
    )


def notice(
    level: NoticeLevel, code: str, message: str, thread_id: str | None = None
) -> Notice:
    """Return a notice whose message has a length that a screen can bear."""
    return Notice(
        level=level, code=code, message=message[:NOTICE_CHARS], thread_id=thread_id
    )
