"""Tools, searches, pictures, plans, agents, reviews: what a person is told of each."""

import json
from typing import Any

import pytest

from adapter.limits import ITEM_BYTES, TEXT_BYTES
from adapter.shapes.item_frame import Frame
from adapter.shapes.items import item_from
from adapter.shapes.texts import packed_bound
from generated import codex
from tests.support.replay import read_trace, said
from transport.codec import pack
from transport.protocol.items import (
    Compaction,
    Image,
    Item,
    ItemStatus,
    OtherItem,
    Plan,
    Review,
    Subagent,
    ToolCall,
    WebSearch,
)

FRAME = Frame(turn_id="t1", provenance="codex:item/completed", completed_at=9)


def mapped(raw: dict[str, Any], frame: Frame = FRAME) -> Item:
    item = item_from({"id": "x", **raw}, frame)
    assert len(pack(item.wire())) <= packed_bound(item.wire()) <= ITEM_BYTES
    return item


def mcp(**changes: Any) -> ToolCall:
    raw: dict[str, Any] = {
        "type": "mcpToolCall",
        "server": "lab",
        "tool": "look",
        "arguments": {},
    }
    item = mapped({**raw, "status": "completed", **changes})
    assert isinstance(item, ToolCall)
    return item


def test_every_type_of_the_pinned_codex_has_a_kind_or_a_line_of_its_own() -> None:
    types = {word.strip() for word in str(codex.ThreadItem).split("|")}
    lines = {"ThreadItemHookPrompt", "ThreadItemSleep"}
    assert len(types) == 19
    for name in types - lines:
        word = name.removeprefix("ThreadItem")
        raw = {"type": word[0].lower() + word[1:], "id": "x"}
        try:
            item = item_from(raw, FRAME)
        except KeyError:
            continue  # a kind of its own wants its fields
        assert not isinstance(item, OtherItem), name


def test_a_tool_call_says_what_went_in_and_what_came_out() -> None:
    item = mcp(
        arguments={"path": "/w", "über": 3},
        result={
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
        },
        durationMs=12,
    )
    assert item.wire() == {
        "kind": "toolCall",
        "id": "x",
        "turnId": "t1",
        "status": "completed",
        "completedAt": 9,
        "provenance": "codex:item/completed",
        "server": "lab",
        "tool": "look",
        "arguments": '{"path": "/w", "über": 3}',
        "result": "a\nb",
        "durationMs": 12,
    }


def test_what_a_tool_gives_beside_text_is_named_and_not_sent() -> None:
    content = [
        {"type": "image", "data": "iVBOR" * 1000, "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///w/a.md", "name": "a"},
        {"type": "resource", "resource": {"uri": "x:", "text": "inside"}},
        {"type": "audio", "data": "UklG"},
    ]
    item = mcp(result={"content": content})
    assert (
        item.result
        == "[image image/png]\n[resource_link file:///w/a.md]\ninside\n[audio]"
    )


def test_a_result_without_text_is_shown_by_its_structure() -> None:
    item = mcp(result={"content": [], "structuredContent": {"n": 1}})
    assert item.result == '{"n": 1}'


def test_a_tool_may_fail_with_a_result() -> None:
    said = {"content": [{"type": "text", "text": "no such file"}]}
    item = mcp(status="failed", result=said)
    assert (item.status, item.result, item.error) == (
        ItemStatus.FAILED,
        "no such file",
        None,
    )


def test_a_dead_server_s_error_comes_without_the_frames_of_a_backtrace() -> None:
    raw = next(
        p["item"]
        for p in said(read_trace("mcp-crash"), "item/completed")
        if p["item"]["type"] == "mcpToolCall"
    )
    assert "Stack backtrace" in raw["error"]["message"]
    item = item_from(raw, FRAME)
    assert isinstance(item, ToolCall)
    assert item.error is not None
    assert item.error.endswith("Transport closed")
    assert item.status is ItemStatus.FAILED


