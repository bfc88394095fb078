"""The event order of PROTOCOL.md section 6, whatever Codex says: threads."""

from adapter.events.tree import Tree
from adapter.limits import KNOWN_THREADS
from adapter.runtime.events import Emitted
from tests.support import codex_says as says
from tests.support.codex_says import AT, CHILD, THREAD, Raw
from tests.support.told import Codex, word
from transport.protocol.events import ThreadChanged, ThreadStarted
from transport.protocol.threads import ThreadStatus


def test_a_new_thread_is_told_with_its_first_turn() -> None:
    codex = Codex(adopted=False)
    codex.normalizer.adopt(says.thread(), [])
    codex.says("thread/started", thread=says.thread())
    codex.status("active")
    assert codex.told == []
    codex.begins()
    codex.item("started", says.user("fix the tests"))
    codex.item("completed", says.user("fix the tests"))
    assert codex.told[:2] == ["thread/started", "turn/started"]
    assert codex.of(ThreadChanged)[-1].thread.preview == "fix the tests"


def test_a_new_thread_keeps_the_settings_that_its_answer_told() -> None:
    codex = Codex(adopted=False)
    answer = {
        "thread": says.thread(),
        "cwd": "/work/app",
        "model": "gpt-5",
        "modelProvider": "mock",
        "approvalPolicy": "on-request",
        "sandbox": {"type": "readOnly"},
    }
    codex.normalizer.adopt(says.thread(), [])
    codex.normalizer.settle(answer)
    codex.says("thread/started", thread=says.thread())  # it may come behind the answer
    thread = codex.normalizer.thread(str(says.thread()["id"]))
    assert thread is not None
    assert thread.settings is not None
    assert thread.settings.model == "gpt-5"


def test_a_thread_that_is_told_of_late_stays_as_it_was_told_since() -> None:
    codex = Codex(adopted=False)
    codex.normalizer.adopt(says.thread(), [])
    settings = {"approvalPolicy": "never", "sandboxPolicy": {"type": "readOnly"}}
    moved = {**settings, "cwd": "/work/other"}
    codex.says("thread/settings/updated", threadId=THREAD, threadSettings=moved)
    codex.says("thread/name/updated", threadId=THREAD, threadName="Tests")
    codex.status("active", "waitingOnApproval")
    codex.says("thread/started", thread=says.thread())
    thread = codex.normalizer.thread(THREAD)
    assert thread is not None
    assert (thread.cwd, thread.title) == ("/work/other", "Tests")
    assert thread.status is ThreadStatus.WAITING_ON_APPROVAL
    codex.begins()
    assert codex.told[-2:] == ["thread/started", "turn/started"]


def test_a_resumed_thread_is_not_told_as_new() -> None:
    codex = Codex()
    codex.begins()
    assert codex.of(ThreadStarted) == []


def test_events_before_the_answer_to_a_resume_are_not_lost() -> None:
    codex = Codex(adopted=False)
    codex.status("active")
    codex.begins("t1")
    codex.normalizer.adopt(
        says.thread(), [says.turn("t1"), says.turn("t0", "completed")]
    )
    assert codex.normalizer.running_turn(THREAD) == "t1"
    codex.ends()
    assert codex.told.count("turn/completed") == 1


def test_a_turn_that_ended_before_the_answer_to_a_resume_is_the_newest() -> None:
    codex = Codex(adopted=False)
    codex.begins("t1")
    codex.ends(turn="t1")
    codex.normalizer.adopt(says.thread(), [says.turn("t0", "completed")])
    assert codex.normalizer.last_turn(THREAD) == "t1"
    assert codex.normalizer.knows_turn("t0")


def test_a_turn_that_the_answer_lists_as_running_is_told_by_its_first_event() -> None:
    codex = Codex(adopted=False)
    running = says.thread(status={"type": "active", "activeFlags": []})
    codex.normalizer.adopt(running, [says.turn("t1")])
    assert codex.busy()
    codex.item("started", says.message())
    assert codex.told[:2] == ["turn/started", "begin msg_1"]
    codex.ends()
    assert not codex.busy()


def test_a_stored_turn_in_progress_of_an_idle_thread_does_not_keep_the_writer() -> None:
    codex = Codex(adopted=False)
    codex.normalizer.adopt(says.thread(), [says.turn("t1")])
    assert not codex.busy()
    assert codex.normalizer.last_turn(THREAD) == "t1"


def test_a_new_title_changes_the_thread() -> None:
    codex = Codex()
    codex.says("thread/name/updated", threadId=THREAD, threadName="Tests")
    assert codex.of(ThreadChanged)[-1].thread.title == "Tests"


def test_what_is_told_of_an_unloaded_thread_is_counted() -> None:
    codex = Codex(adopted=False)
    codex.says("thread/name/updated", threadId=THREAD, threadName="Tests")
    assert codex.events == []
    assert sum(codex.normalizer.skipped.values()) == 1


