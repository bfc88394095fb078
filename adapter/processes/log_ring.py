"""What a child logs: its newest part. Sans-IO."""

from adapter.limits import STDERR_RING, STDERR_TAIL


class LogRing:
    """The newest megabyte of what the child logs."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def add(self, data: bytes | bytearray) -> None:
        """Keep the newest bytes."""
        self._kept += data
        if len(self._kept) > STDERR_RING:
            del self._kept[: len(self._kept) - STDERR_RING]

    def __len__(self) -> int:
        return len(self._kept)

    def tail(self) -> str:
        """Return the last lines, ≤ 2,000 characters."""
        return self._kept[-4 * STDERR_TAIL :].decode(errors="replace")[-STDERR_TAIL:]
