"""What a fake writer says: messages that begin, grow and end, and its turn's end."""

from tests.support.fake_writer import FakeWriter
from transport.protocol.approvals import ApprovalState
from transport.protocol.items import AgentMessage, ItemStatus


def begin(writer: FakeWriter, item_id: str) -> None:
    """Begin a message in the turn that runs."""
    assert writer.running_turn_id is not None
    message = AgentMessage(
        id=item_id,
        turn_id=writer.running_turn_id,
        status=ItemStatus.IN_PROGRESS,
        text="",
    )
    writer.begin_item(message)


def opened(writer: FakeWriter) -> list[AgentMessage]:
    """Return the messages that have no end yet."""
    turn = writer.live_turn(writer.running_turn_id or "")
    items = [] if turn is None else turn.items or []
    return [
        item
        for item in items
        if isinstance(item, AgentMessage) and item.status is ItemStatus.IN_PROGRESS
    ]


def say(writer: FakeWriter, text: str) -> None:
    """Let the oldest open message grow."""
    for item in opened(writer)[:1]:
        writer.delta(item.id, text)


def end(writer: FakeWriter) -> None:
    """End the oldest open message."""
    for item in opened(writer)[:1]:
        done = {"status": ItemStatus.COMPLETED}
        writer.end_item(item.model_copy(update=done))


def finish(writer: FakeWriter) -> None:
    """End the turn, and with it what it asks."""
    for asked in writer.approvals():
        writer.resolve(asked.id, ApprovalState.WITHDRAWN)
    writer.finish_turn()
