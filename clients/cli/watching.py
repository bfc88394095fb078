"""`watch`: what happens, as it happens, for as long as one looks. Trio shell."""

from collections.abc import AsyncIterator

from clients.cli.doors import LinkTeller, open_door
from clients.cli.eventjson import event_json
from clients.cli.exits import ExitCode
from clients.cli.find import (
    device_names,
    find_thread,
    list_threads,
    pending_approvals,
)
from clients.cli.inplace import InPlace
from clients.cli.lines.gate import gate_span
from clients.cli.lines.threads import followed_line, thread_name
from clients.cli.screen import Screen
from clients.cli.style import line
from clients.cli.transcript import Transcript
from transport.background import open_background
from transport.client import Client
from transport.protocol.methods import THREAD_READ
from transport.protocol.threads import ThreadListParams, ThreadReadParams
from transport.subscription import ClientEvent, Resumed

NAMED = 100  # threads whose titles are known before anything happens in them


async def watch(
    screen: Screen, *, host: str | None, thread: str | None, ask: bool = True
) -> ExitCode:
    """Follow one thread, or all; it comes back by itself when the link was lost."""
    async with open_door(host, on_link=LinkTeller(screen).tell) as client:
        root = await find_thread(client, thread) if thread is not None else None
        selection = "all" if root is None else [root]
        async with client.subscribe(selection) as events:
            if screen.as_json:
                async for event in events:
                    screen.json(event_json(event))
            else:
                inplace = InPlace(screen, client, ask=ask)
                async with open_background(inplace.serve):
                    await _tell(screen, client, inplace, root, events)
    return ExitCode.OK


async def _tell(
    screen: Screen,
    client: Client,
    inplace: InPlace,
    root: str | None,
    events: AsyncIterator[ClientEvent],
) -> None:
    names = None if root is not None else await _names(client)
    transcript = Transcript(
        root=root,
        names=names,
        me=client.opened.device.id,
        devices=await device_names(client),
    )
    inplace.tell(transcript)
    _greet(screen, client, root)
    if root is not None:
        params = ThreadReadParams(thread_id=root, turns=0)
        screen.lines(followed_line((await client.call(THREAD_READ, params)).thread))
    try:
        async for event in events:
            inplace.meet(event)
            told = transcript.feed(event, screen.clock())
            inplace.show(told, transcript.asked(event))
            if isinstance(event, Resumed) and event.verdict != "ok":
                # Asked after the subscription stands: none can fall in between.
                waiting = await pending_approvals(client, root)
                inplace.settle(waiting)
                for one in waiting:
                    told = transcript.waiting([one], screen.clock())
                    inplace.show(told, one)
    finally:
        screen.pieces(transcript.finish())


async def _names(client: Client) -> dict[str, str]:
    threads = await list_threads(client, ThreadListParams(), count=NAMED)
    return {thread.id: thread_name(thread) for thread in threads}


def _greet(screen: Screen, client: Client, root: str | None) -> None:
    what = f"thread {root}" if root is not None else "all threads"
    gate = gate_span(client.opened.gate, screen.clock())
    screen.lines([line(f"Watching {what}; Ctrl-C ends it. The gate is ", gate, ".")])
