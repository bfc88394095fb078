"""A turn of ours followed by two devices, one of which is cut off while text streams.

Both must end with the same thread, letter by letter, and with what the store has.
"""

import pytest
import trio

from clients.cli.scripted_answers import Rule
from tests.support.agents import pair_device
from tests.support.codex import codex_binaries, each_version, open_codex_home
from tests.support.cut_line import open_line
from tests.support.foreign import open_foreign
from tests.support.real_agent import open_real_agent, send_params
from tests.support.screens import open_screen
from transport.protocol.methods import THREAD_READ, TURN_START
from transport.protocol.threads import ThreadReadParams

pytestmark = pytest.mark.codex
FIRST = " ".join(f"one{n}" for n in range(200))
SECOND = " ".join(f"two{n}" for n in range(200))
RULES = (
    Rule(
        "Tell it all.",
        [
            [
                {"reasoning": ["Thinking about it."]},
                {"msg": FIRST, "halfway": "first", "phase": "commentary"},
                {"call": "exec_command", "args": {"cmd": "seq 500"}},
            ],
            [{"msg": SECOND, "halfway": "second"}],
        ],
    ),
)


@each_version
async def test_two_devices_end_with_the_same_thread_though_one_was_cut_off_midway(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            async with open_foreign(codex_binaries()[version], home.environ) as other:
                thread = await other.start_thread(home.workspace, "hello")
            async with open_real_agent(home, version=version) as house:
                phone = await pair_device(house, scopes=("read",), name="phone")
                tablet = await pair_device(
                    house, scopes=("read", "write"), name="tablet"
                )
                async with (
                    open_line(house.target(phone)) as (line, cut),
                    open_screen(cut, thread, "phone") as (_, one),
                    open_screen(house.target(tablet), thread, "tablet") as (
                        client,
                        two,
                    ),
                ):
                    model = home.model
                    send = send_params(
                        thread, "Tell it all.", key="tell", wait_ms=60_000
                    )
                    started = await client.call(TURN_START, send, timeout_s=90)
                    await one.until(lambda: one.shows("one80 "))
                    line.cut()
                    model.release("first")
                    await model.wait_held("second")
                    await two.until(lambda: two.shows("two80 "))
                    assert not one.shows("one120 "), "it was cut off"
                    line.up = True
                    await one.until(lambda: one.shows("two80 "))
                    assert not one.is_over()
                    model.release("second")
                    for screen in (one, two):
                        await screen.until(screen.is_over)
                    assert (one.verdicts, two.verdicts) == (["new", "ok"], ["new"])
                    assert one.items == two.items
                    assert one.turns == two.turns
                    assert one.done == two.done
                    assert len(set(one.done)) == len(one.done), "an item twice"
                    texts = [one.items[item].get("text") for item in one.done]
                    assert FIRST in texts
                    assert SECOND in texts
                    last = one.done[-1]
                    assert one.grown[last] == two.grown[last] == SECOND
                    read = await client.call(
                        THREAD_READ, ThreadReadParams(thread_id=thread)
                    )
                    stored = read.turns[0]
                    assert stored.id == started.sent.id
                    shown = [
                        (item.id, item.kind, item.wire().get("text"))
                        for item in stored.items or ()
                    ]
                    assert shown == [
                        (row["id"], row["kind"], row.get("text"))
                        for row in map(one.items.__getitem__, one.done)
                    ]
