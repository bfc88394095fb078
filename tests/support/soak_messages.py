"""Messages of a soak, each under its key, and what was said of each."""

from dataclasses import dataclass, field
from typing import Final

from transport.protocol.turns import TurnStartParams

ASKED: Final = '"sandbox_permissions": "require_escalated", "justification": "why"'
RUN: Final = '"cmd": "echo x >> NAME.ran"'
SCRIPTS: Final = (
    '[[{"msg": "short"}]]',
    '[[{"msg": "one two three four five six", "delay": 0.05}]]',
    '[[{"sleep": 0.5}, {"msg": "late"}]]',
    '[[{"flood": 3000, "size": 20}]]',
    f'[[{{"call": "exec_command", "args": {{{RUN}}}}}], [{{"msg": "ok"}}]]',
    f'[[{{"call": "exec_command", "args": {{{RUN}, {ASKED}}}}}], [{{"msg": "ok"}}]]',
)


@dataclass(kw_only=True)
class Message:
    """One message under its key, and what was said of it, in order.

    `pending`: it went into a turn whose model had not taken it when that was said.
    """

    name: str
    device: int
    params: TurnStartParams
    said: list[str] = field(default_factory=list[str])
    taken_back: bool = False
    pending: bool = False

    @property
    def queue_id(self) -> str | None:
        return next(
            (o.removeprefix("queued ") for o in self.said if o.startswith("queued ")),
            None,
        )

    @property
    def turn(self) -> str | None:
        return next((one for one in self.said if one.startswith("turn ")), None)

    def heard(self, outcome: str) -> None:
        """Take an outcome. What is certain stays."""
        self.said.append(outcome)
        certain = {one for one in self.said if one.startswith(("turn ", "queued "))}
        assert len(certain) <= 1, (self.name, self.said)
        if certain:
            after = self.said[self.said.index(next(iter(certain))) :]
            wrong = [one for one in after if one.startswith("unknown")]
            assert not wrong, (self.name, self.said)
