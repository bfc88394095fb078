"""docs/tour.md: a day's use of the command line, typed on the real codex by this test.

`THREADGATE_GOLDEN=write` writes the page anew; every run compares.
"""

import signal
from pathlib import Path
from typing import Final

import pytest

from clients.cli import demo_script as script
from clients.cli.demo_desktop import open_desktop_codex
from tests.support.golden import check_golden
from tests.support.tour import open_day, said
from tests.support.tour_at_work import ask, change, look, pair, work
from tests.support.tour_in_order import (
    beside_the_desktop,
    go_on_alone,
    keep_order,
    try_something,
)

FILE: Final = Path(__file__).parents[2] / "docs" / "tour.md"
pytestmark = [pytest.mark.codex, pytest.mark.usefixtures("warm_actors")]


async def test_the_tour_is_what_the_commands_say() -> None:
    async with open_day() as day:
        async with open_desktop_codex(
            day.stage.codex, day.stage.codex_environ
        ) as desktop:
            planned = await desktop.start_thread(day.stage.workspace, script.PLAN)
        serve = ("serve", "--tcp", "127.0.0.1:0")
        async with day.desk.start(*serve) as agent:
            await agent.wait_line("^Pair one")
            day.page.title("Morning: the workstation")
            day.page.tell("The Agent starts at the workstation, and stays.")
            day.show((day.desk, serve, said(agent)))
            await pair(day)
            await look(day, planned)
            await work(day)
            await ask(day)
            await change(day)
            await go_on_alone(day)
            await try_something(day)
            await beside_the_desktop(day)
            await keep_order(day)
            told = len(agent.lines)
            agent.process.send_signal(signal.SIGINT)
            await agent.end()
        day.page.title("Night")
        day.page.tell("Ctrl-C stops the Agent; nothing of it is left running.")
        day.show((day.desk, (), said(agent, told)))
    check_golden(FILE, day.page.text())
