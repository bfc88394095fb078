"""What happens in threads, told as it happens. Sans-IO. PROTOCOL.md section 6.

Events go in, pieces of a growing text come out. Text of the model streams; all else is
told in whole lines. Nothing is ever taken back: where a completed item says more or
other than its deltas did, the difference (or the whole) is printed after them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from clients.cli.clock import Clock
from clients.cli.headings import Headings
from clients.cli.lines.approvals import approval_lines, how_to_answer, resolved_line
from clients.cli.lines.gate import gate_span, runtime_text
from clients.cli.lines.items import (
    call_line,
    command_result,
    item_lines,
    message_end,
    near,
    text_label,
)
from clients.cli.lines.layout import INDENT, label, labelled
from clients.cli.lines.threads import thread_name, turn_advice, turn_end
from clients.cli.lines.work import plan_lines, tool_result
from clients.cli.plain import PlainStream, one_line
from clients.cli.style import Line, dim, line
from transport.protocol.approvals import Approval
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    DeltaChannel,
    EventData,
    GateChanged,
    ItemCompleted,
    ItemStarted,
    Notice,
    Open,
    RuntimeChanged,
    ThreadChanged,
    ThreadStarted,
    TurnCompleted,
    TurnPlan,
    TurnReplaced,
    TurnStarted,
)
from transport.protocol.items import AgentMessage, Command, Item, Plan, ToolCall
from transport.subscription import ClientEvent, DeltaSeen, EventSeen, Resumed

_GROWS: Final = {"agentMessage": DeltaChannel.TEXT, "plan": DeltaChannel.PLAN}


@dataclass(frozen=True, slots=True)
class Piece:
    """Text to print; `ends`: a line feed comes after it."""

    spans: Line
    ends: bool = True


@dataclass(slots=True)
class _Told:
    """What has been told of an item in progress."""

    item: Item
    thread_id: str | None = None
    text: str = ""
    plain: PlainStream = field(default_factory=PlainStream)


class Transcript:
    """One growing text. `names`: titles of threads; without it, one thread is told.

    `root`: tell only this thread and its sub-agents, whatever else comes. `announced`: the
    turn whose start was told already. `me`: the id of this device. `devices`: names of
    others by their ids, as far as known.
    """

    def __init__(
        self,
        *,
        root: str | None = None,
        names: dict[str, str] | None = None,
        announced: str | None = None,
        me: str | None = None,
        devices: Mapping[str, str] | None = None,
    ) -> None:
        self._me = me
        self._devices = devices or {}
        self._announced = announced
        self._root = root
        self._names = names
        self._headings = Headings(root=root, names=names)
        self._folders: dict[str, str] = {}  # of threads, as far as told
        self._told: dict[int, _Told] = {}
        self._streaming: int | None = None  # whose text the last line is
        self._asked_ids: set[str] = set()  # approvals told, and not ended
        self._last: int | None = None  # the call whose start is the last line

    def feed(self, event: ClientEvent, clock: Clock) -> list[Piece]:
        """Return what to print for one event."""
        return list(self._feed(event, clock))

    def waiting(self, approvals: Iterable[Approval], clock: Clock) -> list[Piece]:
        """Return what to print for approvals that wait; each is told once.

        For the beginning, and after a gap: their events may have been missed.
        """
        return [
            piece
            for approval in approvals
            for piece in self._lines(approval.thread_id, self._asked(approval, clock))
        ]

    def asked(self, event: ClientEvent) -> Approval | None:
        """Return the approval that an event asks for, where it is one to be told."""
        if not isinstance(event, EventSeen) or not self._is_told(event):
            return None
        data = event.data
        return data.approval if isinstance(data, ApprovalRequested) else None

    def finish(self) -> list[Piece]:
        """Return what ends the line that is being written, if there is one."""
        return list(self._break())

    def _feed(self, event: ClientEvent, clock: Clock) -> Iterator[Piece]:
        match event:
            case DeltaSeen():
                yield from self._delta(event)
            case EventSeen():
                if self._is_told(event):
                    self._headings.meet(event)
                    yield from self._event(event, clock)
            case Resumed():
                yield from self._resumed(event)

    def _is_told(self, event: EventSeen) -> bool:
        return self._root in {None, event.thread_id, event.root_thread_id}

    def _event(self, event: EventSeen, clock: Clock) -> Iterator[Piece]:
        match event.data:
            case ItemStarted(ref=ref, item=item):
                if ref not in self._told:
                    self._told[ref] = _Told(item, event.thread_id)
                    yield from self._started(event.thread_id, ref, item)
            case ItemCompleted(ref=ref, item=item):
                yield from self._completed(event.thread_id, ref, item)
            case data:
                yield from self._lines(event.thread_id, self._rows(data, clock))

    def _started(self, thread_id: str | None, ref: int, item: Item) -> Iterator[Piece]:
        head = call_line(item)
        if head is not None:
            yield from self._lines(thread_id, [head])
            self._last = ref

    def _completed(
        self, thread_id: str | None, ref: int, item: Item
    ) -> Iterator[Piece]:
        told = self._told.pop(ref, None)
        if isinstance(item, AgentMessage | Plan) and told is not None and told.text:
            yield from self._rest(ref, told, item)
        elif isinstance(item, Command) and self._last == ref:
            yield from self._lines(thread_id, command_result(item))
        elif isinstance(item, ToolCall) and self._last == ref:
            yield from self._lines(thread_id, tool_result(item))
        else:
            shown = near(item, self._folders.get(thread_id or ""))
            yield from self._lines(thread_id, item_lines(shown))

    def _rest(
        self, ref: int, told: _Told, item: AgentMessage | Plan
    ) -> Iterator[Piece]:
        cut = item.truncated is not None and "text" in item.truncated
        if item.text.startswith(told.text):
            yield from self._stream(ref, told, item.text[len(told.text) :])
        held = told.plain.finish()
        if held and self._streaming == ref:
            yield Piece(line(held), ends=False)
        yield from self._break()
        if not item.text.startswith(told.text) and not cut:
            whole = labelled(text_label(item), "(the whole message:)", "dim")
            yield from map(Piece, [*whole, *item_lines(item)])
        else:
            yield from map(Piece, message_end(item))

    def _delta(self, event: DeltaSeen) -> Iterator[Piece]:
        told = self._told.get(event.ref)
        if told is not None and _GROWS.get(told.item.kind) is event.channel:
            yield from self._stream(event.ref, told, event.text)

    def _stream(self, ref: int, told: _Told, text: str) -> Iterator[Piece]:
        if not text:
            return
        if self._streaming != ref:
            self._last = None
            yield from self._break()
            yield from self._headed(told.thread_id)
            yield Piece((text_label(told.item),), ends=False)
            self._streaming = ref
        told.text += text
        first, *rest = told.plain.feed(text).split("\n")
        yield Piece(line(first), ends=False)
        for row in rest:
            yield Piece(())
            yield Piece(line(INDENT, row), ends=False)

    def _break(self) -> Iterator[Piece]:
        if self._streaming is not None:
            self._streaming = None
            yield Piece(())

    def _lines(self, thread_id: str | None, rows: Sequence[Line]) -> Iterator[Piece]:
        if not rows:
            return
        self._last = None
        yield from self._break()
        yield from self._headed(thread_id)
        yield from map(Piece, rows)

    def _headed(self, thread_id: str | None) -> Iterator[Piece]:
        yield from map(Piece, self._headings.before(thread_id))

    def _resumed(self, event: Resumed) -> Iterator[Piece]:
        if event.verdict == "gap":
            text = "some events were missed here: `threadgate read` shows the thread"
            yield from self._lines(None, labelled(label("note", "warn"), text, "warn"))
        if event.verdict != "ok":
            still_open = {one.ref for one in event.open}
            self._told = {r: t for r, t in self._told.items() if r in still_open}
        for one in event.open:
            if self._is_ours(one):
                yield from self._caught_up(one)

    def _is_ours(self, one: Open) -> bool:
        return self._root in {None, one.thread_id, one.root_thread_id}

    def _caught_up(self, one: Open) -> Iterator[Piece]:
        self._headings.meet_thread(one.thread_id, one.root_thread_id)
        if one.ref not in self._told:
            yield from self._started(one.thread_id, one.ref, one.item)
        told = self._told.setdefault(one.ref, _Told(one.item, one.thread_id))
        match one.item:
            case AgentMessage(text=text) | Plan(text=text) if text.startswith(
                told.text
            ):
                yield from self._stream(one.ref, told, text[len(told.text) :])
            case _:
                pass

    def _rows(self, data: EventData, clock: Clock) -> list[Line]:
        match data:
            case ApprovalRequested(approval=approval):
                return self._asked(approval, clock)
            case ApprovalResolved(approval=approval):
                self._asked_ids.discard(approval.id)
                return [resolved_line(approval, self._me, self._devices)]
            case TurnStarted(turn=turn) if turn.id == self._announced:
                return []
            case TurnStarted(turn=turn):
                return [line(dim(f"── turn {turn.id} started"))]
            case TurnCompleted(turn=turn):
                return [line(dim("── turn "), turn_end(turn)), *turn_advice(turn)]
            case TurnReplaced(turn=turn):
                return [line(dim("── turn "), turn_end(turn), dim(" (as stored now)"))]
            case TurnPlan():
                return plan_lines(data)
            case GateChanged(gate=gate):
                return [line(label("gate"), gate_span(gate, clock))]
            case RuntimeChanged(runtime=runtime):
                return labelled(label("note"), runtime_text(runtime, clock))
            case Notice(code="runtimeDied", message=message):
                words = f"{one_line(message)}; the next message starts another one"
                return labelled(label("note", "warn"), words)
            case Notice(message=message):
                return labelled(label("note", "warn"), one_line(message))
            case ThreadStarted(thread=thread) | ThreadChanged(thread=thread):
                self._folders[thread.id] = thread.cwd
                if self._names is not None:
                    self._names[thread.id] = thread_name(thread)
                return []
            case _:
                return []

    def _asked(self, approval: Approval, clock: Clock) -> list[Line]:
        if approval.id in self._asked_ids:
            return []
        self._asked_ids.add(approval.id)
        return [*approval_lines(approval, clock), *how_to_answer(approval)]
