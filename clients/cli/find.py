"""From what a person typed to one thread, approval or device. Trio shell.

Never a guess: see `choose`. A whole id is taken as it is; the Agent answers for it.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from clients.cli.choose import MIN_PREFIX, pick
from clients.cli.clock import Clock
from clients.cli.exits import FailedError, UsageProblemError
from clients.cli.hosts import LOCAL
from clients.cli.lines.approvals import approval_title
from clients.cli.lines.devices import device_choice
from clients.cli.lines.threads import thread_choice
from clients.cli.paging import list_rows
from clients.cli.plain import one_line
from clients.cli.style import line
from transport.client import Client
from transport.protocol.admin import DeviceListParams, DeviceRow
from transport.protocol.approvals import Approval, ApprovalListParams
from transport.protocol.methods import APPROVAL_LIST, DEVICE_LIST, THREAD_LIST
from transport.protocol.threads import Thread, ThreadListParams

MAX_PAGES: Final = 50  # of 100 threads; beyond that a prefix is not worth the wait
_WHOLE: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_APPROVAL: Final = "apr_"


async def list_threads(
    client: Client,
    params: ThreadListParams,
    *,
    count: int,
    stop: Callable[[Thread], bool] | None = None,
) -> list[Thread]:
    """Return at most `count` threads, page by page, up to one that `stop` is for."""
    return await list_rows(
        client,
        THREAD_LIST,
        params,
        lambda page: (page.threads, page.next_cursor),
        count=count,
        stop=stop,
    )


async def find_thread(client: Client, word: str) -> str:
    """Return the id of the thread that is meant. Archived ones only where no other fits.

    Raises: UsageProblemError, with the threads where several fit.
    """
    if _WHOLE.fullmatch(word):
        return word
    how = "`threadgate threads`"
    for archived in (False, True):
        threads = await list_threads(
            client, ThreadListParams(archived=archived), count=MAX_PAGES * 100
        )
        if len(threads) == MAX_PAGES * 100:
            raise UsageProblemError(
                "there are too many threads to look for the beginning of an id: give "
                f"the whole id ({how})"
            )
        fits = any(thread.id.startswith(word) for thread in threads)
        if archived or fits or len(word) < MIN_PREFIX:
            return pick(
                word,
                threads,
                key=lambda thread: thread.id,
                show=thread_choice,
                kind="thread",
                how=how,
            ).id
    raise AssertionError("the second round always picks or raises")


def find_folder(client: Client, cwd: str) -> str:
    """Return the folder of the workstation that is meant.

    From elsewhere only a whole path means anything. Raises: UsageProblemError.
    """
    if cwd.startswith("/"):
        return cwd
    if client.opened.device.id == LOCAL:
        return str(Path(cwd).resolve())
    raise UsageProblemError("--cwd is a folder of the workstation: give its whole path")


async def pending_approvals(
    client: Client, thread_id: str | None = None
) -> list[Approval]:
    """Return everything that waits for an answer, oldest first."""
    return await list_rows(
        client,
        APPROVAL_LIST,
        ApprovalListParams(thread_id=thread_id),
        lambda page: (page.approvals, page.next_cursor),
    )


async def find_approval(client: Client, word: str, clock: Clock) -> Approval:
    """Return the pending approval that is meant; `apr_` may be left out.

    Raises: FailedError (it does not wait any more), UsageProblemError.
    """
    word = word if word.startswith(_APPROVAL) else _APPROVAL + word
    pending = await pending_approvals(client)
    if not any(one.id.startswith(word) for one in pending):
        waits = ", ".join(one.id for one in pending[:5]) or "nothing"
        raise FailedError(
            f"{one_line(word, 60)} does not wait for an answer (any more); what waits: {waits}"
        )
    if len(word) < len(_APPROVAL) + MIN_PREFIX:
        raise UsageProblemError(
            f"“{word}” is too short: give at least {MIN_PREFIX} characters after {_APPROVAL}"
        )
    return pick(
        word,
        pending,
        key=lambda approval: approval.id,
        show=lambda approval: line("  ", approval_title(approval, clock)),
        kind="approval",
        how="`threadgate approvals`",
    )


async def list_devices(client: Client) -> list[DeviceRow]:
    """Return all devices of this Agent; only its owner may ask."""
    return (await client.call(DEVICE_LIST, DeviceListParams())).devices


async def device_names(client: Client) -> dict[str, str]:
    """Return what devices are called, by their ids; only their owner may know."""
    if client.opened.device.id != LOCAL:
        return {}
    return {device.id: device.name for device in await list_devices(client)}


async def find_device(client: Client, word: str) -> DeviceRow:
    """Return the device that is meant, by the beginning of its id or its whole name.

    Devices choose their names: one that is called like another's id is no way to have
    the wrong one revoked, since both fit then.
    """
    devices = await list_devices(client)
    named = [d for d in devices if d.name == word and not d.id.startswith(word)]
    if not named:
        return pick(
            word,
            devices,
            key=lambda device: device.id,
            show=device_choice,
            kind="device",
            how="`threadgate devices list`",
        )
    fit = [*named, *(d for d in devices if d.id.startswith(word))]
    if len(fit) == 1:
        return fit[0]
    raise UsageProblemError(
        f"several devices fit “{one_line(word, 60)}”: say which by its id",
        [device_choice(device) for device in fit],
    )