def test_a_client_s_own_tool_has_no_server() -> None:
    raw = {
        "type": "dynamicToolCall",
        "namespace": None,
        "tool": "lookup",
        "arguments": {"k": "v"},
        "status": "failed",
        "contentItems": [{"type": "inputText", "text": "no"}, {"type": "inputImage"}],
        "success": False,
    }
    item = mapped(raw)
    assert isinstance(item, ToolCall)
    assert (item.server, item.tool, item.result) == (None, "lookup", "no\n[inputImage]")
    assert item.status is ItemStatus.FAILED


@pytest.mark.parametrize("output", ["plain", [{"type": "input_text", "text": "plain"}]])
def test_a_stored_answer_of_a_tool_is_a_tool_call_without_its_question(
    output: object,
) -> None:
    raw = {"type": "functionCallOutput", "name": "fetch", "output": output}
    item = mapped(raw)
    assert isinstance(item, ToolCall)
    assert (item.tool, item.arguments, item.result) == ("fetch", None, "plain")


def test_long_arguments_and_results_are_cut_and_named() -> None:
    big = {"content": [{"type": "text", "text": "r" * 500_000}]}
    item = mcp(arguments={"a": "x" * 300_000}, result=big)
    assert item.truncated == ["arguments", "result"]
    assert item.sizes == {"arguments": 300_009, "result": 500_000}
    assert len((item.result or "").encode()) <= TEXT_BYTES


@pytest.mark.parametrize(
    "value", [None, 3, "word", [1, [2]], 2**80, {"\ud800": "\ud800"}]
)
def test_arguments_may_be_anything(value: Any) -> None:
    shown = mcp(arguments=value).arguments
    assert shown is not None
    pack({"arguments": shown})


@pytest.mark.parametrize(
    ("query", "action", "shown"),
    [
        ("trio", {"type": "search", "query": "trio"}, ("trio", "search", None)),
        ("", {"type": "search", "queries": ["a", "b"]}, ("a · b", "search", None)),
        ("", {"type": "openPage", "url": "https://x"}, ("", "openPage", "https://x")),
        (
            "",
            {"type": "findInPage", "url": "https://x", "pattern": "p"},
            ("p", "findInPage", "https://x"),
        ),
        (
            "'p' in https://x",
            {"type": "findInPage", "url": "https://x", "pattern": "p"},
            ("p", "findInPage", "https://x"),
        ),
        ("q", None, ("q", None, None)),
    ],
)
def test_a_web_search_says_what_was_looked_for_and_where(
    query: str, action: object, shown: tuple[str, str | None, str | None]
) -> None:
    item = mapped({"type": "webSearch", "query": query, "action": action})
    assert isinstance(item, WebSearch)
    assert (item.query, item.action, item.url) == shown


def test_a_picture_says_where_it_lies_and_never_its_bytes() -> None:
    viewed = mapped({"type": "imageView", "path": "/w/a.png"})
    assert isinstance(viewed, Image)
    assert (viewed.origin, viewed.path) == ("viewed", "/w/a.png")
    made = mapped(
        {
            "type": "imageGeneration",
            "status": "generating",
            "result": "iVBOR" * 10_000,
            "revisedPrompt": "a boat",
            "savedPath": "/w/boat.png",
        }
    )
    assert isinstance(made, Image)
    assert made.status is ItemStatus.COMPLETED
    assert (made.origin, made.path, made.prompt) == ("made", "/w/boat.png", "a boat")
    assert "iVBOR" not in json.dumps(made.wire())


def test_a_picture_that_was_not_made_says_why() -> None:
    failure = {"type": "usageLimitExceeded", "limitId": "images"}
    made = mapped({"type": "imageGeneration", "status": "x", "failure": failure})
    assert isinstance(made, Image)
    assert (made.status, made.error) == (ItemStatus.FAILED, "usageLimitExceeded")


