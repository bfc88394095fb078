"""What a real codex does in a turn, as v2 items: live, and read back from history."""

import json
import struct
import sys
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio

from adapter.events.invariants import Invariants
from adapter.events.normalize import Normalizer
from adapter.processes.binary import Codex
from adapter.runtime.events import Emitted, ItemClosed, ItemDelta, RuntimeEvent
from adapter.runtime.threads import NewThread
from clients.cli.scripted_answers import Rule
from tests.support.codex import BUNDLED, CodexHome, codex_binaries, open_codex_home
from tests.support.foreign import ForeignCodex, open_foreign
from tests.support.runtimes import Running, open_codex_runtime, open_gate
from transport.protocol.events import (
    ApprovalRequested,
    DeltaChannel,
    Notice,
    ThreadStarted,
    TurnCompleted,
    TurnPlan,
)
from transport.protocol.items import (
    AgentMessage,
    Citation,
    Command,
    Compaction,
    Image,
    Item,
    ItemStatus,
    Plan,
    Review,
    Subagent,
    ToolCall,
    WebSearch,
)
from transport.protocol.turns import Turn, TurnStatus

NEWEST = "0.171.0"
HERE = codex_binaries()
VERSIONS = [version for version in (BUNDLED, NEWEST) if version in HERE]
KEY = "key-0123456789abcdef"
SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
MCP = f"""
[mcp_servers.lab]
command = {json.dumps(sys.executable)}
args = [{json.dumps(str(SERVER))}]
"""

pytestmark = pytest.mark.codex
each_version = pytest.mark.parametrize("version", VERSIONS)
KindT = TypeVar("KindT", bound=Item)


def png() -> bytes:
    """A picture of one red dot."""
    shape = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", shape), (b"IDAT", zlib.compress(b"\0\xff\0\0")), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data))
        + name
        + data
        + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )


def script(*steps: list[dict[str, Any]]) -> str:
    return "SCRIPT:" + json.dumps(steps)


def call(name: str, namespace: str | None = None, **args: Any) -> list[dict[str, Any]]:
    action: dict[str, Any] = {"call": name, "args": args}
    return [action if namespace is None else {**action, "namespace": namespace}]


DONE: list[dict[str, Any]] = [{"msg": "done"}]
CHILD = "child " + script([{"msg": "There are seven."}])


@dataclass
class Told:
    """One turn: what was told of it live, and how history has it."""

    thread_id: str
    events: list[RuntimeEvent]
    turn: Turn
    stored: Turn

    @property
    def items(self) -> list[Item]:
        """Every item of the thread itself, as it ended live."""
        return [
            event.item
            for event in self.events
            if isinstance(event, ItemClosed) and event.thread_id == self.thread_id
        ]

    def of(self, kind: type[KindT]) -> list[KindT]:
        return [item for item in self.items if isinstance(item, kind)]

    def data(self, kind: type[Any]) -> list[Any]:
        return [
            event.data
            for event in self.events
            if isinstance(event, Emitted) and isinstance(event.data, kind)
        ]

    def grew(self, channel: DeltaChannel) -> str:
        deltas = (e for e in self.events if isinstance(e, ItemDelta))
        return "".join(one.text for one in deltas if one.channel is channel)

    def check_history(self, *kinds: str) -> None:
        """History has the same items of these kinds, but for where they were seen."""
        live = [plain(item) for item in self.items if item.kind in kinds]
        assert live
        kept = [plain(item) for item in self.stored.items or () if item.kind in kinds]
        assert kept == live


def plain(item: Item) -> dict[str, Any]:
    leave = {"provenance", "startedAt", "completedAt"}
    return {key: value for key, value in item.wire().items() if key not in leave}


@asynccontextmanager
async def open_home(
    version: str, *rules: Rule, extra: str = "", features: tuple[str, ...] = ()
) -> AsyncGenerator[tuple[CodexHome, Running]]:
    async with open_codex_home(*rules, extra=extra, features=features) as home:
        codex = Codex(path=HERE[version], version=version)
        async with open_codex_runtime(codex, home.home) as run:
            yield home, run


