"""Descriptors that are held for the owner's door, for when all others are used. Blocking I/O.

Whoever has to lock, revoke or look at an Agent that has no descriptor left gets in by one
of these, and it is held again as soon as that connection has ended.
"""

import os


class Spares:
    """So many descriptors of nothing. Let go by `close`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: list[int] = []
        self.lay_in()

    def __len__(self) -> int:
        return len(self._held)

    def lay_in(self) -> None:
        """Hold as many again, as far as there are some. Never raises."""
        while len(self._held) < self._most:
            try:
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                return

    def give_up(self) -> bool:
        """Let one go; False: none is held."""
        if self._held:
            os.close(self._held.pop())
            return True
        return False

    def close(self) -> None:
        """Let all of them go, and hold none again."""
        self._most = 0
        while self.give_up():
            pass
