"""Strangers at the doors: half-open slots, rates, sources."""

from agent.edge_limits import SOURCES
from agent.sessions.admittance import Admittance, Bounds, source_of


def admittance(**bounds: float) -> Admittance:
    return Admittance(Bounds(**bounds), now=0.0)  # type: ignore[arg-type] # numbers


def test_one_source_has_eight_half_open_connections() -> None:
    doors = admittance()
    assert [doors.enter("a", 0.0) for _ in range(10)] == [True] * 8 + [False] * 2
    assert doors.enter("b", 0.0)
    doors.leave("a")
    assert doors.enter("a", 0.0)


def test_all_sources_together_have_thirty_two() -> None:
    doors = admittance()
    assert sum(doors.enter(f"s{n}", 0.0) for n in range(40)) == 32
    assert doors.half_open == 32


def test_a_source_may_come_five_times_a_second_after_a_burst_of_ten() -> None:
    doors = admittance()
    let_in = 0
    for tick in range(1_000):
        if doors.enter("a", tick / 100):
            doors.leave("a")
            let_in += 1
    assert 58 <= let_in <= 61, "10 at first, then 5 in each of 10 seconds"


def test_many_sources_together_are_bounded_too() -> None:
    doors = admittance()
    let_in = 0
    for tick in range(2_000):
        source = f"s{tick}"
        if doors.enter(source, tick / 1_000):
            doors.leave(source)
            let_in += 1
    assert 145 <= let_in <= 151, "50 at first, then 50 a second"


def test_a_local_peer_is_held_by_its_slots_alone() -> None:
    doors = admittance()
    assert sum(doors.enter(None, 0.0) for _ in range(40)) == 32


def test_strangers_that_take_every_slot_leave_local_peers_theirs() -> None:
    doors = admittance()
    for number in range(40):
        doors.enter(f"192.0.2.{number}", 0.0)
    assert doors.half_open == 32
    assert sum(doors.enter(None, 0.0) for _ in range(40)) == 32
    doors.leave("192.0.2.1")
    assert doors.enter("198.51.100.1", 1.0)


def test_the_table_of_sources_is_bounded_and_forgets_the_longest_unseen() -> None:
    doors = admittance(total_rate=1e9, total_burst=1e9)
    for number in range(SOURCES + 100):
        source = f"s{number}"
        if doors.enter(source, float(number)):
            doors.leave(source)
    assert doors.sources == SOURCES


def test_a_refused_source_does_not_use_up_the_total() -> None:
    doors = admittance(burst=1, total_burst=2, total_rate=0.001, rate=0.001)
    assert doors.enter("a", 0.0)
    assert not any(doors.enter("a", 0.0) for _ in range(10))
    assert doors.enter("b", 0.0)


def test_an_ipv6_subscriber_is_one_source() -> None:
    assert source_of("2001:db8:1:2:3:4:5:6") == source_of("2001:db8:1:2:ffff::1")
    assert source_of("2001:db8:1:3::1") != source_of("2001:db8:1:2::1")
    assert source_of("fe80::1%eth0") == source_of("fe80::2%eth1")
    assert source_of("::ffff:192.0.2.7") == source_of("192.0.2.7") == "192.0.2.7"
