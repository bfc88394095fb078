"""Notifications that change what is known of threads, turns and items. Sans-IO.

Each reads one notification's shape and has `live_threads`, `live_turns` or `live_items`
take it in. Which notification has which rule is the table in `notifications`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from adapter.calls.goals import goal_from
from adapter.events import live_items, live_threads, live_turns, passing
from adapter.events.live import Events, Live
from adapter.events.notices import notice
from adapter.limits import PLAN_STEPS, PREVIEW_CHARS, REASON_BYTES, TEXT_BYTES
from adapter.shapes.failures import error_text, slept_through
from adapter.shapes.settings import thread_settings_from
from adapter.shapes.shapes import (
    mapping,
    maybe_text,
    maybe_whole,
    sequence,
    text,
    whole,
    wire_id,
)
from adapter.shapes.texts import cut, one_line
from generated import codex
from transport.protocol.events import (
    DeltaChannel,
    GoalChanged,
    Notice,
    NoticeLevel,
    PlanStep,
    TurnDiff,
    TurnPlan,
)
from transport.protocol.turns import Usage

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """Mapped: what it does to the state, and the events of that."""

    apply: Callable[[Live, Raw, int], Events]


def turn_began(live: Live, raw: Raw, at: int) -> Events:
    """`turn/started`."""
    said = cast("codex.TurnStartedNotification", raw)
    thread_id = wire_id(said["threadId"])
    return live_turns.turn_began(live, thread_id, mapping(said["turn"]), at)


def turn_ended(live: Live, raw: Raw, at: int) -> Events:
    """`turn/completed`."""
    said = cast("codex.TurnCompletedNotification", raw)
    thread_id = wire_id(said["threadId"])
    return live_turns.turn_ended(live, thread_id, mapping(said["turn"]), at)


def turn_diff(live: Live, raw: Raw, at: int) -> Events:
    """`turn/diff/updated`."""
    said = cast("codex.TurnDiffUpdatedNotification", raw)
    diff = text(said["diff"])
    shown = cut(diff, TEXT_BYTES)
    turn_id = live.turn_id(wire_id(said["turnId"]))
    told = TurnDiff(turn_id=turn_id, diff=shown, truncated=shown != diff)
    return live_turns.about_turn(live, wire_id(said["threadId"]), turn_id, told, at)


def turn_plan(live: Live, raw: Raw, at: int) -> Events:
    """`turn/plan/updated`."""
    said = cast("codex.TurnPlanUpdatedNotification", raw)
    turn_id = live.turn_id(wire_id(said["turnId"]))
    steps = [mapping(step) for step in sequence(said["plan"])[:PLAN_STEPS]]
    why = maybe_text(said.get("explanation"))
    told = TurnPlan(
        turn_id=turn_id,
        explanation=None if why is None else cut(why, REASON_BYTES),
        steps=[
            PlanStep(text=cut(text(one["step"]), 1024), status=text(one["status"]))
            for one in steps
        ],
    )
    return live_turns.about_turn(live, wire_id(said["threadId"]), turn_id, told, at)


def usage(live: Live, raw: Raw, at: int) -> Events:
    """`thread/tokenUsage/updated`."""
    said = cast("codex.ThreadTokenUsageUpdatedNotification", raw)
    total, last = said["tokenUsage"]["total"], said["tokenUsage"]["last"]
    usage = Usage(
        input=whole(total["inputTokens"]),
        cached_input=whole(total["cachedInputTokens"]),
        output=whole(total["outputTokens"]),
        reasoning=whole(total["reasoningOutputTokens"]),
        total=whole(total["totalTokens"]),
        context_window=maybe_whole(said["tokenUsage"].get("modelContextWindow")),
        context_used=whole(last["totalTokens"]),
    )
    turn_id = wire_id(said["turnId"])
    return live_turns.turn_used(live, wire_id(said["threadId"]), turn_id, usage, at)


def item_began(live: Live, raw: Raw, at: int) -> Events:
    """`item/started`."""
    said = cast("codex.ItemStartedNotification", raw)
    return live_items.item_began(
        live,
        wire_id(said["threadId"]),
        wire_id(said["turnId"]),
        mapping(said["item"]),
        at,
        began=maybe_whole(said.get("startedAtMs")) or at,
    )


def item_ended(live: Live, raw: Raw, at: int) -> Events:
    """`item/completed`."""
    said = cast("codex.ItemCompletedNotification", raw)
    return live_items.item_ended(
        live,
        wire_id(said["threadId"]),
        wire_id(said["turnId"]),
        mapping(said["item"]),
        at,
        ended=maybe_whole(said.get("completedAtMs")) or at,
    )


def delta(channel: DeltaChannel, part: str | None = None) -> Rule:
    """A rule for deltas; `part`: the key of the part's index."""

    def apply(live: Live, raw: Raw, at: int) -> Events:
        index = whole(raw[part]) if part else 0
        more = (channel, index, text(raw["delta"]))
        thread_id, item_id = wire_id(raw["threadId"]), wire_id(raw["itemId"])
        return live_items.item_grew(live, thread_id, item_id, more, at)

    return Rule(apply)


