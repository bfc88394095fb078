"""Events as JSON lines, in the shapes of the protocol. Sans-IO. PROTOCOL.md section 1."""

from typing import Any

from transport.subscription import ClientEvent, DeltaSeen, EventSeen, Resumed


def event_json(event: ClientEvent) -> dict[str, Any]:
    """Return one event as a plain map. Deltas are spelled out: `item/delta`."""
    match event:
        case EventSeen():
            found = {
                "seq": event.seq,
                "event": event.data.event,
                "at": event.at,
                "threadId": event.thread_id,
                "rootThreadId": event.root_thread_id,
                "data": event.data.wire(),
            }
            return {key: value for key, value in found.items() if value is not None}
        case DeltaSeen():
            return {
                "seq": event.seq,
                "event": "item/delta",
                "ref": event.ref,
                "channel": event.channel.name.lower(),
                "part": event.part,
                "text": event.text,
            }
        case Resumed():
            return {
                "event": "resumed",
                "verdict": event.verdict,
                "epoch": event.epoch,
                "head": event.head,
                "open": [one.wire() for one in event.open],
            }
