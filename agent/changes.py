"""Something may have changed: look again. Trio shell.

A condition that many may wait for and anybody may tell without blocking. Who waits
checks its condition first; between that check and `wait` there must be no checkpoint.
"""

import trio


class Changes:
    """One bell. A ring wakes all who wait now, and nobody who comes later."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def ring(self) -> None:
        """Wake everybody who waits."""
        event, self._event = self._event, trio.Event()
        event.set()

    async def wait(self) -> None:
        """Return at the next ring."""
        await self._event.wait()
