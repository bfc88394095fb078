"""What a person is shown, and that a yes is offered only for what can be shown whole."""

from typing import Any

import pytest

from adapter.approvals.act_questions import about_change, about_command
from adapter.approvals.questions import Question
from adapter.approvals.shown import show
from adapter.limits import APPROVAL_BYTES
from adapter.runtime.acts import NOTHING_FILLED
from adapter.shapes.item_frame import Frame
from adapter.shapes.items import item_from
from adapter.shapes.shapes import MISFITS
from tests.support import codex_says as says
from transport.codec import pack
from transport.protocol.approvals import Approval, ChoiceEffect
from transport.protocol.items import Item, ItemStatus

FRAME = Frame(
    turn_id="t1", provenance="codex:item/started", status=ItemStatus.IN_PROGRESS
)
REFUSALS = ["deny", "cancel"]


def command(**changes: Any) -> Question:
    return about_command(says.command_approval(**changes), item=None)


def change(item: Item | None, **changes: Any) -> Question:
    raw = says.change_approval(**changes)
    return about_change(raw, item)


def patch(*files: dict[str, Any]) -> Item:
    return item_from(says.change(changes=list(files)), FRAME)


def told(question: Question) -> dict[str, Any]:
    """Return what Codex is told by each choice that takes nothing with it."""
    return {
        name: way.reply(NOTHING_FILLED)
        for name, way in question.choices.items()
        if way.effect is not ChoiceEffect.ANSWER
    }


def shown(question: Question) -> tuple[Approval, list[str]]:
    approval, asked = show("apr_1", question, says.THREAD, says.AT, says.AT + 1)
    assert len(pack(approval.wire())) <= APPROVAL_BYTES
    assert [choice.id for choice in approval.choices] == list(asked.choices)
    return approval, list(asked.choices)


def test_a_command_is_shown_with_folder_and_reason() -> None:
    question = command()
    assert question.title == "Run /bin/bash -lc 'make test'"
    assert question.detail.command == "/bin/bash -lc 'make test'"
    assert question.detail.cwd == "/home/user/project"
    assert question.detail.reason == "it is outside the sandbox"
    assert question.detail.allows == []
    assert told(question) == {
        "allow": {"decision": "accept"},
        "deny": {"decision": "decline"},
        "cancel": {"decision": "cancel"},
    }


def test_nothing_that_outlives_the_thread_is_ever_offered() -> None:
    amendments: list[Any] = [
        {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["rm"]}},
        {"applyNetworkPolicyAmendment": {"network_policy_amendment": {}}},
        "always",
    ]
    assert list(command(availableDecisions=amendments).choices) == REFUSALS


def test_a_yes_for_the_session_is_offered_only_where_codex_offered_it() -> None:
    question = command(availableDecisions=["accept", "acceptForSession", "cancel"])
    assert list(question.choices) == ["allow", "allowForSession", *REFUSALS]
    effects = [choice.effect for choice in question.listed()]
    assert effects[:2] == [ChoiceEffect.ALLOW, ChoiceEffect.ALLOW_FOR_SESSION]


def test_an_old_codex_that_lists_no_decisions_is_asked_for_a_plain_yes() -> None:
    assert list(command(availableDecisions=None).choices) == ["allow", *REFUSALS]


def test_declining_is_possible_though_codex_never_lists_it() -> None:
    assert list(command(availableDecisions=[]).choices) == REFUSALS


def test_what_else_a_yes_lets_through_is_said_line_by_line() -> None:
    question = command(
        environmentId="cloud-1",
        networkApprovalContext={"host": "example.org", "protocol": "https"},
        additionalPermissions={
            "network": {"enabled": True},
            "fileSystem": {
                "read": ["/etc"],
                "write": ["/w"],
                "entries": [
                    {"path": {"type": "path", "path": "/w"}, "access": "write"},
                    {
                        "path": {"type": "glob_pattern", "pattern": "**"},
                        "access": "read",
                    },
                ],
            },
        },
    )
    assert question.detail.allows == [
        "network access to example.org (https)",
        "runs in the environment cloud-1",
        "the whole network",
        "read /etc",
        "write /w",
        'files: {"access": "read", "path": {"pattern": "**", "type": "glob_pattern"}}',
    ]
    assert "allow" in question.choices


def test_what_a_newer_codex_adds_to_a_question_is_shown_as_it_came() -> None:
    question = command(runAs="root", additionalPermissions={"microphone": True})
    assert question.detail.allows == ["microphone: true", 'runAs: "root"']


