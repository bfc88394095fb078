"""Codex's stored threads and turns as v2 models. Sans-IO. PROTOCOL.md section 5.

Interface first; the bodies follow in the next commits.
"""

from collections.abc import Mapping
from typing import Any

from adapter.runtime import EffectiveSettings
from transport.protocol.gateway import LeaseState
from transport.protocol.threads import Thread, ThreadMode, ThreadSettings
from transport.protocol.turns import Turn


def thread_from(
    raw: Mapping[str, Any],
    *,
    archived: bool = False,
    mode: ThreadMode = ThreadMode.STILL,
    lease: LeaseState = LeaseState.NONE,
    settings: ThreadSettings | None = None,
) -> Thread:
    """A thread of a list, read, start or resume answer; raises AnswerShapeError.

    Codex's `notLoaded` reads as status `unknown`: another process may run it.
    """
    raise NotImplementedError


def turn_from(raw: Mapping[str, Any], thread_id: str, *, legacy: bool = False) -> Turn:
    """A stored turn; items unless Codex says `notLoaded`; raises AnswerShapeError.

    `interrupted` without an end is `inferred`. `legacy`: the thread's historyMode, whose
    items have ids that are not those of the live stream.
    """
    raise NotImplementedError


def settings_from(answer: Mapping[str, Any]) -> EffectiveSettings:
    """The settings in an answer to thread/start or resume; raises AnswerShapeError."""
    raise NotImplementedError


def thread_settings_from(answer: Mapping[str, Any]) -> ThreadSettings:
    """The same answer (or `threadSettings`) as a thread shows its settings."""
    raise NotImplementedError
