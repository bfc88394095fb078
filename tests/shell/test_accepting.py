"""The accept loop: no descriptors left is a pause, a broken connection is its own fault."""

import errno
from functools import partial

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from agent.edge_limits import ACCEPT_PAUSE_S
from agent.sessions.serve import accept_forever


class Listener(trio.abc.Listener[trio.abc.Stream]):
    """Gives what the test put in: streams, or errors."""

    def __init__(self, *given: OSError | trio.abc.Stream) -> None:
        self.given = list(given)
        self.closed = False

    async def accept(self) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        if not self.given:
            await trio.sleep_forever()
        one = self.given.pop(0)
        if isinstance(one, OSError):
            raise one
        return one

    async def aclose(self) -> None:
        self.closed = True
        await trio.lowlevel.checkpoint()


async def test_78_no_descriptors_left_is_a_pause(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    stream, other = trio.testing.memory_stream_pair()
    full = OSError(errno.EMFILE, "too many open files")
    listener = Listener(full, full, stream)
    served = trio.Event()

    async def serve(_stream: trio.abc.Stream) -> None:
        served.set()
        await trio.lowlevel.checkpoint()

    async def accept() -> None:
        await accept_forever(listener, serve, handler_nursery=nursery)

    nursery.start_soon(accept)
    start = trio.current_time()
    await served.wait()
    assert trio.current_time() - start == pytest.approx(2 * ACCEPT_PAUSE_S)
    await other.aclose()
    nursery.cancel_scope.cancel()
    await trio.lowlevel.checkpoint_if_cancelled()


async def test_78_the_owner_s_door_has_descriptors_of_its_own_for_then(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, third = (trio.testing.memory_stream_pair()[0] for _ in range(3))
    full = OSError(errno.EMFILE, "too many open files")
    listener = Listener(full, first, full, second, *[full] * 100, third)
    served: list[float] = []

    async def serve(_stream: trio.abc.Stream) -> None:
        served.append(trio.current_time())
        await trio.sleep(5)

    start = trio.current_time()
    accept = partial(accept_forever, listener, serve, handler_nursery=nursery, spares=2)
    nursery.start_soon(accept)
    await trio.sleep(50)
    # Those two take all spares; when they end, the spares are held and used again.
    assert served[:2] == [start, start]
    assert served[2] == pytest.approx(start + 98 * ACCEPT_PAUSE_S)
    assert caplog.text.count("cannot accept") == 1, "said once a minute"
    nursery.cancel_scope.cancel()
    await trio.lowlevel.checkpoint_if_cancelled()


async def test_another_error_of_the_listener_is_told(nursery: trio.Nursery) -> None:
    async def serve(_stream: trio.abc.Stream) -> None:
        await trio.lowlevel.checkpoint()

    listener = Listener(OSError(errno.EBADF, "bad file descriptor"))
    with pytest.raises(OSError, match="bad file"):
        await accept_forever(listener, serve, handler_nursery=nursery)
    assert listener.closed


async def test_a_connection_that_fails_ends_alone_and_says_nothing_of_its_content(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    streams = [trio.testing.memory_stream_pair() for _ in range(2)]
    served = 0

    async def serve(_stream: trio.abc.Stream) -> None:
        nonlocal served
        served += 1
        await trio.lowlevel.checkpoint()
        msg = "a secret plan"
        raise ValueError(msg)

    listener = Listener(*(ours for ours, _ in streams))

    async def accept() -> None:
        await accept_forever(listener, serve, handler_nursery=nursery)

    nursery.start_soon(accept)
    await trio.testing.wait_all_tasks_blocked()
    assert served == 2
    for _, theirs in streams:
        assert await theirs.receive_some() == b"", "it was closed"
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text
    nursery.cancel_scope.cancel()
    await trio.lowlevel.checkpoint_if_cancelled()
