"""All that a real codex asks a person, through our runtime: shown, answered, and done."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trio

from adapter.limits import APPROVAL_MS
from adapter.runtime.acts import NOTHING_FILLED, Filled
from adapter.runtime.threads import NewThread
from adapter.runtime.writer import ThreadWriter
from tests.support.codex import (
    CodexHome,
    each_version,
)
from tests.support.mcp_server import CONFIG, URL
from tests.support.runtimes import Seen, open_gate, open_stage
from tests.support.scripts import DONE, script
from transport.errors import InvalidParams
from transport.protocol.approvals import (
    Approval,
    ApprovalKind,
    ApprovalState,
    ElicitationMode,
)
from transport.protocol.events import TurnCompleted
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import Turn, TurnStatus

FEATURES = ("request_permissions_tool", "default_mode_request_user_input")

pytestmark = pytest.mark.codex


@dataclass
class Desk:
    """A thread in a writer of ours, and a person who answers what it asks."""

    home: CodexHome
    seen: Seen
    writer: ThreadWriter
    thread_id: str
    _turns: int = 0
    _told: set[str] = field(default_factory=set[str])

    async def begin(self, *steps: list[dict[str, Any]]) -> Turn:
        """Start a turn in which the model plays these steps, and then says that it is done."""
        self._turns += 1
        text = script(*steps, DONE)
        key = f"key-{self._turns:028d}"
        return await self.writer.start_turn([text], client_key=key, guard=open_gate)

    async def answer(
        self, asked: Approval, choice: str, filled: Filled = NOTHING_FILLED
    ) -> Approval:
        return await self.writer.answer(
            asked.id,
            digest=asked.digest,
            choice=choice,
            decided_by="phone",
            filled=filled,
        )

    async def play(
        self,
        *steps: list[dict[str, Any]],
        choice: str,
        filled: Filled = NOTHING_FILLED,
    ) -> Approval:
        """Run a turn whose one question is answered; return the question."""
        turn = await self.begin(*steps)
        asked = await self.seen.approval()
        done = await self.answer(asked, choice, filled)
        assert (done.state, done.choice) == (ApprovalState.ANSWERED, choice)
        ended = await self.seen.turn_completed(turn.id)
        assert ended.status is TurnStatus.COMPLETED
        return asked

    def heard(self) -> list[str]:
        """Return what the tools of the newest turn told the model."""
        found: list[dict[str, Any]] = self.home.model.requests[-1].body["input"]
        last = max(i for i, item in enumerate(found) if item.get("role") == "user")
        said = [item["output"] for item in found[last:] if "output" in item]
        return [one if isinstance(one, str) else json.dumps(one) for one in said]


@asynccontextmanager
async def open_desk(
    version: str, *, approval_ms: int = APPROVAL_MS, extra: str = CONFIG
) -> AsyncGenerator[Desk]:
    opened = open_stage(
        version, extra=extra, features=FEATURES, approval_ms=approval_ms
    )
    async with opened as stage, stage.run.writer() as writer:
        home, run = stage.home, stage.run
        new = NewThread(cwd=str(home.workspace))
        loaded = await writer.start_thread(new, guard=open_gate)
        yield Desk(home=home, seen=run.seen, writer=writer, thread_id=loaded.thread.id)


def tool(name: str, **args: Any) -> dict[str, Any]:
    return {"call": name, "namespace": "mcp__lab", "args": args}


def permissions(folder: Path) -> dict[str, Any]:
    asked = {"network": {"enabled": True}, "file_system": {"write": [str(folder)]}}
    args = {"reason": "the test wants it", "permissions": asked}
    return {"call": "request_permissions", "args": args}


def command(cmd: str) -> dict[str, Any]:
    return {"call": "exec_command", "args": {"cmd": cmd}}


def question(question_id: str = "q1") -> dict[str, Any]:
    options = [
        {"label": "Red", "description": "warm"},
        {"label": "Blue", "description": "cold"},
    ]
    return {
        "id": question_id,
        "header": "Colour",
        "question": "Which colour?",
        "options": options,
    }


def ask_person(*questions: dict[str, Any]) -> dict[str, Any]:
    return {"call": "request_user_input", "args": {"questions": list(questions)}}


@each_version
async def test_permissions_are_granted_for_as_long_as_a_person_said(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_desk(version) as desk:
            outside = desk.home.workspace.parent / "outside"
            outside.mkdir()
            file = outside / "file"

            async def try_it(choice: str | None) -> bool:
                file.unlink(missing_ok=True)
                touch = [command(f"touch {file}")]
                if choice is None:
                    turn = await desk.begin(touch)
                    await desk.seen.turn_completed(turn.id)
                    return file.exists()
                asked = await desk.play([permissions(outside)], touch, choice=choice)
                assert asked.kind is ApprovalKind.PERMISSIONS
                assert asked.detail.reason == "the test wants it"
                assert asked.detail.permissions is not None
                rows = {(str(p.access), p.path) for p in asked.detail.permissions}
                assert rows == {("network", None), ("write", str(outside))}
                return file.exists()

            assert not await try_it("deny")
            assert await try_it("allow")
            assert not await try_it(None)  # it was for that turn
            assert await try_it("allowForSession")
            assert await try_it(None)


@each_version
async def test_a_question_of_the_model_gets_the_persons_answer(version: str) -> None:
    with trio.fail_after(240):
        async with open_desk(version) as desk:
            turn = await desk.begin([ask_person(question(), question("q2"))])
            asked = await desk.seen.approval()
            assert asked.kind is ApprovalKind.QUESTION
            assert desk.writer.status is ThreadStatus.WAITING_ON_INPUT
            assert asked.detail.questions is not None
            assert [one.id for one in asked.detail.questions] == ["q1", "q2"]
            assert [one.label for one in asked.detail.questions[0].options] == [
                "Red",
                "Blue",
            ]
            with pytest.raises(InvalidParams):
                await desk.answer(asked, "answer", Filled(answers={"q3": ["Red"]}))
            filled = Filled(answers={"q1": ["Red"], "q2": ["neither"]})
            await desk.answer(asked, "answer", filled)
            await desk.seen.turn_completed(turn.id)
            (told,) = desk.heard()
            assert json.loads(told) == {
                "answers": {
                    "q1": {"answers": ["Red"]},
                    "q2": {"answers": ["neither"]},
                }
            }
            await desk.play([ask_person(question())], choice="deny")
            assert [json.loads(one) for one in desk.heard()] == [{"answers": {}}]


@each_version
async def test_a_form_of_an_mcp_server_gets_what_fits_it(version: str) -> None:
    with trio.fail_after(240):
        async with open_desk(version) as desk:
            turn = await desk.begin([tool("ask")])
            asked = await desk.seen.approval()
            assert asked.kind is ApprovalKind.ELICITATION
            assert asked.detail.mode is ElicitationMode.FORM
            assert (asked.detail.server, asked.detail.message) == (
                "lab",
                "What colour?",
            )
            assert asked.detail.form is not None
            assert list(asked.detail.form["properties"]) == ["colour", "ok"]
            with pytest.raises(InvalidParams):
                await desk.answer(asked, "answer", Filled(content={"ok": True}))
            assert [one.id for one in desk.writer.approvals()] == [asked.id]
            content = {"colour": "red", "ok": True}
            await desk.answer(asked, "answer", Filled(content=content))
            await desk.seen.turn_completed(turn.id)
            assert '\\"colour\\": \\"red\\"' in desk.heard()[0].replace("\\\\", "\\")
            for choice, said in (("deny", "decline"), ("cancel", "cancel")):
                await desk.play([tool("ask")], choice=choice)
                assert said in desk.heard()[0]


@each_version
async def test_a_page_of_an_mcp_server_is_shown_whole_and_opened_by_nobody_else(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_desk(version) as desk:
            asked = await desk.play([tool("visit")], choice="allow")
            assert asked.detail.mode is ElicitationMode.URL
            assert asked.detail.url == URL
            assert asked.detail.allows == ["the page is at pay.example.org"]
            assert "accept" in desk.heard()[0]
            odd = tool("visit", url="file:///etc/passwd")
            asked = await desk.play([odd], choice="deny")
            assert [choice.id for choice in asked.choices] == ["deny", "cancel"]
            assert "decline" in desk.heard()[0]


@each_version
async def test_a_form_that_asks_for_a_secret_can_only_be_refused(version: str) -> None:
    schema = {
        "type": "object",
        "properties": {"password": {"type": "string"}},
        "required": ["password"],
    }
    with trio.fail_after(240):
        async with open_desk(version) as desk:
            asked = await desk.play([tool("ask", schema=schema)], choice="deny")
            assert [choice.id for choice in asked.choices] == ["deny", "cancel"]
            assert "decline" in desk.heard()[0]


@each_version
async def test_a_tool_of_an_mcp_server_runs_only_after_a_yes(version: str) -> None:
    with trio.fail_after(240):
        async with open_desk(version) as desk:
            asked = await desk.play([tool("danger", path="/x")], choice="deny")
            assert asked.kind is ApprovalKind.TOOL_CALL
            assert (asked.detail.server, asked.detail.tool) == ("lab", "danger")
            assert json.loads(asked.detail.arguments or "") == {"path": "/x"}
            assert "did" not in desk.heard()[0]
            await desk.play([tool("danger", path="/x")], choice="allow")
            assert "did" in desk.heard()[0]
            again = await desk.play(
                [tool("danger", path="/x")], choice="allowForSession"
            )
            assert again.id != asked.id  # a single yes was for once
            turn = await desk.begin([tool("danger", path="/other")])
            await desk.seen.turn_completed(turn.id)  # nobody was asked
            assert "/other" in desk.heard()[0]
            assert len(desk.seen.resolved()) == 3
            config = (desk.home.home / "config.toml").read_text()
            assert "approve" not in config.replace("approval_policy", "")


@each_version
async def test_nobody_answering_in_time_is_a_no_to_every_kind(version: str) -> None:
    with trio.fail_after(240):
        async with open_desk(version, approval_ms=200) as desk:
            outside = desk.home.workspace.parent / "outside"
            outside.mkdir()
            calls = [
                (permissions(outside), '"network":null'),
                (ask_person(question()), '"answers":{}'),
                (tool("ask"), "decline"),
                (tool("visit"), "decline"),
                (tool("danger"), "rejected"),
            ]
            for call, said in calls:
                turn = await desk.begin([call])
                ended = await desk.seen.turn_completed(turn.id)
                assert ended.status is TurnStatus.COMPLETED
                assert said in desk.heard()[0]
            ends = [one.state for one in desk.seen.resolved()]
            assert ends == [ApprovalState.EXPIRED] * len(calls)


@each_version
async def test_an_interrupt_withdraws_every_kind(version: str) -> None:
    with trio.fail_after(240):
        async with open_desk(version) as desk:
            outside = desk.home.workspace.parent / "outside"
            outside.mkdir()
            calls = [
                permissions(outside),
                ask_person(question()),
                tool("ask"),
                tool("danger"),
            ]
            for call in calls:
                turn = await desk.begin([call])
                await desk.seen.approval()
                ended = await desk.writer.interrupt(turn.id)
                assert ended.status is TurnStatus.INTERRUPTED
                assert desk.writer.approvals() == []
            ends = [(one.state, one.sent) for one in desk.seen.resolved()]
            assert ends == [(ApprovalState.WITHDRAWN, False)] * len(calls)


@each_version
async def test_a_form_that_outlasts_its_tools_time_still_gets_its_answer(
    version: str,
) -> None:
    """Codex stops a tool's clock while its server waits for a person."""
    with trio.fail_after(240):
        async with open_desk(version, extra=f"{CONFIG}tool_timeout_sec = 1\n") as desk:
            turn = await desk.begin([tool("ask")])
            asked = await desk.seen.approval()
            await trio.sleep(2)  # longer than the tool's time, and nothing to wait for
            assert [one.id for one in desk.writer.approvals()] == [asked.id]
            await desk.answer(asked, "answer", Filled(content={"colour": "blue"}))
            await desk.seen.turn_completed(turn.id)
            assert "blue" in desk.heard()[0]


