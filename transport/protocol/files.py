"""Looking for files of a folder, for who wants to mention one. Sans-IO.

PROTOCOL.md section 4 (`file/search`). Names only: nothing of a file is read.
"""

from transport.protocol.base import Params, WireId, WireModel
from transport.protocol.contents import Query
from transport.protocol.turns import FolderName


class FileSearchParams(Params):
    """`file/search`: in a thread's folder, or in a folder for a new thread; one of both."""

    thread_id: WireId | None = None
    cwd: FolderName | None = None
    query: Query


class FileSearchResult(WireModel):
    """Paths relative to the folder, as a mention takes them; the best come first.

    `truncated`: there may be more than could be looked at; other words find them.
    """

    paths: list[str]
    truncated: bool = False
