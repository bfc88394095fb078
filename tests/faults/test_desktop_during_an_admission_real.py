"""A real program opens, closes and opens again at a step of a message's way to codex.

The way stands still meanwhile: the program is there before, or right after, the very
look at the process table that the step begins with. All steps of all acts, on a fake:
`test_desktop_during_an_admission`.
"""

import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
import trio

from agent.door import Door
from agent.gate.gatekeeper import GateKeeper
from agent.records.key_row import RowState
from agent.records.store import Store
from tests.support.codex import BUNDLED, CodexHome, codex_binaries, open_codex_home
from tests.support.door import LOCAL, send
from tests.support.fake_desktop import APP, place, shell
from tests.support.foreign import open_foreign
from tests.support.other_codexes import resume_when_free
from tests.support.real_door import open_door, wait_open
from transport.errors import CodexUnavailable
from transport.protocol.turns import TurnStartResult

pytestmark = pytest.mark.codex
KEY = "the-one-key-of-it-0123456789abcd"
PATIENCE_S = 240
# The looks: at first, before a writer starts, before it loads, before the act.
STEPS = {
    "before the look": (0, False),
    "before the lease": (0, True),
    "while the writer starts": (1, True),
    "before it loads": (2, False),
    "while it loads": (2, True),
    "between handed and the last look": (3, False),
    "right after the last look": (3, True),
}
LAST = "right after the last look"
QUICK = ("while it loads", "between handed and the last look")


class Desktop:
    """A program where the desktop's lies, started and ended in one step of the test's."""

    def __init__(self, path: Path, home: CodexHome) -> None:
        self._path, self._home = path, home
        self._process: subprocess.Popen[bytes] | None = None  # noqa: TID251 - see `open`
        self.opened = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def open(self) -> None:
        """Start it; it is what it seems when this returns."""
        self._process = subprocess.Popen(  # noqa: TID251 - between two looks nobody may wait
            shell(self._path),
            env=self._home.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        self.opened += 1

    def close(self) -> None:
        """End it; it is gone when this returns."""
        if self._process is not None:
            with self._process as process:
                process.kill()
        self._process = None

    def flickers(self) -> None:
        """It opens, closes and opens again."""
        self.open()
        self.close()
        self.open()

    @asynccontextmanager
    async def ended_at_last(self) -> AsyncGenerator[None]:
        """Close it after the block, if it is open."""
        try:
            yield
        finally:
            self.close()


def at_look(
    keeper: GateKeeper, desktop: Desktop, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the desktop flicker at that step of what comes now."""
    number, after = STEPS[step]
    check, looks = keeper.check, count()

    def stepped(thread_id: str | None = None) -> None:
        here = next(looks) == number
        if here and not after:
            desktop.flickers()
        check(thread_id)
        if here and after:
            desktop.flickers()

    monkeypatch.setattr(keeper, "check", stepped)


def row_state(home: CodexHome) -> RowState | None:
    store = Store.open(home.home.parent / "state" / "ledger.sqlite")
    try:
        row = store.find(LOCAL.device_id, KEY)
    finally:
        store.close()
    return row.state if row else None


async def start(door: Door, thread: str, *, wait_ms: int = 0) -> TurnStartResult:
    params = send(thread, "ours", key=KEY, wait_ms=wait_ms)
    return await door.admission.start_turn(LOCAL, params)


async def refused(home: CodexHome, door: Door, thread: str, desktop: Desktop) -> None:
    """Nothing has happened, and its key is free."""
    with pytest.raises(CodexUnavailable) as refusal:
        await start(door, thread)
    assert refusal.value.data["gate"]["writer"]["pid"] == desktop.pid
    assert row_state(home) is None
    assert len(home.model.requests) == 1, "the model was not asked"


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(step, marks=() if step in QUICK else pytest.mark.long)
        for step in STEPS
    ],
)
async def test_a_desktop_at_a_step_of_an_admission_gets_the_thread(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex = codex_binaries()[BUNDLED]
    result: TurnStartResult | None = None
    with trio.fail_after(PATIENCE_S):
        async with open_codex_home() as home, open_door(home) as door:
            desktop = Desktop(place(tmp_path, APP), home)
            async with open_foreign(codex, home.environ) as first:
                thread = await first.start_thread(home.workspace, "theirs")
            async with (
                desktop.ended_at_last(),
                open_foreign(codex, home.environ) as other,
            ):
                await wait_open(door)
                at_look(door.keeper, desktop, step, monkeypatch)
                if step == LAST:
                    result = await start(door, thread)
                    assert row_state(home) is RowState.DONE
                else:
                    await refused(home, door, thread, desktop)
                assert desktop.opened == 2, "the step was come to"
                await resume_when_free(other, thread)
                await other.turn(thread, "again")
                assert home.model.requests[-1].user_texts[-1] == "again"
                assert door.leases.rows() == []
            told = await start(door, thread, wait_ms=20_000)
            assert result in (None, told), "its key tells it again"
            lease = door.leases.lease_of(thread)
            if lease is not None:
                await lease.started_writer.wait_idle()
            said = [
                text for text in home.model.requests[-1].user_texts if text[0] != "<"
            ]
            in_order = ["ours", "again"] if result else ["again", "ours"]
            assert said == ["theirs", *in_order]
            acts = [one for one in home.model.requests if one.user_texts[-1] == "ours"]
            assert len(acts) == 1, "once"
