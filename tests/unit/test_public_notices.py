"""What Codex says of the workstation, as devices are told it."""

from typing import Any

import pytest

from adapter.events.normalize import Normalizer
from adapter.events.notices import notice, public_of
from adapter.runtime.events import Emitted
from transport.protocol.events import Notice, NoticeLevel

CANARY = "ann-s-folder"
PATH = f"/home/{CANARY}/.codex/config.toml"
HOOK = {
    "id": "h",
    "eventName": "preToolUse",
    "status": "failed",
    "entries": [{"kind": "error", "text": f"{PATH}: not found"}],
}


def told(method: str, params: dict[str, Any]) -> tuple[str, str]:
    """Return the message for the workstation, and the one for devices."""
    (event,) = Normalizer().notification(method, params, 1)
    assert isinstance(event, Emitted)
    public = event.public or event.data
    assert isinstance(event.data, Notice)
    assert isinstance(public, Notice)
    assert public.code == event.data.code
    return event.data.message, public.message


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("configWarning", {"summary": "unknown key", "path": PATH}),
        ("configWarning", {"summary": "bad", "details": f"in ~/{CANARY}"}),
        ("warning", {"message": rf"cannot read C:\\Users\\{CANARY}\\x"}),
        ("guardianWarning", {"message": f"no {PATH}"}),
        (
            "mcpServer/startupStatus/updated",
            {"name": CANARY, "status": "failed", "error": f"{PATH}: not found"},
        ),
        ("hook/completed", {"threadId": "thr", "run": HOOK}),
        ("windows/worldWritableWarning", {"samplePaths": [PATH]}),
    ],
)
def test_no_path_of_a_warning_is_for_devices(
    method: str, params: dict[str, Any]
) -> None:
    whole, public = told(method, params)
    assert CANARY in whole
    assert CANARY not in public
    assert "at the workstation" in public


def test_why_a_name_was_not_taken_is_for_the_workstation() -> None:
    words = f"The thread has no name: {PATH}: no space left on device"
    public = public_of(notice(NoticeLevel.WARNING, "notNamed", words, "thr"))
    assert public is not None
    assert CANARY not in public.message


def test_a_warning_without_a_path_is_told_to_everybody() -> None:
    words = "Long threads make the model forget. See https://example.com/a/b for more."
    assert told("warning", {"message": words}) == (words, words)
