"""Acts on the whole thread `thr`, through the door of shell tests."""

from adapter.errors import DiedUnansweredError, NoAnswerError
from agent.access.scopes import Caller
from agent.mutations.thread_wishes import Archive, Delete, Rename, Unarchive
from tests.support.door import LOCAL, House
from tests.support.mutations import KEY
from transport.protocol.thread_acts import (
    ThreadArchiveParams,
    ThreadDeleteParams,
    ThreadDeleteResult,
    ThreadForkParams,
    ThreadForkResult,
    ThreadRenameParams,
    ThreadUnarchiveParams,
)
from transport.protocol.threads import Thread, ThreadResult
from transport.protocol.turns import TextInput

SEND_KEY = "key-for-a-message-0"


async def rename(
    house: House, name: str, *, caller: Caller = LOCAL, key: str = KEY
) -> Thread:
    """Give it a name."""
    params = ThreadRenameParams(thread_id="thr", name=name, request_key=key)
    return (await house.door.admission.fulfil(caller, Rename(), params)).thread


async def archive(house: House, *, key: str = KEY, wait_ms: int = 0) -> ThreadResult:
    """Take it out of the list."""
    params = ThreadArchiveParams(thread_id="thr", request_key=key, wait_ms=wait_ms)
    return await house.door.admission.fulfil(LOCAL, Archive(), params)


async def unarchive(house: House, *, key: str = KEY) -> ThreadResult:
    """Bring it back into the list."""
    params = ThreadUnarchiveParams(thread_id="thr", request_key=key)
    return await house.door.admission.fulfil(LOCAL, Unarchive(), params)


async def delete(
    house: House,
    *,
    thread_id: str = "thr",
    key: str = KEY,
    caller: Caller = LOCAL,
) -> ThreadDeleteResult:
    """Delete it for good."""
    params = ThreadDeleteParams(thread_id=thread_id, request_key=key)
    return await house.door.admission.fulfil(caller, Delete(), params)


async def fork(
    house: House, caller: Caller = LOCAL, /, **turns: str | int
) -> ThreadForkResult:
    """Copy it, and send the copy its first message."""
    params = ThreadForkParams(
        thread_id="thr",
        input=[TextInput(type="text", text="another way")],
        request_key=KEY,
    ).model_copy(update=turns)
    return await house.door.admission.fork(caller, params)


def unanswered() -> None:
    """An action of the fake runtime: nobody answers."""
    raise NoAnswerError("thread/archive")


def died() -> None:
    """An action of the fake runtime: the process dies before it answers."""
    raise DiedUnansweredError("thread/turns/list")