def test_another_thread_in_a_writer_is_a_sub_agent_of_its_root() -> None:
    codex = Codex()
    codex.begins()
    codex.status("idle", on=CHILD)
    codex.begins("c1", on=CHILD, rootTurnId="t1")
    codex.item("completed", says.message("m", text="hi"), turn="c1", on=CHILD)
    codex.ends(turn="c1", on=CHILD)
    mine = [event for event in codex.events if event.thread_id == CHILD]
    assert [word(event) for event in mine][:2] == ["thread/started", "turn/started"]
    assert {event.root_thread_id for event in mine} == {THREAD}
    thread = codex.of(ThreadStarted)[0].thread
    assert (thread.root_id, thread.parent_id) == (THREAD, THREAD)
    assert codex.normalizer.root_of(CHILD) == THREAD
    assert codex.normalizer.tree(THREAD) == {THREAD, CHILD}
    assert codex.normalizer.root_of(THREAD) is None


def test_a_sub_agent_s_thread_is_called_as_its_parent_calls_it() -> None:
    codex = Codex()
    codex.begins()
    spawned: Raw = {"type": "subAgentActivity", "id": "a1", "kind": "started"}
    spawned |= {"agentThreadId": CHILD, "agentPath": "/root/bee"}
    codex.item("completed", spawned)
    codex.begins("c1", on=CHILD, rootTurnId="t1")
    assert codex.of(ThreadStarted)[0].thread.title == "/root/bee"


def test_a_running_sub_agent_keeps_the_writer() -> None:
    codex = Codex()
    codex.begins()
    codex.begins("c1", on=CHILD, rootTurnId="t1")
    codex.ends()
    assert codex.busy()
    codex.ends(turn="c1", on=CHILD)
    assert not codex.busy()


def test_a_grandchild_s_root_is_the_thread_that_was_loaded() -> None:
    codex = Codex()
    codex.begins()
    watch = {"type": "subAgentActivity", "id": "a", "kind": "started", "agentPath": "x"}
    codex.item("started", {**watch, "agentThreadId": CHILD})
    codex.item("started", {**watch, "agentThreadId": "grand"}, turn="c1", on=CHILD)
    assert codex.normalizer.root_of("grand") == THREAD
    assert codex.normalizer.tree(CHILD) == {CHILD, "grand"}


def test_an_active_goal_keeps_the_writer_and_a_cleared_one_does_not() -> None:
    codex = Codex()
    goal = {"objective": "x", "status": "active", "threadId": THREAD}
    codex.says("thread/goal/updated", threadId=THREAD, goal=goal)
    assert codex.busy()
    codex.says("thread/goal/updated", threadId=THREAD, goal={**goal, "tokensUsed": 9})
    codex.says("thread/goal/cleared", threadId=THREAD)
    codex.says("thread/goal/cleared", threadId=THREAD)
    assert not codex.busy()
    told = [event.data for event in codex.events if isinstance(event, Emitted)]
    assert [data.wire() for data in told] == [
        {"goal": {"objective": "x", "status": "active"}},
        {},
    ]


def test_an_archived_thread_ends_what_ran_in_it_and_is_gone() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command())
    codex.says("thread/archived", threadId=THREAD)
    assert codex.told[-3:] == [
        "end call_1 interrupted",
        "turn/completed",
        "thread/removed",
    ]
    assert not codex.busy()


def test_settings_are_shown_as_codex_last_told_them() -> None:
    codex = Codex()
    settings: Raw = {
        "model": "gpt-5.5",
        "effort": "high",
        "approvalPolicy": {"granular": {"rules": True}},
        "sandboxPolicy": {"type": "workspaceWrite", "networkAccess": False},
        "collaborationMode": {"mode": "plan", "settings": {}},
    }
    codex.says("thread/settings/updated", threadId=THREAD, threadSettings=settings)
    shown = codex.of(ThreadChanged)[-1].thread.settings
    assert shown is not None
    assert shown.wire() == {
        "model": "gpt-5.5",
        "effort": "high",
        "mode": "plan",
        "sandbox": "workspace-write",
        "approvalPolicy": "granular",
    }


def test_a_death_ends_everything_and_is_said() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command(processId="7"))
    codex.ends()
    codex.begins("t2")
    codex.item("started", says.message(), turn="t2")
    codex.events = codex.normalizer.died(AT, "codex ended with -9")
    assert codex.told == [
        "end call_1 interrupted",
        "end msg_1 interrupted",
        "turn/completed",
        "notice runtimeDied",
    ]
    assert not codex.busy()
    assert codex.normalizer.ended(AT) == []


def test_a_reader_that_hears_of_thousands_of_threads_forgets_the_older_ones() -> None:
    tree = Tree()
    for number in range(3 * KNOWN_THREADS):
        tree.node(f"t{number}")
        assert len(tree.nodes) <= KNOWN_THREADS
    newest = f"t{3 * KNOWN_THREADS - 1}"
    assert newest in tree.nodes
    tree.drop(newest)
    assert newest not in tree.nodes
