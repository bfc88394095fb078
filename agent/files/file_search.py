"""`file/search`: files of a folder by words, for who wants to mention one. Trio shell.

PROTOCOL.md section 4. Codex looks, and follows links wherever they lead: so each path is
opened here like a mention is, through no link, before anybody hears of it.
"""

import os
from collections.abc import Callable, Iterable

import trio

from adapter.errors import AdapterError
from adapter.runtime.store import FoundFiles
from agent.access.roots import resolved
from agent.access.scopes import Caller
from agent.access.sight import Sight
from agent.app_servers.supervisor import Supervisor
from agent.files.beneath import OutsideError, open_beneath, parts_of
from agent.files.private import PrivateFolders
from agent.limits import FILE_SEARCHES
from agent.mutations.refusals import failed_before
from agent.offload import Runner, in_thread
from transport.errors import InvalidParams, Overloaded
from transport.protocol.files import FileSearchParams, FileSearchResult


class FileSearch:
    """One search for a device at a time, the newest; few at once for all."""

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        sight: Sight,
        private: PrivateFolders,
        now_ms: Callable[[], int],
        run: Runner = in_thread,
    ) -> None:
        self._supervisor = supervisor
        self._sight = sight
        self._private = private
        self._now_ms = now_ms
        self._run = run
        self._newest: dict[str, trio.CancelScope] = {}
        self._places = trio.CapacityLimiter(FILE_SEARCHES)

    async def search(
        self, caller: Caller, params: FileSearchParams
    ) -> FileSearchResult:
        """Return files in the folder that fit the words.

        Raises: NotFound (thread), Forbidden, InvalidParams, Overloaded (a newer search
        of this device took its place), Timeout, CodexUnavailable.
        """
        folder = await self._folder(caller, params)
        before = self._newest.pop(caller.device_id, None)
        if before is not None:
            before.cancel()
        with trio.CancelScope() as mine:
            self._newest[caller.device_id] = mine
            try:
                found = await self._found(folder, params.query)
                shown = await self._run(lambda: self._shown(folder, found.paths))
                return FileSearchResult(paths=shown, truncated=found.truncated)
            finally:
                if self._newest.get(caller.device_id) is mine:
                    del self._newest[caller.device_id]
        raise Overloaded(
            "A newer search of this device took the place of this one.",
            data={"limit": 1},
        )

    async def _folder(self, caller: Caller, params: FileSearchParams) -> str:
        """Return the folder, links followed, which the caller may see."""
        if (params.thread_id is None) == (params.cwd is None):
            reason = "name a thread or a folder, one of them"
            raise InvalidParams(
                f"threadId, cwd: {reason}.", data={"field": "cwd", "reason": reason}
            )
        if params.thread_id is None:
            assert params.cwd is not None
            return await self._sight.folder(caller, params.cwd)
        thread = await self._sight.thread(caller, params.thread_id)
        return await self._run(lambda: resolved(thread.cwd))

    async def _found(self, folder: str, query: str) -> FoundFiles:
        async with self._places:
            try:
                contents = self._supervisor.reader.contents
                return await contents.find_files(query, folder=folder)
            except AdapterError as exc:
                at_ms = self._now_ms()
                raise failed_before(exc, thread_id="", at_ms=at_ms) from exc

    def _shown(self, folder: str, paths: Iterable[str]) -> list[str]:
        return [path for path in paths if self._is_inside(folder, path)]

    def _is_inside(self, folder: str, path: str) -> bool:
        """Whether a mention could name it: a regular file, and no link on the way, the
        folder itself included, which was resolved before."""
        try:
            parts_of(path)
            whole = os.path.join(folder, path)
            os.close(open_beneath("/", whole.removeprefix("/")))
        except OutsideError:
            return False
        return not self._private.hold(whole, of=folder)