async def told_of(
    version: str,
    text: str,
    *rules: Rule,
    extra: str = "",
    features: tuple[str, ...] = (),
    children: int = 0,
) -> Told:
    """Run one turn in a writer of ours; `children`: sub-agents whose end is awaited."""
    opened = open_home(version, *rules, extra=extra, features=features)
    async with opened as (home, run):
        async with run.writer() as writer:
            new = NewThread(cwd=str(home.workspace))
            loaded = await writer.start_thread(new, guard=open_gate)
            turn = await writer.start_turn([text], client_key=KEY, guard=open_gate)
            ended = await run.seen.turn_completed(turn.id)
            await run.seen.until(lambda: len(run.seen.data(TurnCompleted)) > children)
        stored = await newest_turn(run, loaded.thread.id)
        return Told(loaded.thread.id, run.seen.events, ended, stored)


async def newest_turn(run: Running, thread_id: str) -> Turn:
    page = await run.reader.list_turns(
        thread_id, cursor=None, limit=1, order="desc", items="full"
    )
    return page.turns[0]


async def told_by_another(
    version: str, method: str, params: dict[str, Any], *, extra: str = ""
) -> Told:
    """Let another program do it in a thread of its own; its codex tells our normalizer."""
    async with open_home(version, extra=extra) as (home, run):
        async with open_foreign(
            HERE[version], home.environ, cwd=home.workspace
        ) as other:
            thread_id = await other.start_thread(home.workspace, "hello")
            before = len(other.log)
            await other.request(method, {"threadId": thread_id, **params})
            await second_turn(other)
            described = await other.request("thread/read", {"threadId": thread_id})
            normalizer = Normalizer()
            normalizer.adopt(described["thread"], [])
            events = [
                event
                for message in other.log[before:]
                for event in normalizer.notification(
                    message["method"], message.get("params", {}), 1
                )
            ]
        assert not normalizer.misfits
        turn = next(
            e.data.turn
            for e in events
            if isinstance(e, Emitted) and isinstance(e.data, TurnCompleted)
        )
        return Told(thread_id, events, turn, await newest_turn(run, thread_id))


async def second_turn(other: ForeignCodex) -> None:
    turns = {
        message["params"]["turn"]["id"]
        for message in other.log
        if message["method"] == "turn/completed"
    }
    while len(turns) < 2:
        found = await other.next_of("turn/completed", known=turns)
        turns.add(found["turn"]["id"])


@each_version
async def test_tools_of_an_mcp_server(version: str) -> None:
    steps = (
        call("look", "mcp__lab", path="/w"),
        call("fail", "mcp__lab"),
        call("die", "mcp__lab"),
        DONE,
    )
    with trio.fail_after(240):
        told = await told_of(version, script(*steps), extra=MCP)
    looked, failed, died = told.of(ToolCall)
    assert (looked.server, looked.tool, looked.status) == ("lab", "look", "completed")
    assert looked.arguments == '{"path": "/w"}'
    assert looked.result == '{"did": "look", "with": {"path": "/w"}}'
    assert (failed.status, failed.result) == (ItemStatus.FAILED, "no such file")
    assert died.status is ItemStatus.FAILED
    assert died.error is not None
    assert "Transport closed" in died.error
    assert "backtrace" not in died.error
    told.check_history("toolCall")


@each_version
async def test_searches_of_the_web(version: str) -> None:
    page = "https://bread.example.org/rye"
    actions: list[dict[str, Any]] = [
        {"type": "search", "query": "rye bread"},
        {"type": "open_page", "url": page},
        {"type": "find_in_page", "url": page, "pattern": "crust"},
    ]
    searches = [
        {"item": {"type": "web_search_call", "status": "completed", "action": action}}
        for action in actions
    ]
    with trio.fail_after(240):
        told = await told_of(version, script([*searches, *DONE]))
    assert [(one.query, one.action, one.url) for one in told.of(WebSearch)] == [
        ("rye bread", "search", None),
        (page, "openPage", page),
        ("crust", "findInPage", page),
    ]
    told.check_history("webSearch")


