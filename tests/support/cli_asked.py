"""v2 approvals with every value fixed, one of each kind, for what the command line shows."""

from typing import Any

from tests.support.cli_samples import BLOG, NOON, SHOP, file_diff
from transport.protocol.approvals import (
    Approval,
    ApprovalDetail,
    ApprovalKind,
    ApprovalState,
    AskedQuestion,
    Choice,
    ChoiceEffect,
    ElicitationMode,
    Permission,
    PermissionKind,
    QuestionOption,
)


def choices(*, remember: bool = False) -> list[Choice]:
    """Return what may be answered."""
    found = [
        Choice(id="accept", label="Yes", effect=ChoiceEffect.ALLOW),
        Choice(id="decline", label="No", effect=ChoiceEffect.DENY),
        Choice(id="cancel", label="No, stop", effect=ChoiceEffect.CANCEL),
    ]
    if remember:
        always = ChoiceEffect.ALLOW_FOR_SESSION
        found.insert(1, Choice(id="acceptForSession", label="Always", effect=always))
    return found


def command_approval(
    approval_id: str = "apr_0123456789abcdef0123456789abcdef",
    *,
    command_text: str = "make deploy",
    state: ApprovalState = ApprovalState.PENDING,
    choice: str | None = None,
    decided_by: str | None = None,
) -> Approval:
    """Return a question about a command."""
    return Approval(
        id=approval_id,
        kind=ApprovalKind.COMMAND,
        thread_id=SHOP,
        root_thread_id=SHOP,
        turn_id="turn-1",
        item_id="item-3",
        title="Run a command",
        detail=ApprovalDetail(
            command=command_text,
            cwd="/home/ann/shop",
            reason="it needs the network",
            allows=["network access for this command"],
        ),
        choices=choices(),
        digest="digest-of-what-was-shown",
        created_at=NOON - 2_000,
        expires_at=NOON + 298_000,
        state=state,
        choice=choice,
        decided_by=decided_by,
    )


def change_approval() -> Approval:
    """Return a question about a patch."""
    return command_approval().model_copy(
        update={
            "id": "apr_fedcba9876543210fedcba9876543210",
            "kind": ApprovalKind.FILE_CHANGE,
            "title": "Change files",
            "detail": ApprovalDetail(
                changes=[file_diff()], reason="outside the folder"
            ),
        }
    )


def asked(kind: ApprovalKind, detail: ApprovalDetail, *effects: str) -> Approval:
    """Return a question of another kind; a choice is called like its effect."""
    offered = [
        Choice(id=effect, label=effect, effect=ChoiceEffect(effect))
        for effect in effects
    ]
    return command_approval().model_copy(
        update={"kind": kind, "item_id": None, "detail": detail, "choices": offered}
    )


def permissions_approval() -> Approval:
    """Return a question about permissions, of a sub-agent."""
    rows = [
        Permission(access=PermissionKind.NETWORK, text="the whole network"),
        Permission(access=PermissionKind.WRITE, path="/data", text="write /data"),
    ]
    detail = ApprovalDetail(
        permissions=rows, cwd="/home/ann/shop", reason="to fetch the prices"
    )
    approval = asked(
        ApprovalKind.PERMISSIONS, detail, "allow", "allowForSession", "deny"
    )
    return approval.model_copy(update={"thread_id": BLOG})


def question_approval(*, secret: bool = False) -> Approval:
    """Return two questions of the model."""
    options = [
        QuestionOption(label="Red", description="like the door"),
        QuestionOption(label="Blue"),
    ]
    questions = [
        AskedQuestion(
            id="colour",
            header="Colour",
            text="Which colour?",
            secret=False,
            other=True,
            options=options,
        ),
        AskedQuestion(
            id="name", header="", text="Whose name?", secret=secret, other=True
        ),
    ]
    detail = ApprovalDetail(questions=questions)
    return asked(ApprovalKind.QUESTION, detail, "answer", "deny")


def form_approval() -> Approval:
    """Return a form of an MCP server with a field of every kind."""
    fields: dict[str, Any] = {
        "colour": {
            "type": "string",
            "title": "Colour",
            "oneOf": [
                {"const": "r", "title": "Red"},
                {"const": "b", "title": "Blue"},
            ],
        },
        "mail": {"type": "string", "format": "email", "description": "For the bill."},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "gift": {"type": "boolean"},
        "extras": {"type": "array", "items": {"enum": ["ribbon", "card"]}},
    }
    schema = {"type": "object", "properties": fields, "required": ["colour", "count"]}
    detail = ApprovalDetail(
        server="shop", mode=ElicitationMode.FORM, message="What to pack?", form=schema
    )
    return asked(ApprovalKind.ELICITATION, detail, "answer", "deny", "cancel")


def page_approval() -> Approval:
    """Return a page that an MCP server wants opened."""
    detail = ApprovalDetail(
        server="shop",
        mode=ElicitationMode.URL,
        message="Please pay.",
        url="https://pay.example.org/order?n=7",
        allows=["the page is at pay.example.org"],
    )
    return asked(ApprovalKind.ELICITATION, detail, "allow", "deny", "cancel")


def tool_approval() -> Approval:
    """Return a tool of an MCP server that wants to run."""
    detail = ApprovalDetail(
        server="shop",
        tool="refund",
        arguments='{"order": 7}',
        message='Allow the shop MCP server to run tool "refund"?',
        allows=["its server says that it may destroy something"],
    )
    return asked(ApprovalKind.TOOL_CALL, detail, "allow", "allowForSession", "deny")