@each_version
async def test_a_sub_agents_question_comes_under_its_root_and_is_answered_there(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_desk(version) as desk:
            file = desk.home.workspace / "child"
            args = {
                "cmd": f"touch {file}",
                "sandbox_permissions": "require_escalated",
                "justification": "the child wants it",
            }
            steps = [[{"call": "exec_command", "args": args}], [tool("danger")]]
            child = "child task " + script(*steps, [{"msg": "did it"}])
            spawn = {
                "call": "spawn_agent",
                "namespace": "multi_agent_v1",
                "args": {"message": child},
            }
            await desk.begin([spawn])
            asked = await desk.seen.approval()
            assert asked.kind is ApprovalKind.COMMAND
            assert asked.thread_id != desk.thread_id
            assert asked.root_thread_id == desk.thread_id
            assert f"touch {file}" in str(asked.detail.command)
            assert asked.detail.reason == "the child wants it"
            assert not file.exists()
            await desk.answer(asked, "allow")
            second = await desk.seen.approval()
            assert second.kind is ApprovalKind.TOOL_CALL
            assert second.root_thread_id == desk.thread_id
            await desk.answer(second, "deny")

            def child_ended() -> bool:
                turns = [one.turn for one in desk.seen.data(TurnCompleted)]
                return any(turn.thread_id == asked.thread_id for turn in turns)

            await desk.seen.until(child_ended)
            assert file.exists()
