"""When to start the reader again after it died. Sans-IO.

Failures are counted with decay (half of them forgotten every 30 s). A few in a row are
answered at once; a process that cannot live is not started in a tight loop.
"""

from agent.limits import BACKOFF_S, FAILURE_HALF_LIFE_S, FAILURES, START_PAUSE_S


class RestartPolicy:
    """Counts failures; says how long to wait before the next start."""

    def __init__(self) -> None:
        self._failures = 0.0
        self._at = 0.0

    @property
    def is_failing(self) -> bool:
        """Whether so many failed lately that starts are spaced out."""
        return self._failures > FAILURES

    def failed(self, *, now_s: float, jitter: float) -> float:
        """Count one failure; return the pause in seconds.

        `jitter` is random in [0, 1): it spreads several Agents that fail together.
        """
        age = max(0.0, now_s - self._at)
        self._failures = self._failures * 0.5 ** (age / FAILURE_HALF_LIFE_S) + 1.0
        self._at = now_s
        pause = BACKOFF_S if self.is_failing else START_PAUSE_S
        return pause * (0.5 + jitter)
