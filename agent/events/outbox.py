"""What waits to be written to one session beside events. Sans-IO.

PROTOCOL.md section 1 (Keepalive): pings are answered before queued events, and the
pong's `seq` is made when it is written, since only then it is known what went before. It
goes behind the answers: one of them may be a subscribe's, which is where `seq` counts from.
Bounded by the reader, which stops while too much waits (`full`).
"""

from collections import deque

from agent.edge_limits import UNSENT_ANSWERS, WRITE_BYTES
from transport.codec import pack


class Outbox:
    """Answers, session events and pongs in the order in which they go out."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._pings: deque[int] = deque()
        self._ping: int | None = None

    def __bool__(self) -> bool:
        return bool(self._frames or self._pings) or self._ping is not None

    @property
    def size(self) -> int:
        """Bytes of the answers and session events that wait."""
        return self._bytes

    @property
    def full(self) -> bool:
        """Whether the session should not be read before some of it is written."""
        waiting = len(self._frames) + len(self._pings)
        return waiting >= UNSENT_ANSWERS or self._bytes > WRITE_BYTES

    def add(self, frame: bytes) -> None:
        """Queue an answer or a session event."""
        self._frames.append(frame)
        self._bytes += len(frame)

    def answer_ping(self, number: int) -> None:
        """Queue a pong."""
        self._pings.append(number)

    def ping(self, number: int) -> None:
        """Queue our own ping; one at a time is enough."""
        self._ping = number

    def take(self, *, seq: int | None, now_ms: int) -> list[bytes]:
        """Return all that waits. `seq`: the cursor that is valid behind the answers."""
        frames = list(self._frames)
        if self._ping is not None:
            frames.append(pack({"ping": self._ping}))
        for number in self._pings:
            pong = {"pong": number, "now": now_ms}
            frames.append(pack(pong if seq is None else {**pong, "seq": seq}))
        self._pings.clear()
        self._ping = None
        self._frames.clear()
        self._bytes = 0
        return frames