@each_version
async def test_a_picture_that_the_model_looks_at(version: str) -> None:
    async with open_home(version) as (home, run):
        picture = home.workspace / "dot.png"
        picture.write_bytes(png())
        with trio.fail_after(240):
            async with run.writer() as writer:
                new = NewThread(cwd=str(home.workspace))
                loaded = await writer.start_thread(new, guard=open_gate)
                text = script(call("view_image", path=str(picture)), DONE)
                turn = await writer.start_turn([text], client_key=KEY, guard=open_gate)
                ended = await run.seen.turn_completed(turn.id)
            stored = await newest_turn(run, loaded.thread.id)
        told = Told(loaded.thread.id, run.seen.events, ended, stored)
        (seen,) = told.of(Image)
        assert (seen.origin, seen.path) == ("viewed", str(picture))
        told.check_history("image")


CITED = """\
The tide is at three.
<oai-mem-citation>
<citation_entries>
MEMORY.md:12-14|note=[tides of the bakery]
</citation_entries>
<rollout_ids>
</rollout_ids>
</oai-mem-citation>"""


@each_version
async def test_what_a_message_cites_is_told_beside_its_text(version: str) -> None:
    with trio.fail_after(240):
        told = await told_of(version, script([{"msg": CITED}]))
    (said,) = told.of(AgentMessage)
    assert said.text.strip() == "The tide is at three."
    assert told.grew(DeltaChannel.TEXT).strip() == "The tide is at three."
    assert said.citations == [
        Citation(
            path="MEMORY.md", note="tides of the bakery", line_start=12, line_end=14
        )
    ]
    told.check_history("agentMessage")


@each_version
async def test_a_list_of_steps(version: str) -> None:
    steps = [
        {"step": "look", "status": "completed"},
        {"step": "go", "status": "in_progress"},
    ]
    plan = call("update_plan", explanation="Small steps", plan=steps)
    extra = "[tools]\nupdate_plan = { enabled = true }\n"
    with trio.fail_after(240):
        told = await told_of(version, script(plan, DONE), extra=extra)
    (listed,) = told.data(TurnPlan)
    assert listed.turn_id == told.turn.id
    assert [(one.text, one.status) for one in listed.steps] == [
        ("look", "completed"),
        ("go", "inProgress"),
    ]


@each_version
async def test_a_sub_agent_of_the_first_kind(version: str) -> None:
    spawn = call("spawn_agent", "multi_agent_v1", message=CHILD)
    with trio.fail_after(240):
        told = await told_of(version, script(spawn, DONE), children=1)
    (agent,) = told.of(Subagent)
    assert (agent.action, agent.state) == ("spawn", "starting")
    assert agent.prompt == CHILD
    check_child(told, agent.thread_id)
    told.check_history("subagent")


@each_version
async def test_a_sub_agent_of_the_second_kind(version: str) -> None:
    task = {"message": "count", "task_name": "bee", "fork_turns": "none"}
    spawn = call("spawn_agent", "collaboration", **task)
    counts = Rule("<environment_context>", [[{"msg": "There are seven."}]])
    wait = call("wait_agent", "collaboration", timeout_ms=10_000)
    with trio.fail_after(240):
        told = await told_of(
            version,
            script(spawn, wait, DONE),
            counts,  # the child has no message of a user but what Codex tells it
            features=("multi_agent_v2",),
            children=1,
        )
    agents = {str(agent.action): agent for agent in told.of(Subagent)}
    assert set(agents) == {"spawn", "wait", "done"}
    assert (agents["spawn"].name, agents["spawn"].state) == ("/root/bee", "running")
    assert agents["done"].thread_id == agents["spawn"].thread_id
    assert agents["done"].state == "completed"
    check_child(told, agents["spawn"].thread_id)
    told.check_history("subagent")


