"""A keyed call that runs now, and what shows of one that nobody saw the end of. Trio shell.

PROTOCOL.md section 3 (Request keys).
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import trio

from agent.records.key_row import Key, KeyRow
from transport.errors import Refusal
from transport.protocol.base import WireModel

R = TypeVar("R", bound=WireModel)


@dataclass(slots=True, eq=False)
class Flight:
    """A keyed call that runs now. `row` is what its ledger row says, `asked` what it
    says before anything is known of the act. `ending`: the act only ends something, so
    it happens even where neither audit nor row can be written."""

    row: KeyRow
    ending: bool = False
    asked: KeyRow = field(init=False)
    landed: trio.Event = field(default_factory=trio.Event)
    result: WireModel | None = None
    refusal: Refusal | None = None
    handed: bool = False

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        self.asked = self.row

    @property
    def key(self) -> Key:
        """The device and its request key."""
        return self.row.device, self.row.key

    def outcome(self, kind: type[R]) -> R | None:
        """Return or raise what it came to; `None`: it ended without a trace."""
        if self.refusal is not None:
            raise self.refusal.again()
        assert self.result is None or isinstance(self.result, kind)
        return self.result


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(Generic[R]):
    """What shows of an act of unknown outcome. No `result`: it stays unknown.

    `turn_id`: of the turn that it started. `new_turns`: how many there are since.
    """

    result: R | None = None
    turn_id: str | None = None
    new_turns: int | None = None
