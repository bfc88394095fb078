"""Who may call what: every method, every set of scopes, both doors; default deny."""

from itertools import chain, combinations
from typing import Any

import pytest

from agent.access.rights import Door
from agent.sessions.requests import read_params
from agent.sessions.router import Call, Router, find_method, served_methods
from tests.support.edge import Nothing, make_rights
from transport.errors import Forbidden, InvalidParams, MethodNotFound
from transport.protocol.base import WireModel
from transport.protocol.methods import METHODS, Access
from transport.protocol.session import SubscribeParams
from transport.protocol.threads import ThreadReadParams

SCOPES = ("read", "write", "approve", "approve.session")
SETS = list(
    chain.from_iterable(combinations(SCOPES, n) for n in range(len(SCOPES) + 1))
)
NEEDS = {Access.READ: "read", Access.WRITE: "write", Access.APPROVE: "approve"}


def may(name: str, scopes: tuple[str, ...], door: Door) -> bool:
    access = METHODS[name].access
    if access is Access.PAIRING:
        return False
    if door is Door.WORKSTATION or access is Access.SESSION:
        return True
    return access is not Access.ADMIN and NEEDS[access] in scopes


@pytest.mark.parametrize("door", list(Door))
@pytest.mark.parametrize("name", list(METHODS))
def test_a_method_is_served_to_exactly_those_who_may_call_it(
    name: str, door: Door
) -> None:
    for scopes in SETS:
        rights = make_rights(scopes=frozenset(scopes), door=door)
        if may(name, scopes, door):
            assert find_method(rights, name).name == name
        else:
            with pytest.raises((Forbidden, MethodNotFound)):
                find_method(rights, name)


@pytest.mark.parametrize("door", list(Door))
@pytest.mark.parametrize(
    "name",
    [
        "command/exec",
        "fs/readFile",
        "config/write",
        "account/login",
        "thread/resume",
        "",
    ],
)
def test_codexs_own_methods_do_not_exist(name: str, door: Door) -> None:
    with pytest.raises(MethodNotFound):
        find_method(make_rights(scopes=frozenset(SCOPES), door=door), name)


def test_an_admin_method_is_forbidden_to_a_device_with_every_scope() -> None:
    rights = make_rights(scopes=frozenset(SCOPES))
    for name, row in METHODS.items():
        if row.access is Access.ADMIN:
            with pytest.raises(Forbidden):
                find_method(rights, name)


def test_an_unknown_name_is_repeated_shortly_and_without_control_characters() -> None:
    with pytest.raises(MethodNotFound) as caught:
        find_method(make_rights(), "x\x1b[31m" + "y" * 500)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 150


async def _nothing(_call: Call, _params: Any) -> WireModel:
    return Nothing()


def test_a_method_without_a_handler_stops_the_agent_from_starting() -> None:
    handlers = dict.fromkeys(served_methods(), _nothing)
    Router(handlers)
    del handlers["thread/read"]
    with pytest.raises(ValueError, match="thread/read"):
        Router(handlers)


def test_a_handler_without_a_method_stops_it_too() -> None:
    handlers = dict.fromkeys([*served_methods(), "thread/burn"], _nothing)
    with pytest.raises(ValueError, match="thread/burn"):
        Router(handlers)


def test_null_is_not_absence_wherever_it_is() -> None:
    with pytest.raises(InvalidParams) as caught:
        read_params(SubscribeParams, {"threads": ["a", None]})
    assert caught.value.data["field"] == "threads[1]"


def test_python_names_are_not_wire_names() -> None:
    with pytest.raises(InvalidParams):
        read_params(ThreadReadParams, {"thread_id": "t"})
    assert read_params(ThreadReadParams, {"threadId": "t"}).thread_id == "t"


def test_a_refusal_never_repeats_what_was_sent() -> None:
    with pytest.raises(InvalidParams) as caught:
        read_params(ThreadReadParams, {"threadId": {"secret": "plan"}})
    assert "plan" not in str(caught.value.wire())
