"""Notifications that a person is told in a sentence: rows of `Passed`. Sans-IO.

PROTOCOL.md section 6, event `notice`. `code` is stable, the message is Codex's or ours.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from adapter.shapes.shapes import mapping, maybe_text, sequence, text
from adapter.shapes.texts import one_line, without_backtrace
from generated import codex
from transport.protocol.events import NoticeLevel

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Told as a notice. `say` returns the message, or `None` where there is nothing.

    `repeats`: told each time; else the same text once for a thread, since Codex gives
    many warnings with every turn.
    """

    level: NoticeLevel
    code: str
    say: Callable[[Raw], str | None]
    repeats: bool = False


def warning(raw: Raw) -> str:
    """`warning`, `guardianWarning`."""
    return text(raw["message"])


def config_warning(raw: Raw) -> str:
    """`configWarning`: the summary, and where."""
    said = cast("codex.ConfigWarningNotification", raw)
    parts = (text(said["summary"]), maybe_text(said.get("details")))
    place = maybe_text(said.get("path"))
    whole = " ".join(part for part in parts if part)
    return f"{whole} ({place})" if place else whole


def mcp_server(raw: Raw) -> str | None:
    """`mcpServer/startupStatus/updated`: only where a server did not start."""
    said = cast("codex.McpServerStatusUpdatedNotification", raw)
    if said["status"] != "failed":
        return None
    error = without_backtrace(maybe_text(said.get("error")) or "no reason given")
    why = one_line(error, 300)
    return f"the MCP server {text(said['name'])} did not start: {why}"


def hook(raw: Raw) -> str | None:
    """`hook/completed`: only where a hook stopped something or failed."""
    run = cast("codex.HookRunSummary", mapping(raw["run"]))
    status = text(run["status"])
    if status == "completed":
        return None
    words = [text(mapping(one).get("text", "")) for one in sequence(run["entries"])]
    said = one_line(" ".join(words), 300)
    return f"the hook for {text(run['eventName'])} {status}: {said}".rstrip(": ")


def hook_allowed(raw: Raw) -> str | None:
    """`hook/completed`: one that may have said yes; Codex does not tell whether it did."""
    run = cast("codex.HookRunSummary", mapping(raw["run"]))
    if run["eventName"] != "permissionRequest" or run["status"] != "completed":
        return None
    return (
        "a hook of the workstation was asked whether something may run that the sandbox "
        "forbids; where no question to you follows, it said yes"
    )


def auto_review(raw: Raw) -> str:
    """`item/autoApprovalReview/completed`: Codex decided at the workstation."""
    said = cast("codex.ItemGuardianApprovalReviewCompletedNotification", raw)
    review, action = said["review"], mapping(said["action"])
    what = one_line(_reviewed(action), 200)
    why = one_line(maybe_text(review.get("rationale")) or "", 300)
    verdict = f"Codex's own review: {text(review['status'])}: {what}"
    return f"{verdict} ({why})" if why else verdict


def _reviewed(action: Raw) -> str:
    """What the review was about, by its kind; a kind that is not known is named."""
    kind = text(action["type"])
    match kind:
        case "command":
            return text(action["command"])
        case "execve":
            return " ".join(text(word) for word in sequence(action["argv"]))
        case "writeStdin":
            return f"type into a running command: {text(action['stdin'])!r}"
        case "applyPatch":
            files = ", ".join(text(path) for path in sequence(action["files"]))
            return f"change {files}"
        case "networkAccess":
            return f"network access to {text(action['host'])}"
        case "mcpToolCall":
            return f"the tool {text(action['server'])}.{text(action['toolName'])}"
        case "requestPermissions":
            return f"more permissions: {maybe_text(action.get('reason')) or ''}"
        case _:
            return kind


def strict_review(_: Raw) -> str:
    """`autoApprovalReview/strictReviewRequired`."""
    return "Codex reviews every approval of this turn by itself, strictly"


def rerouted(raw: Raw) -> str:
    """`model/rerouted`."""
    said = cast("codex.ModelReroutedNotification", raw)
    return f"the model was changed from {text(said['fromModel'])} to {text(said['toModel'])}"


def verification(_: Raw) -> str:
    """`model/verification`."""
    return "the model provider wants your account to be verified"


def safety_buffering(raw: Raw) -> str | None:
    """`model/safetyBuffering/updated`: only where Codex's own clients would show it."""
    if raw["showBufferingUi"] is not True:
        return None
    return f"the answer of {text(raw['model'])} is held back for a safety check"


def sign_in(raw: Raw) -> str:
    """`modelProvider/authRecovery…`."""
    said = cast("codex.AuthRecoveryNotification", raw)
    return f"{text(said['provider'])}: {text(said['message'])}"


def typed_in(raw: Raw) -> str | None:
    """`item/commandExecution/terminalInteraction`; an empty one only polls."""
    said = cast("codex.TerminalInteractionNotification", raw)
    typed = text(said["stdin"])
    return f"the model typed into a running command: {typed!r}" if typed else None


def reverted(_: Raw) -> str:
    """`thread/reverted`."""
    return "the thread was set back to an earlier turn: read it again"


def environment(raw: Raw) -> str:
    """`thread/environment/disconnected`."""
    return f"the environment {text(raw['environmentId'])} of this thread is gone"


def world_writable(raw: Raw) -> str:
    """`windows/worldWritableWarning`."""
    paths = ", ".join(text(path) for path in sequence(raw["samplePaths"])[:5])
    return f"folders that everybody may write to weaken the sandbox: {paths}"