def check_child(told: Told, child: str | None) -> None:
    """The child's own events come under its thread, below the root."""
    events = [event for event in told.events if event.thread_id == child]
    assert {event.root_thread_id for event in events} == {told.thread_id}
    first = events[0]
    assert isinstance(first, Emitted)
    assert isinstance(first.data, ThreadStarted)
    assert first.data.thread.parent_id == told.thread_id
    said = [event.item for event in events if isinstance(event, ItemClosed)]
    texts = [item.text for item in said if isinstance(item, AgentMessage)]
    assert "There are seven." in texts


@each_version
async def test_a_plan_of_plan_mode(version: str) -> None:
    said = "Intro\n<proposed_plan>\n# Plan\n- step a\n</proposed_plan>\nafter"
    settings = {"model": "gpt-5.5", "reasoning_effort": None}
    params = {
        "input": [{"type": "text", "text": script([{"msg": said}])}],
        "collaborationMode": {
            "mode": "plan",
            "settings": {**settings, "developer_instructions": None},
        },
    }
    with trio.fail_after(240):
        told = await told_by_another(version, "turn/start", params)
    (plan,) = told.of(Plan)
    assert plan.text == "# Plan\n- step a\n"
    assert told.grew(DeltaChannel.PLAN) == plan.text
    assert [one.text for one in told.of(AgentMessage)] == ["Intro\nafter"]
    told.check_history("plan", "agentMessage")


@each_version
async def test_a_review(version: str) -> None:
    target = {"type": "custom", "instructions": "look at it"}
    with trio.fail_after(240):
        told = await told_by_another(version, "review/start", {"target": target})
    begin, end = told.of(Review)
    assert (begin.phase, begin.text) == ("entered", "look at it")
    assert (end.phase, end.text) == ("exited", "You said: look at it")
    assert {item.turn_id for item in told.items} == {told.turn.id}
    told.check_history("review")


@each_version
async def test_a_compaction(version: str) -> None:
    with trio.fail_after(240):
        told = await told_by_another(version, "thread/compact/start", {})
    assert len(told.of(Compaction)) == 1
    told.check_history("compaction")


@each_version
@pytest.mark.parametrize(
    ("verdict", "code", "ran"),
    [("allow", "decidedLocally", True), ("deny", "hookStopped", False)],
)
async def test_a_hook_that_decides_in_place_of_the_person_is_told(
    version: str, verdict: str, code: str, ran: bool
) -> None:
    async with open_home(version) as (home, run):
        with trio.fail_after(240):
            await trust_hook(version, home, verdict)
            asks = {"sandbox_permissions": "require_escalated", "justification": "j"}
            text = script(call("exec_command", cmd="echo ran", **asks), DONE)
            async with run.writer() as writer:
                new = NewThread(cwd=str(home.workspace))
                await writer.start_thread(new, guard=open_gate)
                turn = await writer.start_turn([text], client_key=KEY, guard=open_gate)
                await run.seen.turn_completed(turn.id)
        assert code in run.seen.notices()
        assert not run.seen.data(ApprovalRequested)
        commands = [
            event.item
            for event in run.seen.events
            if isinstance(event, ItemClosed) and isinstance(event.item, Command)
        ]
        assert any(item.output == "ran\n" for item in commands) is ran


@each_version
@pytest.mark.parametrize(
    ("outcome", "ran"), [("allow", True), ("deny", False)], ids=["allow", "deny"]
)
async def test_a_review_of_codex_s_own_that_decides_is_told(
    version: str, outcome: str, *, ran: bool
) -> None:
    verdict = {
        "risk_level": "low" if ran else "high",
        "user_authorization": "high" if ran else "low",
        "outcome": outcome,
        "rationale": "seen by a second model",
    }
    asks = {"sandbox_permissions": "require_escalated", "justification": "j"}
    rules = (
        Rule("APPROVAL REQUEST", [[{"msg": json.dumps(verdict)}]]),
        Rule("light the oven", [call("exec_command", cmd="echo ran", **asks), DONE]),
    )
    extra = 'approvals_reviewer = "auto_review"\n'
    with trio.fail_after(240):
        told = await told_of(version, "light the oven", *rules, extra=extra)
    assert not told.data(ApprovalRequested)
    decided = [one.message for one in told.data(Notice) if one.code == "decidedLocally"]
    assert len(decided) == 1
    assert "echo ran" in decided[0]
    assert ("approved" in decided[0]) is ran
    assert any(item.output == "ran\n" for item in told.of(Command)) is ran


