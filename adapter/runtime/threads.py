"""A loaded thread and its settings: asked for, and as they really are. Sans-IO (values)."""

from dataclasses import dataclass
from typing import Final

from transport.protocol.threads import Thread
from transport.protocol.turns import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSettings:
    """A loaded thread's settings as the runtime answered, compared with the ceiling.

    `sandbox`: read-only, workspace-write, danger-full-access, or the runtime's own word
    where it is none of these (which no ceiling contains).
    """

    cwd: str
    sandbox: str
    approval_policy: str
    model: str | None
    effort: str | None
    mode: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Settings that a client asks for, from now on. What is `None` is not sent at all."""

    model: str | None = None
    effort: str | None = None
    mode: str | None = None
    cwd: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None


NO_WISHES: Final = Wishes()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewThread:
    """Parameters of a thread start; what is `None` is not sent at all."""

    cwd: str
    name: str | None = None
    model: str | None = None
    effort: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What loading a thread told: the thread, its settings, its newest turn."""

    thread: Thread
    settings: EffectiveSettings
    last_turn: Turn | None
