"""Requests about a whole thread of a writer: loading, settings, what it holds. Sans-IO.

PROTOCOL.md section 4. What a client left out is left out here too: no default model,
sandbox, provider or policy of ours ever reaches a thread.
"""

from collections.abc import Mapping
from typing import Final

from adapter.calls.commands import Command, command
from adapter.runtime.threads import NewThread, Wishes
from generated.codex import (
    AskForApproval,
    CollaborationMode,
    ModeKind,
    ReviewStartParams,
    ReviewTarget,
    SandboxMode,
    SandboxPolicy,
    ThreadCompactStartParams,
    ThreadForkParams,
    ThreadResumeParams,
    ThreadRevertParams,
    ThreadSettingsUpdateParams,
    ThreadStartParams,
)

SANDBOXES: Final[Mapping[str, SandboxMode]] = {
    "read-only": "read-only",
    "workspace-write": "workspace-write",
    "danger-full-access": "danger-full-access",
}
POLICIES: Final[Mapping[str, AskForApproval]] = {
    "untrusted": "untrusted",
    "on-request": "on-request",
    "never": "never",
}
MODES: Final[Mapping[str, ModeKind]] = {"default": "default", "plan": "plan"}
SANDBOX_POLICIES: Final[Mapping[str, SandboxPolicy]] = {
    "read-only": {"type": "readOnly"},
    "workspace-write": {"type": "workspaceWrite"},
    "danger-full-access": {"type": "dangerFullAccess"},
}
"""A loaded thread takes no mode by name. What a policy leaves out is narrow: no network,
no folder but the thread's own."""


def resume(thread_id: str) -> Command:
    """Load a thread. Its turns are read apart: one line of 9 MB serves nobody."""
    params: ThreadResumeParams = {"threadId": thread_id, "excludeTurns": True}
    return command("thread/resume", params)


def fork(thread_id: str, *, through: str | None, before: str | None) -> Command:
    """A copy, loaded. Its settings are those of the source: none of ours."""
    params: ThreadForkParams = {"threadId": thread_id, "excludeTurns": True}
    if through is not None:
        params["lastTurnId"] = through
    if before is not None:
        params["beforeTurnId"] = before
    return command("thread/fork", params)


def start_thread(new: NewThread) -> Command:
    """Make a thread. Codex has no `effort` here: it is the config key of that name."""
    params: ThreadStartParams = {"cwd": new.cwd}
    if new.model is not None:
        params["model"] = new.model
    if new.effort is not None:
        params["config"] = {"model_reasoning_effort": new.effort}
    if new.sandbox is not None:
        params["sandbox"] = SANDBOXES[new.sandbox]
    if new.approval_policy is not None:
        params["approvalPolicy"] = POLICIES[new.approval_policy]
    return command("thread/start", params)


def update_settings(
    thread_id: str, wishes: Wishes, *, collaboration: CollaborationMode | None = None
) -> Command:
    """Change a loaded thread's settings for later turns."""
    params: ThreadSettingsUpdateParams = {"threadId": thread_id}
    if wishes.model is not None:
        params["model"] = wishes.model
    if wishes.effort is not None:
        params["effort"] = wishes.effort
    if wishes.cwd is not None:
        params["cwd"] = wishes.cwd
    if wishes.sandbox is not None:
        params["sandboxPolicy"] = SANDBOX_POLICIES[wishes.sandbox]
    if wishes.approval_policy is not None:
        params["approvalPolicy"] = POLICIES[wishes.approval_policy]
    if collaboration is not None:
        params["collaborationMode"] = collaboration
    return command("thread/settings/update", params)


def collaboration(mode: str, *, model: str, effort: str | None) -> CollaborationMode:
    """A mode with Codex's own instructions for it. It names its model and effort: they
    are the thread's, so that it changes neither."""
    return {
        "mode": MODES[mode],
        "settings": {
            "model": model,
            "reasoning_effort": effort,
            "developer_instructions": None,
        },
    }


def compact(thread_id: str) -> Command:
    """Put a summary in the place of what the model has read so far.

    Codex interrupts whatever runs in the thread for it.
    """
    params: ThreadCompactStartParams = {"threadId": thread_id}
    return command("thread/compact/start", params)


def revert(thread_id: str, before: str) -> Command:
    """Take this turn back and all behind it. Codex interrupts whatever runs."""
    params: ThreadRevertParams = {"threadId": thread_id, "beforeTurnId": before}
    return command("thread/revert", params)


def review(thread_id: str, target: ReviewTarget) -> Command:
    """Have changes reviewed, in this very thread. Codex interrupts whatever runs."""
    params: ReviewStartParams = {
        "threadId": thread_id,
        "target": target,
        "delivery": "inline",
    }
    return command("review/start", params)