def test_invisible_characters_are_pointed_out() -> None:
    question = command(command="rm -rf /w\u202e # safe \u200b")
    assert question.detail.allows == [
        "careful, it holds invisible characters: U+200B U+202E"
    ]
    blank = command(command="ls\u3164\u00a0-la\u034f")
    assert blank.detail.allows == [
        "careful, it holds invisible characters: U+00A0 U+034F U+3164"
    ]


def test_letters_that_turn_the_order_around_are_pointed_out() -> None:
    assert "right to left" in command(command="rm א /b").detail.allows[0]
    assert command(command="écho 漢字").detail.allows == []


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "writeStdin"},
        {"kind": "humanCommand"},
        {"command": None},
        {"command": "x" * 70_000},
        {"cwd": "/" + "x" * 5_000},
        {"extra": "x" * 5_000},
    ],
)
def test_a_command_that_cannot_be_shown_whole_can_only_be_refused(
    changes: dict[str, Any],
) -> None:
    assert list(command(**changes).choices) == REFUSALS


def test_more_permissions_than_a_screen_holds_can_only_be_refused() -> None:
    paths = [f"/p{number}" for number in range(100)]
    question = command(additionalPermissions={"fileSystem": {"read": paths}})
    assert len(question.detail.allows) == 64
    assert list(question.choices) == REFUSALS


def test_a_command_that_is_only_in_its_item_is_shown_from_there() -> None:
    item = item_from(says.command(), FRAME)
    raw = says.command_approval(command=None)
    question = about_command(raw, item)
    assert question.detail.command == "/bin/bash -lc 'make test'"
    assert "allow" in question.choices


def test_a_network_question_needs_no_command() -> None:
    context = {"host": "example.org", "protocol": "https"}
    question = command(command=None, networkApprovalContext=context)
    assert question.title == "Use the network"
    assert "allow" in question.choices


def test_a_change_is_shown_with_its_diff() -> None:
    question = change(item_from(says.change(), FRAME))
    assert question.title == "Change /w/a.txt"
    assert question.detail.changes is not None
    assert list(question.choices) == ["allow", *REFUSALS]


def test_a_change_without_its_item_can_only_be_refused() -> None:
    assert list(change(None).choices) == REFUSALS
    assert list(change(item_from(says.command(), FRAME)).choices) == REFUSALS
    assert list(change(patch()).choices) == REFUSALS


def test_a_change_that_was_cut_can_only_be_refused() -> None:
    big = {"path": "/w/f", "kind": {"type": "add"}, "diff": "x" * 100_000}
    assert list(change(patch(big)).choices) == REFUSALS


def test_a_grant_for_the_session_is_offered_as_one() -> None:
    question = change(item_from(says.change(), FRAME), grantRoot="/w")
    assert question.detail.allows == [
        "writes to anything below /w until the thread is unloaded"
    ]
    assert told(question)["allowForSession"] == {"decision": "accept"}
    assert "allow" not in question.choices


def test_an_approval_fits_and_loses_its_yes_where_it_has_to_be_cut_for_it() -> None:
    file = {"path": "/w/" + "p" * 900, "kind": {"type": "add"}, "diff": "x" * 250}
    item = patch(*[file] * 200)
    assert item.truncated is None
    assert shown(change(item))[1] == ["allow", *REFUSALS]
    longer = {**file, "diff": "x" * 300}
    allows = {f"extra{number}": "y" * 3_900 for number in range(60)}
    question = change(patch(*[longer] * 100), **allows)
    assert "allow" in question.choices
    approval, choices = shown(question)
    assert choices == REFUSALS
    assert approval.detail.changes is not None


def test_the_digest_binds_all_that_is_shown() -> None:
    digests = {
        shown(command(**changes))[0].digest
        for changes in (
            {},
            {"command": "other"},
            {"cwd": "/other"},
            {"reason": "other"},
            {"itemId": "other"},
            {"turnId": "other"},
            {"threadId": "other"},
            {"runAs": "root"},
            {"availableDecisions": ["cancel"]},
        )
    }
    assert len(digests) == 9
    assert shown(command())[0].digest == shown(command())[0].digest


@pytest.mark.parametrize(
    "changes",
    [
        {"threadId": None},
        {"command": 7},
        {"availableDecisions": "accept"},
        {"additionalPermissions": ["all"]},
        {"networkApprovalContext": {"host": "x"}},
        {"cwd": {}},
    ],
)
def test_a_question_that_cannot_be_read_is_a_misfit(changes: dict[str, Any]) -> None:
    with pytest.raises(MISFITS):
        command(**changes)
