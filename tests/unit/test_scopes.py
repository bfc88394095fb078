"""Default deny, over every method; and how wide a device may go."""

import pytest

from adapter.runtime.threads import EffectiveSettings
from agent.access.scopes import (
    ALL_SCOPES,
    Caller,
    check_access,
    check_effect,
    check_settings,
    check_wishes,
    local_caller,
    narrowed,
    sandbox_within,
)
from transport.errors import Forbidden
from transport.protocol.approvals import ChoiceEffect
from transport.protocol.gateway import Ceiling
from transport.protocol.methods import METHODS, Access

CEILING = Ceiling(
    sandbox="workspace-write",
    approval_policy=["untrusted", "on-request"],
    roots=["/work"],
)
NEEDS = {Access.READ: "read", Access.WRITE: "write", Access.APPROVE: "approve"}


def caller(*scopes: str) -> Caller:
    return Caller(
        device_id="d1", name="phone", scopes=frozenset(scopes), ceiling=CEILING
    )


def settings(
    *, cwd: str = "/work/a", sandbox: str = "read-only", policy: str = "untrusted"
) -> EffectiveSettings:
    return EffectiveSettings(
        cwd=cwd, sandbox=sandbox, approval_policy=policy, model=None, effort=None
    )


def inside(cwd: str) -> bool:
    return cwd.startswith("/work")


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_needs_exactly_its_scope(name: str) -> None:
    method = METHODS[name]
    check_access_or_none = NEEDS.get(method.access)
    if method.access is Access.SESSION:
        check_access(caller(), method)
    elif check_access_or_none is None:  # admin, pairing: no scope opens them
        with pytest.raises(Forbidden):
            check_access(caller(*ALL_SCOPES), method)
    else:
        check_access(caller(check_access_or_none), method)
        others = ALL_SCOPES - {check_access_or_none}
        with pytest.raises(Forbidden) as caught:
            check_access(caller(*others), method)
        assert caught.value.data["scope"] == check_access_or_none


@pytest.mark.parametrize("name", sorted(METHODS))
def test_the_workstation_itself_may_call_all_but_pairing(name: str) -> None:
    method = METHODS[name]
    if method.access is Access.PAIRING:
        with pytest.raises(Forbidden):
            check_access(local_caller(), method)
    else:
        check_access(local_caller(), method)


@pytest.mark.parametrize(
    ("effect", "scope"),
    [
        (ChoiceEffect.ALLOW, "approve"),
        (ChoiceEffect.DENY, "approve"),
        (ChoiceEffect.CANCEL, "approve"),
        (ChoiceEffect.ALLOW_FOR_SESSION, "approve.session"),
    ],
)
def test_an_answer_needs_the_scope_of_its_effect(
    effect: ChoiceEffect, scope: str
) -> None:
    check_effect(caller(scope), effect)
    with pytest.raises(Forbidden) as caught:
        check_effect(caller(*(ALL_SCOPES - {scope})), effect)
    assert caught.value.data["scope"] == scope


def test_an_effect_that_we_do_not_know_is_nobodys() -> None:
    with pytest.raises(Forbidden):
        check_effect(caller(*ALL_SCOPES), ChoiceEffect.OTHER)


@pytest.mark.parametrize(
    ("sandbox", "ceiling", "fits"),
    [
        ("read-only", "read-only", True),
        ("read-only", "danger-full-access", True),
        ("workspace-write", "read-only", False),
        ("danger-full-access", "workspace-write", False),
        ("danger-full-access", "danger-full-access", True),
        ("external-sandbox", "danger-full-access", False),
        ("read-only", "", False),
    ],
)
def test_a_sandbox_is_compared_by_width_and_an_unknown_word_is_widest(
    sandbox: str, ceiling: str, *, fits: bool
) -> None:
    assert sandbox_within(sandbox, ceiling) is fits


@pytest.mark.parametrize(
    "wide",
    [
        settings(sandbox="danger-full-access"),
        settings(sandbox="something-new"),
        settings(policy="never"),
        settings(policy="granular"),
        settings(cwd="/etc"),
    ],
)
def test_effective_settings_over_the_ceiling_are_forbidden_and_say_the_ceiling(
    wide: EffectiveSettings,
) -> None:
    with pytest.raises(Forbidden) as caught:
        check_settings(caller("write"), wide, inside)
    assert caught.value.data["ceiling"] == CEILING.wire()
    check_settings(local_caller(), wide, inside)


def test_settings_within_the_ceiling_pass() -> None:
    check_settings(caller("write"), settings(sandbox="workspace-write"), inside)


def test_wishes_over_the_ceiling_are_forbidden() -> None:
    check_wishes(caller(), sandbox=None, policy=None)
    check_wishes(caller(), sandbox="read-only", policy="untrusted")
    with pytest.raises(Forbidden):
        check_wishes(caller(), sandbox="danger-full-access", policy=None)
    with pytest.raises(Forbidden):
        check_wishes(caller(), sandbox=None, policy="never")


def test_a_ceiling_is_never_wider_than_the_owners_file() -> None:
    wide = Ceiling(
        sandbox="danger-full-access",
        approval_policy=["never", "on-request"],
        roots=["/"],
    )
    cut = narrowed(wide, widest_sandbox="workspace-write", policies=["on-request"])
    assert cut.sandbox == "workspace-write"
    assert cut.approval_policy == ["on-request"]
    kept = narrowed(
        wide, widest_sandbox="danger-full-access", policies=["never", "on-request"]
    )
    assert kept == wide
