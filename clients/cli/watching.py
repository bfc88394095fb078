"""`watch`: what happens, as it happens, for as long as one looks. Trio shell."""

from clients.cli.doors import LinkTeller, open_door
from clients.cli.eventjson import event_json
from clients.cli.exits import ExitCode
from clients.cli.find import find_thread, list_threads, pending_approvals
from clients.cli.lines.approvals import approval_lines, how_to_answer
from clients.cli.lines.gate import gate_span
from clients.cli.lines.threads import thread_name
from clients.cli.screen import Screen
from clients.cli.style import line
from clients.cli.transcript import Transcript
from transport.client import Client
from transport.protocol.threads import ThreadListParams

NAMED = 100  # threads whose titles are known before anything happens in them


async def watch(screen: Screen, *, host: str | None, thread: str | None) -> ExitCode:
    """Follow one thread, or all; it comes back by itself when the link was lost."""
    async with open_door(host, on_link=LinkTeller(screen).tell) as client:
        root = await find_thread(client, thread) if thread is not None else None
        names = None if root is not None else await _names(client)
        if not screen.as_json:
            await _greet(screen, client, root)
        transcript = Transcript(root=root, names=names, me=client.opened.device.id)
        selection = "all" if root is None else [root]
        async with client.subscribe(selection) as events:
            async for event in events:
                if screen.as_json:
                    screen.json(event_json(event))
                else:
                    screen.pieces(transcript.feed(event, screen.clock()))
    return ExitCode.OK


async def _names(client: Client) -> dict[str, str]:
    threads = await list_threads(client, ThreadListParams(), count=NAMED)
    return {thread.id: thread_name(thread) for thread in threads}


async def _greet(screen: Screen, client: Client, root: str | None) -> None:
    clock = screen.clock()
    what = f"thread {root}" if root is not None else "all threads"
    gate = gate_span(client.opened.gate, clock)
    screen.lines([line(f"Watching {what}; Ctrl-C ends it. The gate is ", gate, ".")])
    for approval in await pending_approvals(client, root):
        screen.lines([*approval_lines(approval, clock), *how_to_answer(approval)])
