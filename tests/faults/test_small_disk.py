"""A whole Agent on a real codex, whose state folder is a disk that is really full."""

import pytest
import trio

from clients.cli.scripted_model import Rule
from tests.support import small_disk
from tests.support.agents import client_info
from tests.support.codex import open_codex_home
from tests.support.real_agent import send_params, send_to_end
from tests.support.served_agent import open_served_agent
from transport.client import AdminTarget, Client, EventSeen, Resumed, open_client
from transport.errors import Internal
from transport.protocol import admin, approvals, threads
from transport.protocol import methods as rows
from transport.protocol.events import ApprovalRequested, TurnCompleted
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import TextInput, TurnStatus

pytestmark = [
    pytest.mark.codex,
    pytest.mark.skipif(not small_disk.is_offered(), reason="only root may mount"),
]
ASKING = {
    "call": "exec_command",
    "args": {
        "cmd": "true",
        "sandbox_permissions": "require_escalated",
        "justification": "why",
    },
}
RULES = (Rule("needs a yes", [[ASKING]]),)


async def fill_last_pages(owner: Client, thread: str) -> None:
    """Ask for what is refused until the audit's last page is full, too."""
    for number in range(100):
        params = send_params(thread, "wait", key=f"q{number}", delivery="queue")
        with pytest.raises(Internal) as refused:
            await owner.call(rows.TURN_START, params)
        if "audit" in refused.value.message:
            return
    pytest.fail("the disk still takes more")


async def test_a_full_disk_refuses_what_is_new_and_lets_stop_and_no_through() -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            state = home.home.parent / "state"
            state.mkdir(mode=0o700)
            runtime = home.home.parent / "run"
            door = AdminTarget(path=runtime / "admin.sock")
            async with (
                open_served_agent(
                    home,
                    before=small_disk.before(state, "1m"),
                    environ={"THREADGATE_RUNTIME_DIR": str(runtime)},
                ),
                open_client(door, client_info("local", "l" * 32)) as owner,
            ):
                first = threads.ThreadStartParams(
                    cwd=str(home.workspace),
                    input=[TextInput(type="text", text="hello")],
                    request_key="n" * 32,
                )
                made = await owner.call(rows.THREAD_START, first, timeout_s=60)
                thread = made.thread.id
                read = threads.ThreadReadParams(thread_id=thread)
                while (
                    await owner.call(rows.THREAD_READ, read)
                ).thread.status is ThreadStatus.RUNNING:
                    pass  # each read is a round trip
                await send_to_end(owner, thread, "one more", key="more")
                async with owner.subscribe("all") as events:
                    assert isinstance(await anext(events), Resumed)
                    asked = send_params(thread, "needs a yes", key="asked")
                    await owner.call(rows.TURN_START, asked, timeout_s=60)
                    question = None
                    async for event in events:
                        if isinstance(event, EventSeen) and isinstance(
                            event.data, ApprovalRequested
                        ):
                            question = event.data.approval
                            break
                    assert question is not None
                    await trio.to_thread.run_sync(small_disk.order, state, "fill")
                    assert (await owner.call(rows.THREAD_READ, read)).turns
                    await fill_last_pages(owner, thread)
                    yes = approvals.ApprovalAnswerParams(
                        approval_id=question.id,
                        digest=question.digest,
                        choice="allow",
                    )
                    with pytest.raises(Internal) as refused:
                        await owner.call(rows.APPROVAL_ANSWER, yes)
                    assert refused.value.retryable
                    new = first.model_copy(update={"request_key": "m" * 32})
                    with pytest.raises(Internal):
                        await owner.call(rows.THREAD_START, new)
                    no = yes.model_copy(update={"choice": "deny"})
                    await owner.call(rows.APPROVAL_ANSWER, no)
                    async for event in events:
                        if isinstance(event, EventSeen) and isinstance(
                            event.data, TurnCompleted
                        ):
                            assert event.data.turn.status is TurnStatus.COMPLETED
                            break
                await trio.to_thread.run_sync(small_disk.order, state, "free")
                turn = await send_to_end(owner, thread, "go on", key="next")
                assert turn.status is TurnStatus.COMPLETED
                page = await owner.call(rows.AUDIT_LIST, admin.AuditListParams())
                told = [entry.event for entry in reversed(page.entries)]
                assert told[-3:] == ["turn/queue", "approval/answer", "turn/start"]
