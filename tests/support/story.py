"""Events of a thread, and what a person sees of them."""

from clients.cli.style import paint_span
from clients.cli.transcript import Piece, Transcript
from tests.support.cli_samples import CLOCK, NOON, SHOP
from transport.protocol.events import (
    DeltaChannel,
    EventData,
    Open,
)
from transport.subscription import ClientEvent, DeltaSeen, EventSeen, Resumed


class Story:
    """Builds events with rising seqs."""

    def __init__(self) -> None:
        self.seq = 0

    def event(self, data: EventData, thread_id: str | None = SHOP) -> EventSeen:
        self.seq += 1
        return EventSeen(
            seq=self.seq, at=NOON, thread_id=thread_id, root_thread_id=None, data=data
        )

    def delta(
        self, ref: int, text: str, channel: DeltaChannel = DeltaChannel.TEXT
    ) -> DeltaSeen:
        self.seq += 1
        return DeltaSeen(seq=self.seq, ref=ref, channel=channel, part=0, text=text)


def told(transcript: Transcript, events: list[ClientEvent]) -> str:
    """Return what a person sees of the events."""
    pieces = [piece for event in events for piece in transcript.feed(event, CLOCK)]
    return text([*pieces, *transcript.finish()])


def text(pieces: list[Piece]) -> str:
    """Return pieces as a screen without colours shows them."""
    return "".join(
        "".join(paint_span(span, colour=False) for span in piece.spans)
        + ("\n" if piece.ends else "")
        for piece in pieces
    )


def resumed(verdict: str = "new", *opened: Open) -> Resumed:
    """Return the beginning of a subscription."""
    return Resumed(verdict=verdict, epoch="e1", head=0, open=list(opened))
