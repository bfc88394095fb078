"""What happens often is written down seldom, with its number."""

from agent.edge_limits import INCIDENT_S, INCIDENTS, STRANGERS
from agent.sessions.incidents import OTHERS, Incidents


class Log:
    def __init__(self) -> None:
        self.now = 0.0
        self.lines: list[tuple[str, dict[str, object]]] = []
        self.incidents = Incidents(self.note, lambda: self.now)

    def note(self, event: str, **fields: object) -> None:
        self.lines.append((event, fields))


def test_the_first_is_told_at_once_and_the_next_after_a_minute_with_all_between() -> (
    None
):
    log = Log()
    for _ in range(500):
        log.incidents.happened("denied", device="a", method="turn/start")
    log.now = INCIDENT_S
    log.incidents.happened("denied", device="a", method="turn/start")
    assert [fields["count"] for _, fields in log.lines] == [1, 500]


def test_other_devices_and_methods_are_other_incidents() -> None:
    log = Log()
    for device in "ab":
        for method in ("x", "y"):
            log.incidents.happened("denied", device=device, method=method)
    assert len(log.lines) == 4


def test_its_memory_is_bounded() -> None:
    log = Log()
    for number in range(INCIDENTS + 10):
        log.incidents.happened("handshake/refused", source=str(number))
    log.incidents.happened("handshake/refused", source="0")
    assert log.lines[-1][1]["source"] == "0", "the longest quiet was forgotten"


def test_a_stranger_of_many_addresses_does_not_fill_the_log() -> None:
    log = Log()
    for number in range(10_000):
        log.incidents.knocked("handshake/refused", f"2001:db8::{number:x}")
    named = [fields["source"] for _, fields in log.lines]
    assert named == [f"2001:db8::{number:x}" for number in range(STRANGERS)] + [OTHERS]
    log.now = INCIDENT_S
    log.incidents.knocked("handshake/refused", "192.0.2.1")
    for number in range(STRANGERS):
        log.incidents.knocked("handshake/refused", str(number))
    assert len(log.lines) == 2 * (STRANGERS + 1)
    assert log.lines[-1][1] == {"source": OTHERS, "count": 10_000 - STRANGERS}
