"""What of a thread's folder is nobody's to see: Codex's home and our state. Blocking I/O.

SECURITY.md. A thread may work in a folder that only happens to contain these.
"""

import os
from pathlib import Path
from typing import Final

from agent.access.roots import inside, resolved

WORKTREES: Final = "worktrees"  # in Codex's home: where its app puts folders to work in


class PrivateFolders:
    """The folders, with links followed at each look."""

    def __init__(self, *, codex_home: Path, state_dir: Path) -> None:
        self._codex_home = str(codex_home)
        self._private = (str(codex_home), str(state_dir))

    def hold(self, path: str, *, of: str) -> bool:
        """Whether a path below the resolved folder `of` lies in one of them."""
        own = resolved(os.path.join(self._codex_home, WORKTREES))
        if of != own and inside(of, [own]):
            return False
        return inside(path, map(resolved, self._private))