def thread_began(live: Live, raw: Raw, _: int) -> Events:
    """`thread/started`."""
    said = cast("codex.ThreadStartedNotification", raw)
    return live_threads.thread_begun(live, mapping(said["thread"]))


def status(live: Live, raw: Raw, at: int) -> Events:
    """`thread/status/changed`."""
    said = cast("codex.ThreadStatusChangedNotification", raw)
    status = mapping(said["status"])
    return live_threads.status_said(live, wire_id(said["threadId"]), status, at)


def named(live: Live, raw: Raw, at: int) -> Events:
    """`thread/name/updated`."""
    said = cast("codex.ThreadNameUpdatedNotification", raw)
    name = maybe_text(said.get("threadName"))
    title = one_line(name, PREVIEW_CHARS) if name else None
    return live.redescribe(wire_id(said["threadId"]), {"title": title}, at)


def settings(live: Live, raw: Raw, at: int) -> Events:
    """`thread/settings/updated`."""
    said = cast("codex.ThreadSettingsUpdatedNotification", raw)
    settings = thread_settings_from(mapping(said["threadSettings"]))
    now: dict[str, Any] = {"settings": settings}
    if settings.cwd is not None:
        now["cwd"] = settings.cwd
    return live.redescribe(wire_id(said["threadId"]), now, at)


def removed(reason: str) -> Rule:
    """A rule for a thread that is there no more; `reason`: archived or deleted."""

    def apply(live: Live, raw: Raw, at: int) -> Events:
        return live_threads.removed(live, wire_id(raw["threadId"]), reason, at)

    return Rule(apply)


def unarchived(live: Live, raw: Raw, at: int) -> Events:
    """`thread/unarchived`."""
    return live.redescribe(wire_id(raw["threadId"]), {"archived": False}, at)


def closed(live: Live, raw: Raw, at: int) -> Events:
    """`thread/closed`."""
    return live_threads.cut_off(live, wire_id(raw["threadId"]), at)


def error(live: Live, raw: Raw, at: int) -> Events:
    """`error`: a retry. One that is final is told with its turn."""
    said = cast("codex.ErrorNotification", raw)
    if said["willRetry"] is not True:
        return []
    thread_id = wire_id(said["threadId"])
    turn_id = wire_id(said["turnId"])
    events = live_items.model_call_lost(live, turn_id, at)
    words = error_text(mapping(said["error"]))
    words = slept_through(words, live.slept_in(turn_id))
    told = notice(NoticeLevel.WARNING, "modelRetry", words, thread_id)
    return [*events, live.event(thread_id, told, at)]


def hook(live: Live, raw: Raw, at: int) -> Events:
    """`hook/completed`: one that stopped something, or decided in place of a person."""
    stopped, allowed = passing.hook(raw), passing.hook_allowed(raw)
    thread_id = wire_id(raw["threadId"])
    said: list[Notice] = []
    if stopped is not None:
        said.append(notice(NoticeLevel.WARNING, "hookStopped", stopped, thread_id))
    if allowed is not None:
        said.append(notice(NoticeLevel.INFO, "decidedLocally", allowed, thread_id))
    return [live.event(thread_id, one, at) for one in said]


def goal(live: Live, raw: Raw, at: int) -> Events:
    """`thread/goal/…`. An active goal keeps the writer; a cleared one has none.

    Codex tells it also when a thread is loaded, and after each of its turns: only a
    change is told on.
    """
    thread_id = wire_id(raw["threadId"])
    node = live.tree.node(thread_id)
    goal = goal_from(raw)
    before, node.goal = node.goal, goal
    if goal == before:
        return []
    return [live.event(thread_id, GoalChanged(goal=goal), at)]
