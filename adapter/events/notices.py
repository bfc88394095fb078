"""What Codex tells a person in passing, said once for a thread. Sans-IO.

PROTOCOL.md section 6, event `notice`. Codex repeats a warning with every turn; a phone
should not.
"""

from adapter.limits import NOTICE_CHARS, NOTICES_SAID
from adapter.runtime import Emitted, RuntimeEvent
from transport.protocol.events import Notice, NoticeLevel


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
    return Emitted(at=at, thread_id=notice.thread_id, root_thread_id=root, data=notice)


def notice(
    level: NoticeLevel, code: str, message: str, thread_id: str | None = None
) -> Notice:
    """Return a notice whose message has a length that a screen can bear."""
    return Notice(
        level=level, code=code, message=message[:NOTICE_CHARS], thread_id=thread_id
    )
