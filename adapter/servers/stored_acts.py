"""Acts on threads that nobody has loaded, through the reader. Trio shell.

PROTOCOL.md section 4. They are the reader's only writes.
"""

from adapter.calls import store_commands
from adapter.runtime.acts import Guard
from adapter.servers.app_server import AppServer


class StoredActs:
    """`StoreActs` over the reader's app-server."""

    def __init__(self, server: AppServer) -> None:
        self._server = server

    async def rename(self, thread_id: str, name: str, *, guard: Guard) -> None:
        """Give a thread its title."""
        await self._server.call(store_commands.rename(thread_id, name), guard=guard)

    async def archive(self, thread_id: str, *, guard: Guard) -> None:
        """Move a thread out of the list."""
        await self._server.call(store_commands.archive(thread_id), guard=guard)

    async def unarchive(self, thread_id: str, *, guard: Guard) -> None:
        """Move it back."""
        await self._server.call(store_commands.unarchive(thread_id), guard=guard)

    async def delete(self, thread_id: str, *, guard: Guard) -> None:
        """Delete it for good."""
        await self._server.call(store_commands.delete(thread_id), guard=guard)
