"""An Agent that a test plays by hand, over channels in memory.

`MemoryChannel` behaves as `transport.channel.MessageChannel` says, without any bytes;
`FakeAgent` opens sessions by itself and hands them to the test, which then plays the
other side: reads requests, answers, tells events, closes or cuts.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import trio

from transport.codec import pack, unpack
from transport.errors import (
    CLOSE_NUMBERS,
    CloseCode,
    PeerClosedError,
    TruncatedError,
    UnreachableError,
)
from transport.limits import SESSION_LIMITS

GATE = {"state": "open", "since": 1}
RUNTIME = {"state": "ready", "name": "codex", "since": 1}
AGENT = {"id": "a" * 32, "name": "workstation", "version": "0.1.0"}
DEVICE = {"id": "d1", "name": "phone", "scopes": ["read"]}
STATUS = {
    "agent": AGENT,
    "runtime": RUNTIME,
    "gate": GATE,
    "sessions": 1,
    "uptimeMs": 5,
    "epoch": "e1",
    "head": 100,
}


class MemoryChannel:
    """One end of a connection in memory."""

    def __init__(
        self,
        there: trio.MemorySendChannel[bytes | CloseCode],
        here: trio.MemoryReceiveChannel[bytes | CloseCode],
    ) -> None:
        self._there = there
        self._here = here
        self.heard_at = self.sent_at = trio.current_time()
        self.writes: list[int] = []

    async def send(self, frames: Sequence[bytes]) -> None:
        await trio.lowlevel.checkpoint()
        self.writes.append(len(frames))
        try:
            for frame in frames:
                self._there.send_nowait(frame)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as exc:
            raise TruncatedError("the peer is gone") from exc
        self.sent_at = trio.current_time()

    async def receive(self) -> dict[str, Any]:
        try:
            item = await self._here.receive()
        except trio.EndOfChannel as exc:
            raise TruncatedError("cut") from exc
        self.heard_at = trio.current_time()
        if isinstance(item, CloseCode):
            raise PeerClosedError(item, CLOSE_NUMBERS[item])
        return unpack(item)

    async def aclose(self, code: CloseCode = CloseCode.DONE) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            self._there.send_nowait(code)
        self.cut()
        await trio.lowlevel.checkpoint()

    def cut(self) -> None:
        """End the connection without a CLOSE."""
        self._there.close()
        self._here.close()


def memory_channels() -> tuple[MemoryChannel, MemoryChannel]:
    """Return both ends."""
    to_agent, at_agent = trio.open_memory_channel[bytes | CloseCode](math.inf)
    to_client, at_client = trio.open_memory_channel[bytes | CloseCode](math.inf)
    return MemoryChannel(to_agent, at_client), MemoryChannel(to_client, at_agent)


class AgentSide:
    """One session, seen from the Agent. `opening`: the params of session/open."""

    def __init__(self, channel: MemoryChannel) -> None:
        self.channel = channel
        self.opening: dict[str, Any] = {}

    async def request(self, method: str) -> dict[str, Any]:
        """Return the next frame, which must be this request."""
        frame = await self.channel.receive()
        assert frame.get("method") == method, frame
        return frame

    async def answer(self, request: dict[str, Any], result: Any) -> None:
        await self.tell({"id": request["id"], "result": result})

    async def refuse(self, request: dict[str, Any], code: str, **more: Any) -> None:
        error = {"code": code, "message": f"it is {code}", "retryable": False, **more}
        await self.tell({"id": request["id"], "error": error})

    async def tell(self, *frames: dict[str, Any]) -> None:
        await self.channel.send([pack(frame) for frame in frames])

    async def subscribed(
        self,
        *,
        verdict: str = "new",
        head: int = 100,
        epoch: str = "e1",
        opened: Sequence[dict[str, Any]] = (),
        then: Sequence[dict[str, Any]] = (),
    ) -> dict[str, Any]:
        """Answer events/subscribe, and tell `then` in the same write; return its params."""
        request = await self.request("events/subscribe")
        result = {
            "epoch": epoch,
            "head": head,
            "verdict": verdict,
            "open": list(opened),
        }
        await self.tell({"id": request["id"], "result": result}, *then)
        params: dict[str, Any] = request["params"]
        return params


class FakeAgent:
    """Answers session/open of every connection. `refusal`: with this error instead.

    `unreachable`: so many of the next dials fail. `dialled`: when, by the test's clock.
    """

    def __init__(self) -> None:
        self._arrived, self._arrivals = trio.open_memory_channel[MemoryChannel](
            math.inf
        )
        self._opened, self.sessions = trio.open_memory_channel[AgentSide](math.inf)
        self.unreachable = 0
        self.refusal: dict[str, Any] | None = None
        self.dialled: list[float] = []
        self.limits = SESSION_LIMITS.wire()

    async def dial(self) -> MemoryChannel:
        await trio.lowlevel.checkpoint()
        self.dialled.append(trio.current_time())
        if self.unreachable > 0:
            self.unreachable -= 1
            raise UnreachableError("nobody answers")
        ours, theirs = memory_channels()
        self._arrived.send_nowait(theirs)
        return ours

    async def serve(self) -> None:
        """Open sessions until cancelled."""
        async for channel in self._arrivals:
            side = AgentSide(channel)
            request = await side.request("session/open")
            if self.refusal is not None:
                await side.tell({"id": request["id"], "error": self.refusal})
                continue
            side.opening = request["params"]
            await side.answer(request, self.opened())
            self._opened.send_nowait(side)

    def opened(self) -> dict[str, Any]:
        """Return the result of session/open."""
        return {
            "protocol": "2.0",
            "agent": AGENT,
            "device": DEVICE,
            "runtime": RUNTIME,
            "gate": GATE,
            "epoch": "e1",
            "head": 100,
            "now": 1,
            "limits": self.limits,
        }
