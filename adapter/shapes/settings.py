"""A loaded thread's settings, from Codex's words to v2's. Sans-IO. PROTOCOL.md section 4.

Codex tells them in an answer to start, resume or fork, and in thread/settings/updated.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from adapter.limits import PATH_BYTES
from adapter.runtime.threads import EffectiveSettings
from adapter.shapes.shapes import (
    Shape,
    mapping,
    maybe_text,
    maybe_word,
    text,
)
from adapter.shapes.texts import prefix
from generated import codex
from transport.protocol.threads import ThreadSettings

_SANDBOXES: Final = {
    "readOnly": "read-only",
    "workspaceWrite": "workspace-write",
    "dangerFullAccess": "danger-full-access",
}


def settings_from(answer: Mapping[str, Any]) -> EffectiveSettings:
    """Return the settings in an answer to thread/start or resume.

    Raises: AnswerShapeError.
    """
    loaded = cast("codex.ThreadResumeResponse", answer)
    with Shape("settings"):
        return EffectiveSettings(
            cwd=text(loaded["cwd"]),
            sandbox=sandbox_from(loaded["sandbox"]),
            approval_policy=policy_from(loaded["approvalPolicy"]),
            model=maybe_text(loaded.get("model")),
            effort=maybe_word(loaded.get("reasoningEffort")),
        )


def thread_settings_from(answer: Mapping[str, Any]) -> ThreadSettings:
    """Return the same answer, or a `threadSettings`, as a thread shows its settings.

    Raises: AnswerShapeError.
    """
    with Shape("settings"):
        effort = answer.get("reasoningEffort", answer.get("effort"))
        mode = answer.get("collaborationMode")
        sandbox = answer.get("sandbox", answer.get("sandboxPolicy"))
        cwd = maybe_text(answer.get("cwd"))
        return ThreadSettings(
            model=maybe_text(answer.get("model")),
            effort=maybe_word(effort),
            mode=maybe_word(mapping(mode)["mode"]) if mode else None,
            sandbox=sandbox_from(sandbox),
            approval_policy=policy_from(answer["approvalPolicy"]),
            cwd=prefix(cwd, PATH_BYTES) if cwd else None,
        )


def effective(settings: ThreadSettings) -> EffectiveSettings:
    """Return a thread's settings as they are compared with a ceiling.

    What is not known is a word that no ceiling contains.
    """
    return EffectiveSettings(
        cwd=settings.cwd or "",
        sandbox=settings.sandbox or "unknown",
        approval_policy=settings.approval_policy or "unknown",
        model=settings.model,
        effort=settings.effort,
        mode=settings.mode,
    )


def settings_shown(settings: EffectiveSettings) -> ThreadSettings:
    """Return them as a thread shows them."""
    return ThreadSettings(
        model=settings.model,
        effort=settings.effort,
        mode=settings.mode,
        sandbox=settings.sandbox,
        approval_policy=settings.approval_policy,
        cwd=settings.cwd,
    )


def sandbox_from(raw: object) -> str:
    """Return the ceiling's word, or Codex's own where there is none."""
    word = text(mapping(raw)["type"])
    return _SANDBOXES.get(word, word)


def policy_from(raw: object) -> str:
    """Return the policy's word; of one made of parts (`granular`) its only key."""
    if isinstance(raw, Mapping):
        return text(next(iter(cast("Mapping[str, object]", raw))))
    return text(raw)
