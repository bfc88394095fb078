"""What a real codex does in a turn, as v2 items: live, and read back from history."""

from typing import Any

import pytest
import trio

from tests.support.codex import each_version
from tests.support.mcp_server import CONFIG
from tests.support.pictures import png
from tests.support.real_turns import told_by_another, told_in, told_of
from tests.support.runtimes import open_stage
from tests.support.scripts import DONE, call, script
from transport.protocol.events import (
    DeltaChannel,
    TurnPlan,
)
from transport.protocol.items import (
    AgentMessage,
    Citation,
    Compaction,
    Image,
    ItemStatus,
    Plan,
    Review,
    ToolCall,
    WebSearch,
)

pytestmark = pytest.mark.codex


@each_version
async def test_tools_of_an_mcp_server(version: str) -> None:
    steps = (
        call("look", "mcp__lab", path="/w"),
        call("fail", "mcp__lab"),
        call("die", "mcp__lab"),
        DONE,
    )
    with trio.fail_after(240):
        told = await told_of(version, script(*steps), extra=CONFIG)
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
    async with open_stage(version) as stage:
        picture = stage.home.workspace / "dot.png"
        picture.write_bytes(png())
        with trio.fail_after(240):
            text = script(call("view_image", path=str(picture)), DONE)
            told = await told_in(stage, text)
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
async def test_a_turn_says_how_full_the_context_is(version: str) -> None:
    with trio.fail_after(240):
        told = await told_of(version, "hello")
    usage = told.turn.usage
    assert usage is not None
    assert usage.context_used == 15  # what the scripted model says of its one call
    assert usage.context_window is not None
    assert usage.context_window > 100_000
