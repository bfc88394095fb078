"""How commands end: exit codes for scripts, one line for people."""

import pytest
from pydantic import ValidationError

from agent.edge_limits import REVOKING_S, STOPPING_S
from agent.limits import ACT_S, ROOM_S
from clients.cli.exits import Ending, ExitCode, UsageProblemError, ending
from tests.support import cli_samples as samples
from tests.support.cli_samples import CLOCK, SHOP
from transport.errors import (
    CloseCode,
    CodexUnavailable,
    Conflict,
    Forbidden,
    HandshakeError,
    KeyFileError,
    NotFound,
    OutcomeUnknown,
    Overloaded,
    PairingTextError,
    PeerClosedError,
    RemoteProtocolError,
    ThreadOwnedElsewhere,
    Timeout,
    TruncatedError,
    UnreachableError,
)
from transport.patience import gave_up, patience_s_of
from transport.protocol.methods import (
    AUDIT_LIST,
    DEVICE_GRANT,
    DEVICE_LIST,
    DEVICE_REVOKE,
    GATEWAY_LOCK,
    GATEWAY_UNLOCK,
)
from transport.protocol.thread_acts import ThreadRenameParams


def ended(error: Exception) -> Ending:
    found = ending(error, CLOCK, "ann-desk")
    assert found is not None
    assert "\n" not in found.message
    return found


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageProblemError("no"), ExitCode.USAGE),
        (PairingTextError("mistyped"), ExitCode.USAGE),
        (KeyFileError("open to others"), ExitCode.FAILED),
        (NotFound("no such thread"), ExitCode.FAILED),
        (Forbidden("no"), ExitCode.FAILED),
        (Conflict("a newer turn"), ExitCode.FAILED),
        (OutcomeUnknown("?"), ExitCode.FAILED),
        (Overloaded("full"), ExitCode.RETRYABLE),
        (CodexUnavailable("closed"), ExitCode.RETRYABLE),
        (CodexUnavailable("locked", retryable=False), ExitCode.FAILED),
        (ThreadOwnedElsewhere("held"), ExitCode.RETRYABLE),
        (UnreachableError("refused"), ExitCode.UNREACHABLE),
        (HandshakeError("silence"), ExitCode.UNREACHABLE),
        (TruncatedError("cut"), ExitCode.UNREACHABLE),
        (PeerClosedError(CloseCode.GOING_AWAY, 1), ExitCode.UNREACHABLE),
        (PeerClosedError(CloseCode.REVOKED, 3), ExitCode.FAILED),
        (RemoteProtocolError("garbage"), ExitCode.FAILED),
    ],
)
def test_every_end_has_the_exit_code_that_scripts_rely_on(
    error: Exception, code: ExitCode
) -> None:
    assert ended(error).code is code


def test_a_fault_of_ours_is_not_dressed_up() -> None:
    assert ending(ZeroDivisionError("bug"), CLOCK) is None


def test_a_closed_gate_names_the_writer_and_when_to_try_again() -> None:
    refusal = CodexUnavailable(
        "read-only", data={"gate": samples.closed_gate().wire()}, retry_after_ms=5_000
    )
    assert ended(refusal).message == (
        "refused, nothing was sent: Codex desktop (pid 812, since 11:42) is the writer; "
        "reading goes on; try again in 5 s or when it is closed"
    )


def test_a_thread_that_others_hold_names_them() -> None:
    refusal = ThreadOwnedElsewhere("held", data={"writer": samples.desktop().wire()})
    assert ended(refusal).message == (
        "refused, nothing was sent: Codex desktop (pid 812, since 11:42) holds this "
        "thread; try again later"
    )


def test_an_unknown_outcome_tells_the_key_and_where_to_look() -> None:
    data = {"requestKey": "cli-0123456789abcdef", "threadId": SHOP}
    message = ended(OutcomeUnknown("?", data=data)).message
    assert "cli-0123456789abcdef" in message
    assert f"threadgate read {SHOP}" in message
    assert "will not be sent again by itself" in message


def test_what_the_owner_asked_for_and_was_not_answered_may_be_said_again() -> None:
    for method in (GATEWAY_LOCK, GATEWAY_UNLOCK, DEVICE_REVOKE, DEVICE_GRANT):
        refusal = gave_up(method, {}, 120, sent=True)
        assert isinstance(refusal, OutcomeUnknown)
        assert "requestKey" not in refusal.message
        message = ended(refusal).message
        assert "run the command again (twice is harmless)" in message
        assert "request key" not in message
        assert "approvals" not in message


def test_what_the_owner_only_looked_at_certainly_has_not_happened() -> None:
    for method in (DEVICE_LIST, AUDIT_LIST):
        assert isinstance(gave_up(method, {}, 30, sent=True), Timeout)


def test_the_owner_is_answered_before_patience_ends() -> None:
    longest = REVOKING_S + STOPPING_S
    for method in (GATEWAY_LOCK, GATEWAY_UNLOCK, DEVICE_REVOKE):
        assert patience_s_of(method, {}) > longest + 10, "and some seconds for a disk"
    carried = ACT_S + ROOM_S
    assert carried < REVOKING_S, "an act is carried to its end for so long"


def test_what_the_agent_says_to_do_about_a_missing_scope_is_said_once() -> None:
    refusal = Forbidden("Ask for write at the desk.", data={"scope": "write"})
    assert ended(refusal).message == "Ask for write at the desk"


def test_what_cannot_be_sent_is_a_matter_of_usage_and_names_the_field() -> None:
    for words, told in (
        ("x\udcff", "name holds bytes that are no UTF-8: nothing was sent"),
        ("", "name cannot be sent: String should have at least 1 character"),
    ):
        with pytest.raises(ValidationError) as misfit:
            ThreadRenameParams(thread_id=SHOP, name=words, request_key="k" * 16)
        end = ended(misfit.value)
        assert (end.code, end.message) == (ExitCode.USAGE, told)


@pytest.mark.parametrize(
    ("words", "retry_after_ms", "told"),
    [
        ("It is started anew: try again in a moment.", 1_000, "It is started anew"),
        ("Codex has too much to do right now. Try again.", 2_000, None),
        ("Codex is busy; try again.", None, "Codex is busy"),
        ("Make room there, then try again.", None, "Make room there"),
        ("What was to try again was not", 1_000, "What was to try again was not"),
    ],
)
def test_that_it_may_be_tried_again_is_said_once(
    words: str, retry_after_ms: int | None, told: str | None
) -> None:
    message = ended(Overloaded(words, retry_after_ms=retry_after_ms)).message
    when = "later" if retry_after_ms is None else f"in {retry_after_ms // 1_000} s"
    begins = told or "Codex has too much to do right now"
    assert message == f"{begins}; try again {when}"


def test_a_hostile_message_stays_one_plain_line() -> None:
    message = ended(NotFound("no\x1b[2J\nsuch\u202e thread " + "x" * 2_000)).message
    assert message.startswith("no such thread x")
    assert len(message) == 600


def test_data_of_a_wrong_shape_is_not_believed() -> None:
    refusal = CodexUnavailable("the gate is closed", data={"gate": {"state": 7}})
    assert ended(refusal).message == "the gate is closed; try again later"
