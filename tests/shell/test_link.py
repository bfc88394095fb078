"""One connection of a client, where its two tasks meet."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from transport.background import open_background
from transport.errors import CloseCode, LinkLostError, PeerClosedError, TruncatedError
from transport.limits import CLOSE_S
from transport.link import Link


class ClosedByPeer:
    """A channel whose peer has closed: a send finds out first, the CLOSE comes later."""

    def __init__(self, *, close_after_s: float | None) -> None:
        self.heard_at = self.sent_at = trio.current_time()
        self._close_after_s = close_after_s

    async def send(self, frames: Sequence[bytes]) -> None:
        del frames
        await trio.lowlevel.checkpoint()
        raise TruncatedError("the peer is gone")

    async def receive(self) -> dict[str, Any]:
        if self._close_after_s is None:
            await trio.sleep_forever()
        await trio.sleep(self._close_after_s or 0)
        raise PeerClosedError(CloseCode.REVOKED, 3)

    async def aclose(self, code: CloseCode = CloseCode.DONE) -> None:
        del code
        await trio.lowlevel.checkpoint()


def ignore(frame: dict[str, Any]) -> None:
    del frame


async def lose(channel: ClosedByPeer) -> None:
    link = Link(channel)
    async with open_background(partial(link.serve, ignore)):
        with pytest.raises(LinkLostError) as caught:
            await link.request("gateway/status", {})
        assert caught.value.sent
        await trio.sleep_forever()


async def test_the_peers_close_is_the_reason_though_a_send_failed_first(
    autojump_clock: MockClock,
) -> None:
    with pytest.raises(PeerClosedError) as caught:
        await lose(ClosedByPeer(close_after_s=CLOSE_S / 2))
    assert caught.value.code is CloseCode.REVOKED


async def test_a_peer_that_is_gone_without_a_word_is_not_waited_for(
    autojump_clock: MockClock,
) -> None:
    with pytest.raises(TruncatedError):
        await lose(ClosedByPeer(close_after_s=None))
    assert trio.current_time() == CLOSE_S


async def test_nothing_is_sent_on_a_lost_connection() -> None:
    link = Link(ClosedByPeer(close_after_s=0))
    with pytest.raises(PeerClosedError):
        async with open_background(partial(link.serve, ignore)):
            await trio.sleep_forever()
    assert link.lost
    for _ in range(17):  # and no place in flight is kept
        with pytest.raises(LinkLostError) as caught:
            await link.request("gateway/status", {})
        assert not caught.value.sent
