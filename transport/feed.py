"""Events between the reader of a connection and their consumer. Trio shell.

The reader never waits here: a consumer that makes a call while it looks at an event
would else wait for itself. A full queue drops what follows instead, and once it is empty
the subscription is asked for again from its cursor: the Agent's journal is the queue.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio
from pydantic import ValidationError

from transport.errors import RemoteProtocolError
from transport.limits import EVENTS_HELD
from transport.protocol.session import SubscribeResult
from transport.subscription import ClientEvent, Subscription

_BREATH: Final = 32  # events that a busy consumer gets between two checkpoints


class Feed:
    """An async iterator of `ClientEvent`, for one consumer."""

    def __init__(
        self, subscription: Subscription, renew: Callable[["Feed"], Awaitable[None]]
    ) -> None:
        self.subscription = subscription
        self._renew = renew
        self._queue: deque[ClientEvent] = deque()
        self._news = trio.Event()
        self._failure: Exception | None = None
        self._taken = 0
        self.overflowed = False

    def answered(self, raw: Mapping[str, Any]) -> None:
        """Take in the answer to a subscribe request."""
        try:
            result = SubscribeResult.model_validate(raw)
        except ValidationError as exc:
            raise RemoteProtocolError("events/subscribe: not as specified") from exc
        self.overflowed = False
        self._put(self.subscription.answered(result))

    def take(self, frame: Mapping[str, Any]) -> None:
        """Take in a frame with events."""
        for event in self.subscription.events(frame):
            self._put(event)
        if len(self._queue) >= EVENTS_HELD:
            self.subscription.pause()
            self.overflowed = True

    def fail(self, failure: Exception) -> None:
        """End the iteration with this, after what is there."""
        self._failure = failure
        self._news.set()

    async def wait_ready(self) -> None:
        """Return when there is something to iterate, or raise what ended it."""
        while not self._queue:
            if self._failure is not None:
                raise self._failure
            if self.overflowed:
                await self._renew(self)
            if not self._queue and self._failure is None:
                self._news = trio.Event()
                await self._news.wait()

    def __aiter__(self) -> "Feed":
        return self

    async def __anext__(self) -> ClientEvent:
        self._taken += 1
        if self._taken % _BREATH == 0:
            await trio.lowlevel.checkpoint()
        await self.wait_ready()
        return self._queue.popleft()

    def _put(self, event: ClientEvent) -> None:
        self._queue.append(event)
        self._news.set()
