"""What makes two calls the same call."""

from agent.records.key_row import digest
from tests.support.door import send


def test_key_patience_and_newest_turn_do_not_count_everything_else_does() -> None:
    one = digest("turn/start", send())
    assert one == digest("turn/start", send(key="another-key-0123456", wait_ms=9))
    assert one != digest("turn/other", send())
    assert one != digest("turn/start", send("other"))
    assert one != digest("turn/start", send(text="go away"))
    assert one == digest("turn/start", send(expected="t1"))
    assert one != digest("turn/start", send(allow_pending=True))
