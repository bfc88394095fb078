"""Who calls, what they may call, and how wide they may go. Sans-IO.

PROTOCOL.md section 2. The method table (transport.protocol.methods) is the one
authority; what it does not grant is refused. Checked when a call is carried out, and
`alive` once more right before its effect.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from adapter.runtime.threads import EffectiveSettings
from transport.errors import Forbidden
from transport.protocol.approvals import ChoiceEffect
from transport.protocol.gateway import Ceiling
from transport.protocol.methods import Access, Method

LOCAL: Final = "local"
ALL_SCOPES: Final = frozenset({"read", "write", "approve", "approve.session"})
DEFAULT_SANDBOX: Final = "workspace-write"
NEVER: Final = "never"
UNASKED_IN_SANDBOX: Final = "on-request"
DEFAULT_POLICIES: Final = ("untrusted", "on-request")

_WIDTH: Final = {"read-only": 0, "workspace-write": 1, "danger-full-access": 2}
_NEEDS: Final = {
    Access.READ: "read",
    Access.WRITE: "write",
    Access.APPROVE: "approve",
}
_EFFECT_NEEDS: Final = {
    ChoiceEffect.ALLOW: "approve",
    ChoiceEffect.ALLOW_FOR_SESSION: "approve.session",
    ChoiceEffect.ANSWER: "approve",
    ChoiceEffect.DENY: "approve",
    ChoiceEffect.CANCEL: "approve",
}


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who a request comes from, with the rights that its session was opened with.

    `ceiling` is `None` for the workstation itself. `alive` turns False as soon as the
    device is revoked or its rights change. `follows_threads`: the folders of all
    threads that exist are roots too (the default of pairing; `--only` turns it off).
    """

    device_id: str
    name: str
    scopes: frozenset[str]
    ceiling: Ceiling | None
    alive: Callable[[], bool] = _always
    follows_threads: bool = False

    @property
    def is_local(self) -> bool:
        """Whether this is the owner at the workstation's own door."""
        return self.ceiling is None


def local_caller() -> Caller:
    """Return the built-in device of admin.sock: all scopes and no ceiling."""
    return Caller(
        device_id=LOCAL, name="this workstation", scopes=ALL_SCOPES, ceiling=None
    )


def check_access(caller: Caller, method: Method[Any, Any]) -> None:
    """Raise `Forbidden` unless this caller may call this method."""
    if method.access is Access.SESSION or (
        method.access is Access.ADMIN and caller.is_local
    ):
        return
    scope = _NEEDS.get(method.access)
    if scope is None:
        raise Forbidden(f"{method.name} is only for the workstation itself.")
    check_scope(caller, scope)


def check_effect(caller: Caller, effect: ChoiceEffect) -> None:
    """Raise `Forbidden` unless this caller may give an answer with this effect."""
    scope = _EFFECT_NEEDS.get(effect)
    if scope is None:
        raise Forbidden("This answer can only be given at the workstation.")
    check_scope(caller, scope)


def check_scope(caller: Caller, scope: str) -> None:
    """Raise `Forbidden` unless the caller has the scope."""
    if scope not in caller.scopes:
        wanted = ",".join([*sorted(caller.scopes), scope])
        raise Forbidden(
            f"This device lacks the scope {scope}. Grant it at the workstation: "
            f"threadgate devices grant {caller.device_id} --scopes {wanted}",
            data={"scope": scope},
        )


def check_alive(caller: Caller) -> None:
    """Raise `Forbidden` once the device was revoked or its rights changed."""
    if not caller.alive():
        raise Forbidden(
            "The rights of this device were changed meanwhile; nothing was done. "
            "Connect again and look at them."
        )


def sandbox_within(sandbox: str, ceiling: str) -> bool:
    """Whether a sandbox is no wider; a word that we do not know is wider than all."""
    wanted, widest = _WIDTH.get(sandbox), _WIDTH.get(ceiling)
    return wanted is not None and widest is not None and wanted <= widest


def check_wishes(caller: Caller, *, sandbox: str | None, policy: str | None) -> None:
    """Raise `Forbidden` where a parameter asks for more than the ceiling."""
    ceiling = caller.ceiling
    if ceiling is None:
        return
    if sandbox is not None and not sandbox_within(sandbox, ceiling.sandbox):
        raise _over("sandbox", sandbox, ceiling)
    if policy is not None and policy not in ceiling.approval_policy:
        raise _over("approvalPolicy", policy, ceiling)


def check_settings(
    caller: Caller,
    settings: EffectiveSettings,
    contains: Callable[[str], bool],
) -> None:
    """Raise `Forbidden` where a thread's *effective* settings are over the ceiling.

    `contains` says whether a folder, links followed, lies inside a root of the caller.
    """
    ceiling = caller.ceiling
    if ceiling is None:
        return
    if not sandbox_within(settings.sandbox, ceiling.sandbox):
        raise _over("sandbox", settings.sandbox, ceiling)
    if settings.approval_policy not in ceiling.approval_policy:
        raise _over("approvalPolicy", settings.approval_policy, ceiling)
    if not contains(settings.cwd):
        raise _over("cwd", settings.cwd, ceiling)


def check_review(
    caller: Caller,
    settings: EffectiveSettings,
    contains: Callable[[str], bool],
) -> None:
    """Raise `Forbidden` where a review would do more than the ceiling lets a turn do.

    A review asks for nothing, whatever the thread's policy is: what its sandbox does not
    allow fails, and the rest just happens. So a sandbox has to be there, and the device
    must be one whose turns may run commands in it unasked.
    """
    check_settings(caller, settings, contains)
    ceiling = caller.ceiling
    if ceiling is None or NEVER in ceiling.approval_policy:
        return
    if not sandbox_within(settings.sandbox, DEFAULT_SANDBOX):
        raise _over("approvalPolicy", NEVER, ceiling)
    if UNASKED_IN_SANDBOX not in ceiling.approval_policy:
        raise _over("approvalPolicy", UNASKED_IN_SANDBOX, ceiling)


def _over(field: str, value: str, ceiling: Ceiling) -> Forbidden:
    return Forbidden(
        f"{field} {value!r} is more than this device may use. Its ceiling is set at "
        f"the workstation (threadgate devices grant).",
        data={"ceiling": ceiling.wire(), "field": field},
    )


def narrowed(
    ceiling: Ceiling, *, widest_sandbox: str, policies: Collection[str]
) -> Ceiling:
    """Return the ceiling within what the owner's config file allows any device.

    So `danger-full-access` and `never` count only while that file names them.
    """
    sandbox = ceiling.sandbox
    if not sandbox_within(sandbox, widest_sandbox):
        sandbox = widest_sandbox
    allowed = [policy for policy in ceiling.approval_policy if policy in policies]
    return ceiling.model_copy(update={"sandbox": sandbox, "approval_policy": allowed})
