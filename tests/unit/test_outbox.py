"""What waits beside events: order, pongs made when written, a bound."""

from agent.edge_limits import UNSENT_ANSWERS, WRITE_BYTES
from agent.events.outbox import Outbox
from transport.codec import pack, unpack


def taken(outbox: Outbox, seq: int | None = 7) -> list[dict[str, object]]:
    return [unpack(frame) for frame in outbox.take(seq=seq, now_ms=5)]


def test_answers_go_in_order_then_a_ping_then_pongs() -> None:
    outbox = Outbox()
    outbox.add(pack({"id": 1}))
    outbox.ping(3)
    outbox.add(pack({"id": 2}))
    outbox.answer_ping(9)
    assert taken(outbox) == [
        {"id": 1},
        {"id": 2},
        {"ping": 3},
        {"pong": 9, "now": 5, "seq": 7},
    ]
    assert not outbox
    assert taken(outbox) == []


def test_a_pong_before_any_subscription_has_no_cursor() -> None:
    outbox = Outbox()
    outbox.answer_ping(1)
    assert taken(outbox, seq=None) == [{"pong": 1, "now": 5}]


def test_one_ping_of_ours_is_enough() -> None:
    outbox = Outbox()
    outbox.ping(1)
    outbox.ping(2)
    assert taken(outbox) == [{"ping": 2}]


def test_it_is_full_by_number_and_by_size() -> None:
    many, large, pings = Outbox(), Outbox(), Outbox()
    for _ in range(UNSENT_ANSWERS):
        assert not many.full
        many.add(b"x")
        pings.answer_ping(1)
    large.add(b"x" * (WRITE_BYTES + 1))
    assert many.full
    assert large.full
    assert pings.full
    many.take(seq=None, now_ms=0)
    assert not many.full
