"""The table of Codex's notifications: each has one fate, chosen by hand. Sans-IO.

A `Rule` maps it, `Passed` tells a person, `Ignored` says why nobody is told. A test
compares the table with the generated schema, so that a new codex fails loudly instead of
being dropped silently. A name that no version we know has becomes a notice.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from adapter.calls.goals import goal_from
from adapter.events import live_items, live_threads, live_turns, passing
from adapter.events.live import Events, Live
from adapter.events.notices import notice
from adapter.events.passing import Passed
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


@dataclass(frozen=True, slots=True)
class Ignored:
    """Left out, for this reason."""

    reason: str


def _turn_began(live: Live, raw: Raw, at: int) -> Events:
    said = cast("codex.TurnStartedNotification", raw)
    thread_id = wire_id(said["threadId"])
    return live_turns.turn_began(live, thread_id, mapping(said["turn"]), at)


def _turn_ended(live: Live, raw: Raw, at: int) -> Events:
    said = cast("codex.TurnCompletedNotification", raw)
    thread_id = wire_id(said["threadId"])
    return live_turns.turn_ended(live, thread_id, mapping(said["turn"]), at)


def _turn_diff(live: Live, raw: Raw, at: int) -> Events:
    said = cast("codex.TurnDiffUpdatedNotification", raw)
    diff = text(said["diff"])
    shown = cut(diff, TEXT_BYTES)
    turn_id = live.turn_id(wire_id(said["turnId"]))
    told = TurnDiff(turn_id=turn_id, diff=shown, truncated=shown != diff)
    return live_turns.about_turn(live, wire_id(said["threadId"]), turn_id, told, at)


def _turn_plan(live: Live, raw: Raw, at: int) -> Events:
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


def _usage(live: Live, raw: Raw, at: int) -> Events:
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


def _item_began(live: Live, raw: Raw, at: int) -> Events:
    said = cast("codex.ItemStartedNotification", raw)
    return live_items.item_began(
        live,
        wire_id(said["threadId"]),
        wire_id(said["turnId"]),
        mapping(said["item"]),
        at,
        began=maybe_whole(said.get("startedAtMs")) or at,
    )


def _item_ended(live: Live, raw: Raw, at: int) -> Events:
    said = cast("codex.ItemCompletedNotification", raw)
    return live_items.item_ended(
        live,
        wire_id(said["threadId"]),
        wire_id(said["turnId"]),
        mapping(said["item"]),
        at,
        ended=maybe_whole(said.get("completedAtMs")) or at,
    )


def _delta(channel: DeltaChannel, part: str | None = None) -> Rule:
    """A rule for deltas; `part`: the key of the part's index."""

    def apply(live: Live, raw: Raw, at: int) -> Events:
        index = whole(raw[part]) if part else 0
        more = (channel, index, text(raw["delta"]))
        thread_id, item_id = wire_id(raw["threadId"]), wire_id(raw["itemId"])
        return live_items.item_grew(live, thread_id, item_id, more, at)

    return Rule(apply)


def _thread_began(live: Live, raw: Raw, _: int) -> Events:
    said = cast("codex.ThreadStartedNotification", raw)
    return live_threads.thread_begun(live, mapping(said["thread"]))


def _status(live: Live, raw: Raw, at: int) -> Events:
    said = cast("codex.ThreadStatusChangedNotification", raw)
    status = mapping(said["status"])
    return live_threads.status_said(live, wire_id(said["threadId"]), status, at)


def _named(live: Live, raw: Raw, at: int) -> Events:
    said = cast("codex.ThreadNameUpdatedNotification", raw)
    name = maybe_text(said.get("threadName"))
    title = one_line(name, PREVIEW_CHARS) if name else None
    return live.redescribe(wire_id(said["threadId"]), {"title": title}, at)


def _settings(live: Live, raw: Raw, at: int) -> Events:
    said = cast("codex.ThreadSettingsUpdatedNotification", raw)
    settings = thread_settings_from(mapping(said["threadSettings"]))
    now: dict[str, Any] = {"settings": settings}
    if settings.cwd is not None:
        now["cwd"] = settings.cwd
    return live.redescribe(wire_id(said["threadId"]), now, at)


