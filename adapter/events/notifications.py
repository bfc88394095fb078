"""The table of Codex's notifications: each has one fate, chosen by hand. Sans-IO.

A `Rule` maps it, `Passed` tells a person, `Ignored` says why nobody is told. A test
compares the table with the generated schema, so that a new codex fails loudly instead of
being dropped silently. A name that no version we know has becomes a notice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adapter.events import passing, rules
from adapter.events.passing import Passed
from adapter.events.rules import Rule
from transport.protocol.events import DeltaChannel, NoticeLevel


@dataclass(frozen=True, slots=True)
class Ignored:
    """Left out, for this reason."""

    reason: str


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
    "error": Rule(rules.error),
    "externalAgentConfig/import/completed": _WORKSTATION,
    "externalAgentConfig/import/progress": _WORKSTATION,
    "fs/changed": _NEVER_ASKED,
    "fuzzyFileSearch/sessionCompleted": _NEVER_ASKED,
    "fuzzyFileSearch/sessionUpdated": _NEVER_ASKED,
    "guardianWarning": Passed(
        level=NoticeLevel.WARNING, code="reviewWarning", say=passing.warning
    ),
    "hook/completed": Rule(rules.hook),
    "hook/started": Ignored("its end is told where it matters"),
    "item/agentMessage/delta": rules.delta(DeltaChannel.TEXT),
    "item/autoApprovalReview/completed": Passed(
        level=NoticeLevel.INFO,
        code="decidedLocally",
        say=passing.auto_review,
        repeats=True,
    ),
    "item/autoApprovalReview/started": Ignored("its end is told"),
    "item/commandExecution/outputDelta": rules.delta(DeltaChannel.OUTPUT),
    "item/commandExecution/terminalInteraction": Passed(
        level=NoticeLevel.INFO, code="terminalInput", say=passing.typed_in, repeats=True
    ),
    "item/completed": Rule(rules.item_ended),
    "item/fileChange/outputDelta": Ignored("the item holds the whole change"),
    "item/fileChange/patchUpdated": Ignored(
        "comes before its item, with other paths; the item holds the whole change"
    ),
    "item/mcpToolCall/progress": Ignored(
        "no version sends it; the item has the result"
    ),
    "item/plan/delta": rules.delta(DeltaChannel.PLAN),
    "item/reasoning/summaryPartAdded": Ignored("each delta says its part"),
    "item/reasoning/summaryTextDelta": rules.delta(
        DeltaChannel.SUMMARY, "summaryIndex"
    ),
    "item/reasoning/textDelta": rules.delta(DeltaChannel.REASONING, "contentIndex"),
    "item/started": Rule(rules.item_began),
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
    "thread/archived": rules.removed("archived"),
    "thread/attachment/updated": _LOCAL_VIEW,
    "thread/closed": Rule(rules.closed),
    "thread/compacted": Ignored("an item says it"),
    "thread/deleted": rules.removed("deleted"),
    "thread/environment/connected": Ignored("only its loss matters"),
    "thread/environment/disconnected": Passed(
        level=NoticeLevel.WARNING,
        code="environmentGone",
        say=passing.environment,
        repeats=True,
    ),
    "thread/goal/cleared": Rule(rules.goal),
    "thread/goal/updated": Rule(rules.goal),
    "thread/name/updated": Rule(rules.named),
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
    "thread/settings/updated": Rule(rules.settings),
    "thread/started": Rule(rules.thread_began),
    "thread/status/changed": Rule(rules.status),
    "thread/tokenUsage/updated": Rule(rules.usage),
    "thread/unarchived": Rule(rules.unarchived),
    "turn/completed": Rule(rules.turn_ended),
    "turn/diff/updated": Rule(rules.turn_diff),
    "turn/moderationMetadata": _LATER,
    "turn/plan/updated": Rule(rules.turn_plan),
    "turn/started": Rule(rules.turn_began),
    "warning": Passed(
        level=NoticeLevel.WARNING, code="codexWarning", say=passing.warning
    ),
    "windows/worldWritableWarning": Passed(
        level=NoticeLevel.WARNING, code="worldWritable", say=passing.world_writable
    ),
    "windowsSandbox/setupCompleted": _WORKSTATION,
}
