"""Messages that wait in the thread `thr`, in shell tests."""

from collections.abc import Callable
from typing import Any

import trio

from tests.support.door import LOCAL, House, send
from transport.protocol.events import Notice
from transport.protocol.queue import QueueDeleteParams, QueueListParams
from transport.protocol.turns import TurnStartParams


def queued(number: int = 0, thread_id: str = "thr", **more: Any) -> TurnStartParams:
    """Return a message that may wait."""
    key = f"queue-key-{number:04}-abcdef"
    text = f"message {number}"
    return send(thread_id, text, key=key, delivery="queue", **more)


def delete(queue_id: str, key: str = "delete-key-0123456789") -> QueueDeleteParams:
    """Return the params of a queue/delete."""
    return QueueDeleteParams(queue_id=queue_id, request_key=key)


async def put(house: House, *numbers: int) -> list[str]:
    """Queue messages; return their ids."""
    ids: list[str] = []
    for number in numbers:
        params = queued(number)
        result = await house.door.admission.start_turn(LOCAL, params)
        assert result.delivery == "queued"
        assert result.turn is None
        assert result.queued is not None
        ids.append(result.queued.queue_id)
    return ids


async def listed(house: House, thread_id: str | None = None) -> list[str]:
    """Return the ids of what waits."""
    params = QueueListParams(thread_id=thread_id)
    answer = await house.door.acts.queue.waiting(LOCAL, params)
    return [one.queue_id for one in answer.queue]


def texts(house: House) -> list[str]:
    """Return what has reached the model."""
    return [text for writer in house.runtime.writers for text, _ in writer.sent]


def notices(house: House) -> list[str]:
    """Return the codes of all notices."""
    found = [event.data for event in house.named("notice")]
    return [data.code for data in found if isinstance(data, Notice)]


async def shut_out(house: House, device_id: str) -> None:
    """Take away what a device has queued, on the disk too."""
    house.door.backlog.withdraw(device_id)
    await house.door.backlog.catch_up()


async def until(condition: Callable[[], bool]) -> None:
    """Let the mock clock run until it is so."""
    with trio.fail_after(3_600):
        while not condition():  # noqa: ASYNC110 - the mock clock is what is advanced
            await trio.sleep(0.1)
