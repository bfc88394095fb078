"""What happens often is written down seldom, with its number."""

from agent.edge_limits import INCIDENT_S, INCIDENTS
from agent.sessions.incidents import Incidents


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