def _removed(reason: str) -> Rule:
    def apply(live: Live, raw: Raw, at: int) -> Events:
        return live_threads.removed(live, wire_id(raw["threadId"]), reason, at)

    return Rule(apply)


def _unarchived(live: Live, raw: Raw, at: int) -> Events:
    return live.redescribe(wire_id(raw["threadId"]), {"archived": False}, at)


def _closed(live: Live, raw: Raw, at: int) -> Events:
    return live_threads.cut_off(live, wire_id(raw["threadId"]), at)


def _error(live: Live, raw: Raw, at: int) -> Events:
    """A retry. An error that is final is told with its turn."""
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


def _hook(live: Live, raw: Raw, at: int) -> Events:
    """A hook that stopped something, or that decided in place of a person."""
    stopped, allowed = passing.hook(raw), passing.hook_allowed(raw)
    thread_id = wire_id(raw["threadId"])
    said: list[Notice] = []
    if stopped is not None:
        said.append(notice(NoticeLevel.WARNING, "hookStopped", stopped, thread_id))
    if allowed is not None:
        said.append(notice(NoticeLevel.INFO, "decidedLocally", allowed, thread_id))
    return [live.event(thread_id, one, at) for one in said]


def _goal(live: Live, raw: Raw, at: int) -> Events:
    """An active goal keeps the writer. A cleared one has none.

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


_REALTIME: Final = Ignored("voice sessions are never started by us")
_NEVER_ASKED: Final = Ignored("answers a request that we never send")
_WORKSTATION: Final = Ignored("about the workstation's own Codex, not about a thread")
_LOCAL_VIEW: Final = Ignored("how Codex's own clients sort and mark threads")
_LATER: Final = Ignored("no place in protocol 2.0")

NOTIFICATIONS: Final[Mapping[str, Rule | Passed | Ignored]] = {
    "account/gatewayOAuth/changed": _WORKSTATION,
    "account/login/completed": _WORKSTATION,
    "account/rateLimits/updated": _LATER,
    "account/updated": _WORKSTATION,
    "app/list/updated": _WORKSTATION,
    "autoApprovalReview/strictReviewRequired": Passed(
        level=NoticeLevel.INFO,
        code="strictReview",
        say=passing.strict_review,
        repeats=True,
    ),
    "command/exec/outputDelta": _NEVER_ASKED,
    "configWarning": Passed(
        level=NoticeLevel.WARNING, code="configWarning", say=passing.config_warning
    ),
    "deprecationNotice": Ignored("about our own use of Codex's protocol"),
    "error": Rule(_error),
    "externalAgentConfig/import/completed": _WORKSTATION,
    "externalAgentConfig/import/progress": _WORKSTATION,
    "fs/changed": _NEVER_ASKED,
    "fuzzyFileSearch/sessionCompleted": _NEVER_ASKED,
    "fuzzyFileSearch/sessionUpdated": _NEVER_ASKED,
    "guardianWarning": Passed(
        level=NoticeLevel.WARNING, code="reviewWarning", say=passing.warning
    ),
    "hook/completed": Rule(_hook),
    "hook/started": Ignored("its end is told where it matters"),
    "item/agentMessage/delta": _delta(DeltaChannel.TEXT),
    "item/autoApprovalReview/completed": Passed(
        level=NoticeLevel.INFO,
        code="decidedLocally",
        say=passing.auto_review,
        repeats=True,
    ),
    "item/autoApprovalReview/started": Ignored("its end is told"),
    "item/commandExecution/outputDelta": _delta(DeltaChannel.OUTPUT),
    "item/commandExecution/terminalInteraction": Passed(
        level=NoticeLevel.INFO, code="terminalInput", say=passing.typed_in, repeats=True
    ),
    "item/completed": Rule(_item_ended),
    "item/fileChange/outputDelta": Ignored("the item holds the whole change"),
    "item/fileChange/patchUpdated": Ignored(
        "comes before its item, with other paths; the item holds the whole change"
    ),
    "item/mcpToolCall/progress": Ignored(
        "no version sends it; the item has the result"
    ),
    "item/plan/delta": _delta(DeltaChannel.PLAN),
    "item/reasoning/summaryPartAdded": Ignored("each delta says its part"),
    "item/reasoning/summaryTextDelta": _delta(DeltaChannel.SUMMARY, "summaryIndex"),
    "item/reasoning/textDelta": _delta(DeltaChannel.REASONING, "contentIndex"),
    "item/started": Rule(_item_began),
    "mcpServer/event/stream/notification": _NEVER_ASKED,
    "mcpServer/oauthLogin/completed": _WORKSTATION,
    "mcpServer/startupStatus/updated": Passed(
        level=NoticeLevel.WARNING, code="mcpServerFailed", say=passing.mcp_server
    ),
    "model/rerouted": Passed(
        level=NoticeLevel.WARNING,
        code="modelRerouted",
        say=passing.rerouted,
        repeats=True,
    ),
    "model/safetyBuffering/updated": Passed(
        level=NoticeLevel.INFO,
        code="safetyCheck",
        say=passing.safety_buffering,
        repeats=True,
    ),
    "model/verification": Passed(
        level=NoticeLevel.WARNING, code="verification", say=passing.verification
    ),
    "modelProvider/authRecoveryCompleted": Passed(
        level=NoticeLevel.INFO, code="signIn", say=passing.sign_in, repeats=True
    ),
    "modelProvider/authRecoveryStarted": Passed(
        level=NoticeLevel.WARNING, code="signIn", say=passing.sign_in, repeats=True
    ),
    "process/exited": _NEVER_ASKED,
    "process/outputDelta": _NEVER_ASKED,
    "project/changed": _LOCAL_VIEW,
    "remoteControl/status/changed": _WORKSTATION,
    "serverRequest/resolved": Ignored("the approval ledger takes it"),
    "skills/changed": _WORKSTATION,
    "thread/archived": _removed("archived"),
    "thread/attachment/updated": _LOCAL_VIEW,
    "thread/closed": Rule(_closed),
    "thread/compacted": Ignored("an item says it"),
    "thread/deleted": _removed("deleted"),
    "thread/environment/connected": Ignored("only its loss matters"),
    "thread/environment/disconnected": Passed(
        level=NoticeLevel.WARNING,
        code="environmentGone",
        say=passing.environment,
        repeats=True,
    ),
    "thread/goal/cleared": Rule(_goal),
    "thread/goal/updated": Rule(_goal),
    "thread/name/updated": Rule(_named),
    "thread/prediction/updated": _LOCAL_VIEW,
    "thread/project/updated": _LOCAL_VIEW,
    "thread/queue/changed": Ignored("the queue is read before it could start work"),
    "thread/readState/changed": _LOCAL_VIEW,
    "thread/realtime/closed": _REALTIME,
    "thread/realtime/error": _REALTIME,
    "thread/realtime/item/completed": _REALTIME,
    "thread/realtime/item/started": _REALTIME,
    "thread/realtime/item/transcript/delta": _REALTIME,
    "thread/realtime/itemAdded": _REALTIME,
    "thread/realtime/outputAudio/delta": _REALTIME,
    "thread/realtime/sdp": _REALTIME,
    "thread/realtime/started": _REALTIME,
    "thread/realtime/transcript/delta": _REALTIME,
    "thread/realtime/transcript/done": _REALTIME,
    "thread/reverted": Passed(
        level=NoticeLevel.WARNING,
        code="threadReverted",
        say=passing.reverted,
        repeats=True,
    ),
    "thread/search/partial": _NEVER_ASKED,
    "thread/section/changed": _LOCAL_VIEW,
    "thread/settings/updated": Rule(_settings),
    "thread/started": Rule(_thread_began),
    "thread/status/changed": Rule(_status),
    "thread/tokenUsage/updated": Rule(_usage),
    "thread/unarchived": Rule(_unarchived),
    "turn/completed": Rule(_turn_ended),
    "turn/diff/updated": Rule(_turn_diff),
    "turn/moderationMetadata": _LATER,
    "turn/plan/updated": Rule(_turn_plan),
    "turn/started": Rule(_turn_began),
    "warning": Passed(
        level=NoticeLevel.WARNING, code="codexWarning", say=passing.warning
    ),
    "windows/worldWritableWarning": Passed(
        level=NoticeLevel.WARNING, code="worldWritable", say=passing.world_writable
    ),
    "windowsSandbox/setupCompleted": _WORKSTATION,
}
