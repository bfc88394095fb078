"""macOS's way of seeing other writers, on a real codex: psutil instead of /proc."""

import pytest
import trio

from agent.gate import proctable_darwin
from agent.gate.writers import WriterWatch
from tests.support.codex import codex_binaries, locking_versions, open_codex_home
from tests.support.foreign import open_foreign
from transport.protocol.gateway import WriterKind

pytestmark = pytest.mark.codex


@pytest.mark.parametrize("version", locking_versions())
async def test_a_real_codex_is_named_with_its_thread_for_as_long_as_it_holds_it(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_codex_home() as home:
            watch = WriterWatch(own_pids=set, home=home.home, table=proctable_darwin)
            binary = codex_binaries()[version]
            # The person's own login shell may take its time, and outlive codex.
            quiet = {"HOME": str(home.workspace), "SHELL": "/bin/bash"}
            async with open_foreign(binary, home.environ | quiet) as foreign:
                thread_id = await foreign.start_thread(home.workspace, "hello")
                look = await watch.look_closely()
                (found,) = look.foreign
                assert (found.pid, found.locks) == (foreign.pid, True)
                assert found.named.kind in (WriterKind.CLI, WriterKind.UNKNOWN)
                held = watch.holders([thread_id])
                assert held[thread_id].pid == foreign.pid
                assert watch.lock_holders() == {foreign.pid: 1}
                own = WriterWatch(
                    own_pids=lambda: {foreign.pid},
                    home=home.home,
                    table=proctable_darwin,
                )
                assert own.holders([thread_id]) == {}
                assert own.look().foreign == ()
            assert watch.look().foreign == ()
            assert watch.holders([thread_id]) == {}