def test_a_plan_is_its_whole_text() -> None:
    item = mapped({"type": "plan", "text": "# Plan\n- a\n"})
    assert isinstance(item, Plan)
    assert item.text == "# Plan\n- a\n"


def test_a_review_begins_and_ends() -> None:
    begin = mapped({"type": "enteredReviewMode", "review": "current changes"})
    end = mapped({"type": "exitedReviewMode", "review": "two findings"})
    assert isinstance(begin, Review)
    assert isinstance(end, Review)
    assert (begin.phase, begin.text) == ("entered", "current changes")
    assert (end.phase, end.text) == ("exited", "two findings")


def test_a_compaction_has_nothing_to_say_but_that_it_was() -> None:
    assert isinstance(mapped({"type": "contextCompaction"}), Compaction)


@pytest.mark.parametrize(
    ("kind", "action", "state"),
    [
        ("started", "spawn", "running"),
        ("interacted", "message", "running"),
        ("interrupted", "interrupt", "interrupted"),
        ("completed", "done", "completed"),
        ("teleported", "other", "unknown"),
    ],
)
def test_an_agent_s_activity_names_its_thread(
    kind: str, action: str, state: str
) -> None:
    raw = {"type": "subAgentActivity", "agentThreadId": "c1", "agentPath": "/root/bee"}
    item = mapped({**raw, "kind": kind})
    assert isinstance(item, Subagent)
    assert (item.thread_id, item.name) == ("c1", "/root/bee")
    assert (item.action, item.state) == (action, state)


def agents(**changes: Any) -> Subagent:
    raw: dict[str, Any] = {
        "type": "collabAgentToolCall",
        "tool": "spawnAgent",
        "status": "completed",
        "senderThreadId": "r",
        "receiverThreadIds": [],
        "agentsStates": {},
        **changes,
    }
    frame = FRAME
    if raw["status"] == "inProgress":
        frame = Frame(turn_id="t1", provenance="p", status=ItemStatus.IN_PROGRESS)
    item = mapped(raw, frame)
    assert isinstance(item, Subagent)
    return item


def test_an_agent_that_is_being_spawned_has_no_thread_yet() -> None:
    item = agents(status="inProgress", prompt="count the files")
    assert (item.thread_id, item.state, item.prompt) == (
        None,
        "starting",
        "count the files",
    )
    assert agents(status="failed").state == "failed"


def test_a_spawned_agent_is_named_by_its_thread() -> None:
    states = {"c1": {"status": "pendingInit", "message": None}}
    item = agents(receiverThreadIds=["c1"], agentsStates=states)
    assert (item.thread_id, item.state, item.agents) == ("c1", "starting", None)


def test_a_wait_for_several_lists_them_and_says_that_one_still_runs() -> None:
    states = {
        "c1": {"status": "completed", "message": "seven files"},
        "c2": {"status": "running", "message": None},
    }
    item = agents(tool="wait", receiverThreadIds=["c1", "c2"], agentsStates=states)
    assert (item.action, item.state, item.thread_id) == ("wait", "running", None)
    assert item.agents is not None
    assert [one.wire() for one in item.agents] == [
        {"threadId": "c1", "state": "completed", "message": "seven files"},
        {"threadId": "c2", "state": "running"},
    ]


def test_a_wait_that_names_nobody_says_nothing_of_a_state() -> None:
    """Codex's newer agents are waited for like that."""
    item = agents(tool="wait", status="inProgress")
    assert (item.action, item.state, item.thread_id) == ("wait", "unknown", None)


def test_an_item_about_a_thousand_agents_still_fits() -> None:
    states = {
        f"c{n}": {"status": "errored", "message": "m" * 5_000} for n in range(1000)
    }
    item = agents(tool="wait", agentsStates=states)
    assert item.truncated == ["agents"]
    assert item.state == "failed"
    assert len(item.agents or ()) == 100
