"""What was told of a thread, and what its history shows beyond it, as events. Sans-IO.

PROTOCOL.md section 3 (Modes). A thread's events come from one source at a time: a writer
of ours tells by itself (`note`), another program's work is read back (`advance`). Both
write into one record of (turn, item, status), so that a change of source tells nothing
twice and leaves nothing out.
"""

from collections.abc import Iterator, Sequence

from adapter.runtime.events import Emitted, ItemClosed, ItemOpened, RuntimeEvent
from agent.following.history_view import (
    FOLLOWED,
    GAP,
    RUNS,
    TAKEN_BACK,
    Snapshot,
    ToldItem,
    ToldTurn,
    alike,
    began_after,
    begun,
    ended_items,
    look_of,
    without_items,
)
from agent.following.told_turns import ToldTurns
from agent.limits import DOUBTS
from agent.reading.pages import cut
from agent.reading.standing import Others, is_open_ended, judged_thread, judged_turn
from transport.protocol.events import (
    EventData,
    Notice,
    NoticeLevel,
    ThreadChanged,
    ThreadReverted,
    ThreadStarted,
    TurnCompleted,
    TurnReplaced,
    TurnStarted,
)
from transport.protocol.items import Item, Subagent
from transport.protocol.threads import Thread
from transport.protocol.turns import Turn, TurnStatus