async def trust_hook(version: str, home: CodexHome, verdict: str) -> None:
    """Give the home a hook that answers for the person, and the owner's trust in it."""
    said = {"behavior": verdict, **({"message": "no"} if verdict == "deny" else {})}
    output = {"hookEventName": "PermissionRequest", "decision": said}
    program = home.home.parent / "hook.py"
    program.write_text(f"print({json.dumps({'hookSpecificOutput': output})!r})")
    command = json.dumps(f"{sys.executable} {program}")
    config = home.home / "config.toml"
    hook = f"[[hooks.PermissionRequest.hooks]]\ntype = 'command'\ncommand = {command}\n"
    text = f"{config.read_text()}\n[[hooks.PermissionRequest]]\n{hook}"
    config.write_text(text)
    async with open_foreign(HERE[version], home.environ, cwd=home.workspace) as owner:
        found = await owner.request("hooks/list", {"cwds": [str(home.workspace)]})
    (listed,) = found["data"][0]["hooks"]
    state = f"[hooks.state.{json.dumps(listed['key'])}]\n"
    config.write_text(f"{text}\n{state}trusted_hash = '{listed['currentHash']}'\n")


@each_version
@pytest.mark.parametrize(
    ("answer", "code", "status"),
    [
        ({"http": 401}, "httpConnectionFailed", 401),
        ({"http": 429}, "responseTooManyFailedAttempts", 429),
        (
            {"failed": {"code": "context_length_exceeded", "message": "too long"}},
            "contextWindowExceeded",
            None,
        ),
        (
            {"failed": {"code": "insufficient_quota", "message": "no money"}},
            "usageLimitExceeded",
            None,
        ),
    ],
    ids=["401", "429", "context", "quota"],
)
async def test_a_failure_keeps_codex_s_code(
    version: str, answer: dict[str, Any], code: str, status: int | None
) -> None:
    with trio.fail_after(240):
        told = await told_of(version, script([answer]))
    assert told.turn.status is TurnStatus.FAILED
    for turn in (told.turn, told.stored):
        assert turn.error is not None
        assert (turn.error.code, turn.error.http_status) == (code, status)


@each_version
async def test_what_a_lost_model_call_began_ends_before_the_next_one_speaks(
    version: str,
) -> None:
    lost: list[dict[str, Any]] = [{"partial": "one two"}, {"disconnect": True}]
    async with open_home(version) as (home, run):
        config = home.home / "config.toml"
        text = config.read_text()
        config.write_text(
            text.replace("stream_max_retries = 0", "stream_max_retries = 2")
        )
        with trio.fail_after(240):
            async with run.writer() as writer:
                new = NewThread(cwd=str(home.workspace))
                await writer.start_thread(new, guard=open_gate)
                turn = await writer.start_turn(
                    [script(lost, [{"msg": "all of it"}])],
                    client_key=KEY,
                    guard=open_gate,
                )
                ended = await run.seen.turn_completed(turn.id)
    assert ended.status is TurnStatus.COMPLETED
    assert "modelRetry" in run.seen.notices()
    rules = Invariants()
    assert [one for event in run.seen.events for one in rules.see(event)] == []
    said = [
        (event.item.status, event.item.text.strip())
        for event in run.seen.events
        if isinstance(event, ItemClosed) and isinstance(event.item, AgentMessage)
    ]
    assert said == [
        (ItemStatus.INTERRUPTED, "one two"),
        (ItemStatus.COMPLETED, "all of it"),
    ]


@each_version
async def test_a_turn_says_how_full_the_context_is(version: str) -> None:
    with trio.fail_after(240):
        told = await told_of(version, "hello")
    usage = told.turn.usage
    assert usage is not None
    assert usage.context_used == 15  # what the scripted model says of its one call
    assert usage.context_window is not None
    assert usage.context_window > 100_000