class Told:
    """One thread, as far as its events were told. `root`: of a sub-agent's thread."""

    def __init__(self, thread_id: str, *, root: str | None = None) -> None:
        self.thread_id = thread_id
        self.root = root
        self.thread: Thread | None = None
        self.children: dict[str, bool] = {}  # sub-agents; whether their start was told
        self.turns = ToldTurns()

    # what a writer of ours tells

    def note(self, event: RuntimeEvent) -> None:
        """Take down what a writer told of this thread."""
        match event:
            case Emitted(data=TurnStarted(turn=turn)):
                self.turns.live(turn.id).ended = None
            case Emitted(data=TurnCompleted(turn=turn)):
                self.turns.live(turn.id).ended = turn.status
            case Emitted(
                data=ThreadStarted(thread=thread) | ThreadChanged(thread=thread)
            ):
                self.thread = thread
            case Emitted(data=ThreadReverted(last_turn_id=last)):
                self.turns.drop_behind(last)
            case ItemOpened(item=item):
                self.turns.live(item.turn_id)
            case ItemClosed(item=item):
                self._live_item(item)
            case _:
                pass

    def _live_item(self, item: Item) -> None:
        told = self.turns.live(item.turn_id)
        told.unstable = told.unstable or item.stable_id is False
        if told.items is not None:
            told.items[item.id] = ToldItem(item.status, None)

    # what history shows

    def advance(
        self,
        now: Snapshot,
        *,
        at: int,
        since: int | None = None,
        certain: bool = False,
        looks_new: bool = False,
    ) -> list[RuntimeEvent]:
        """Return what history shows beyond what was told, and take it down as told.

        The first snapshot is the base: it tells nothing, but for turns that began after
        `since` (ms), and the thread itself where it `looks_new` (another title).
        `certain`: that nobody else can be at work is beyond doubt.
        """
        events: list[RuntimeEvent] = []
        turns = [*reversed(now.turns)]
        if self.turns and not turns:
            return []  # no thread loses all of its turns: a read that failed quietly
        if not self.turns.is_based:
            self._base(turns, now.others, since)
        fresh = self.turns.fresh(turns)
        if fresh is None:
            events.append(self._notice("historyGap", GAP, at))
            self.turns.clear()
            self._base(turns, now.others, None)
            fresh = turns
        if self.thread is None and since == 0:
            events.append(self._event(ThreadStarted(thread=self._stands(now)), at))
            looks_new = False
        if (last := self.turns.taken_back(turns)) is not None:
            data = ThreadReverted(thread_id=self.thread_id, last_turn_id=last)
            events.append(self._event(data, at))
            events.append(self._notice("threadReverted", TAKEN_BACK, at))
        for turn in fresh:
            newest = turn is turns[-1]
            events += self._turn(turn, now.others, at, newest=newest, certain=certain)
        self.turns.forget_old()
        return events + self._changed(now, at, quiet=certain, looks_new=looks_new)

    def _base(self, turns: Sequence[Turn], others: Others, since: int | None) -> None:
        self.turns.is_based = True
        for turn in turns:
            if since is not None and began_after(turn, since):
                return
            judged = judged_turn(turn, others, newest=turn is turns[-1])
            told = self.turns.begin(turn.id)
            told.ended = None if judged.status in RUNS else judged.status
            for item in ended_items(turn, running=told.ended is None):
                self._meet(item, told=True)
                assert told.items is not None
                told.items[item.id] = ToldItem(item.status, look_of(item))

    def _turn(
        self, turn: Turn, others: Others, at: int, *, newest: bool, certain: bool
    ) -> Iterator[RuntimeEvent]:
        judged = judged_turn(turn, others, newest=newest)
        told = self.turns.get(turn.id)
        if told is None:
            told = self.turns.begin(turn.id)
            yield self._event(TurnStarted(turn=begun(judged)), at)
        if told.items is None:
            return
        runs = self._runs(judged, told, certain=certain)
        if told.live and told.unstable and not runs:
            yield from self._replace(judged, told, at)
            return
        yield from self._items(judged, told, at, runs=runs)
        if runs:
            if not told.noticed:
                told.noticed = True
                yield self._notice("followedTurn", FOLLOWED, at)
        elif told.ended is None:
            told.ended = judged.status
            yield self._event(TurnCompleted(turn=without_items(judged)), at)
        elif told.ended is not judged.status and not is_open_ended(turn):
            yield from self._replace(judged, told, at)

    def _runs(self, judged: Turn, told: ToldTurn, *, certain: bool) -> bool:
        """Whether the turn counts as running. What reads as cut short is believed when
        nobody was there at two looks in a row: one look can fall between two programs."""
        if told.ended is not None and judged.inferred:
            return False  # its end was told; nobody can run it again
        if judged.status in RUNS:
            told.doubts = 0
            return True
        if judged.inferred and told.ended is None and not certain:
            told.doubts += 1
            return told.doubts <= DOUBTS
        return False

    def _items(
        self, turn: Turn, told: ToldTurn, at: int, *, runs: bool
    ) -> Iterator[RuntimeEvent]:
        assert told.items is not None
        for item in ended_items(turn, running=runs):
            before, look = told.items.get(item.id), look_of(item)
            if before in (ToldItem(item.status, None), ToldItem(item.status, look)):
                continue
            told.items[item.id] = ToldItem(item.status, look)
            if told.ended is not None:
                item = item.model_copy(update={"background": True})  # noqa: PLW2901
            self._meet(item, told=False)
            yield ItemClosed(
                at=at, thread_id=self.thread_id, root_thread_id=self.root, item=item
            )

    def _replace(self, turn: Turn, told: ToldTurn, at: int) -> Iterator[RuntimeEvent]:
        """Tell the whole turn as history has it: with other ids, or another end."""
        told.live = told.unstable = False
        if not (told.ended is not None and turn.inferred):
            told.ended = turn.status
        told.items = {
            item.id: ToldItem(item.status, look_of(item)) for item in turn.items or ()
        }
        status = {"status": told.ended}
        whole = cut(turn.model_copy(update=status))
        yield self._event(TurnReplaced(turn=whole), at)

    def _changed(
        self, now: Snapshot, at: int, *, quiet: bool, looks_new: bool
    ) -> list[RuntimeEvent]:
        """Tell the thread where it looks different. `quiet`: somebody else does."""
        stands = self._stands(now)
        before, self.thread = self.thread, stands
        same = not looks_new if before is None else alike(stands, before)
        if quiet or same:
            return []
        return [self._event(ThreadChanged(thread=stands), at)]

    def _stands(self, now: Snapshot) -> Thread:
        """Return the thread as it stands, its newest turn as it was told."""
        newest = now.turns[0] if now.turns else None
        if newest is not None:
            newest = judged_turn(newest, now.others, newest=True)
            told = self.turns.get(newest.id)
            if told is not None and newest.inferred:
                status = told.ended
                if status is None and newest.status is TurnStatus.INTERRUPTED:
                    status = TurnStatus.UNKNOWN
                newest = newest.model_copy(update={"status": status or newest.status})
        thread = judged_thread(now.thread, now.others, newest=newest, turns_known=True)
        return thread.model_copy(update={"root_id": self.root} if self.root else {})

    # the record

    def _meet(self, item: Item, *, told: bool) -> None:
        """Learn the sub-agents that an item speaks of."""
        if isinstance(item, Subagent):
            named = [item.thread_id, *(one.thread_id for one in item.agents or ())]
            for child in named:
                if child is not None:
                    self.children.setdefault(child, told)

    def _event(self, data: EventData, at: int) -> Emitted:
        return Emitted(
            at=at, thread_id=self.thread_id, root_thread_id=self.root, data=data
        )

    def _notice(self, code: str, message: str, at: int) -> Emitted:
        level = NoticeLevel.INFO
        data = Notice(level=level, code=code, message=message, thread_id=self.thread_id)
        return self._event(data, at)
