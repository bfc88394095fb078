"""Short forms of what codex's app-server says, as the pinned version says it."""

from typing import Any

AT = 1_796_000_000_000
THREAD = "01a22d76-1be7-7072-9d8e-e69944dc8e3e"
CHILD = "01a22d97-d04f-7cb2-b101-077ca0dbadd3"

Raw = dict[str, Any]


def thread(thread_id: str = THREAD, **changes: Any) -> Raw:
    """A thread of an answer or of thread/started."""
    return {
        "id": thread_id,
        "sessionId": thread_id,
        "forkedFromId": None,
        "parentThreadId": None,
        "preview": "",
        "ephemeral": False,
        "historyMode": "paginated",
        "modelProvider": "mock",
        "createdAt": AT // 1000,
        "updatedAt": AT // 1000,
        "status": {"type": "idle"},
        "path": None,
        "cwd": "/home/user/project",
        "cliVersion": "0.171.0",
        "source": "vscode",
        "gitInfo": None,
        "name": None,
        "projectId": None,
        "turns": [],
        **changes,
    }


def turn(turn_id: str = "t1", status: str = "inProgress", **changes: Any) -> Raw:
    """A turn; its root turn is itself."""
    return {
        "id": turn_id,
        "rootTurnId": turn_id,
        "items": [],
        "itemsView": "notLoaded",
        "status": status,
        "error": None,
        "startedAt": AT // 1000,
        "completedAt": None if status == "inProgress" else AT // 1000 + 2,
        "durationMs": None,
        **changes,
    }


def in_turn(item: Raw, turn_id: str = "t1", thread_id: str = THREAD) -> Raw:
    """Params of item/started and item/completed."""
    times = {"startedAtMs": AT, "completedAtMs": AT + 5}
    return {"item": item, "threadId": thread_id, "turnId": turn_id, **times}


def message(item_id: str = "msg_1", text: str = "", **changes: Any) -> Raw:
    """An agentMessage."""
    return {
        "type": "agentMessage",
        "id": item_id,
        "text": text,
        "phase": None,
        **changes,
    }


def user(text: str = "do it", item_id: str = "u1", **changes: Any) -> Raw:
    """A userMessage."""
    content: list[Raw] = [{"type": "text", "text": text, "text_elements": []}]
    return {
        "type": "userMessage",
        "id": item_id,
        "clientId": None,
        "content": content,
        **changes,
    }


def command(item_id: str = "call_1", status: str = "inProgress", **changes: Any) -> Raw:
    """A commandExecution."""
    return {
        "type": "commandExecution",
        "id": item_id,
        "command": "/bin/bash -lc 'make test'",
        "cwd": "/home/user/project",
        "processId": None,
        "source": "agent",
        "status": status,
        "commandActions": [{"type": "unknown", "command": "make test"}],
        "aggregatedOutput": None,
        "exitCode": None,
        "durationMs": None,
        **changes,
    }


def change(item_id: str = "call_2", status: str = "inProgress", **changes: Any) -> Raw:
    """A fileChange of one new file."""
    files = [{"path": "/w/a.txt", "kind": {"type": "add"}, "diff": "one\ntwo\n"}]
    return {
        "type": "fileChange",
        "id": item_id,
        "status": status,
        "changes": files,
        **changes,
    }


def delta(item_id: str, text: str, thread_id: str = THREAD, **changes: Any) -> Raw:
    """Params of any delta."""
    return {
        "threadId": thread_id,
        "turnId": "t1",
        "itemId": item_id,
        "delta": text,
        **changes,
    }


def command_approval(item_id: str = "call_1", **changes: Any) -> Raw:
    """Params of item/commandExecution/requestApproval."""
    return {
        "kind": "command",
        "threadId": THREAD,
        "turnId": "t1",
        "itemId": item_id,
        "startedAtMs": AT,
        "environmentId": "local",
        "reason": "it is outside the sandbox",
        "command": "/bin/bash -lc 'make test'",
        "cwd": "/home/user/project",
        "commandActions": [],
        "proposedExecpolicyAmendment": ["make"],
        "availableDecisions": [
            "accept",
            {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["make"]}},
            "cancel",
        ],
        **changes,
    }


def change_approval(item_id: str = "call_2", **changes: Any) -> Raw:
    """Params of item/fileChange/requestApproval."""
    return {
        "threadId": THREAD,
        "turnId": "t1",
        "itemId": item_id,
        "startedAtMs": AT,
        "reason": None,
        "grantRoot": None,
        **changes,
    }


def permissions_approval(**changes: Any) -> Raw:
    """Params of item/permissions/requestApproval."""
    entries = [{"path": {"type": "path", "path": "/data"}, "access": "write"}]
    return {
        "threadId": THREAD,
        "turnId": "t1",
        "itemId": "call_3",
        "environmentId": "local",
        "startedAtMs": AT,
        "cwd": "/home/user/project",
        "reason": "need write",
        "permissions": {
            "network": {"enabled": True},
            "fileSystem": {"read": None, "write": ["/data"], "entries": entries},
        },
        **changes,
    }


def question(question_id: str = "q1", **changes: Any) -> Raw:
    """One question with two options; codex's own tool always lets others be typed."""
    options = [
        {"label": "Red", "description": "warm"},
        {"label": "Blue", "description": "cold"},
    ]
    return {
        "id": question_id,
        "header": "Colour",
        "question": "Which colour?",
        "isOther": True,
        "isSecret": False,
        "options": options,
        **changes,
    }


def input_request(*questions: Raw, **changes: Any) -> Raw:
    """Params of item/tool/requestUserInput."""
    return {
        "threadId": THREAD,
        "turnId": "t1",
        "itemId": "call_4",
        "questions": list(questions) or [question()],
        "isBlocking": False,
        "autoResolutionMs": None,
        **changes,
    }


def elicitation(**changes: Any) -> Raw:
    """Params of mcpServer/elicitation/request: a form."""
    return {
        "threadId": THREAD,
        "turnId": "t1",
        "serverName": "lab",
        "environmentId": None,
        "mode": "form",
        "_meta": None,
        "message": "What colour?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "colour": {"type": "string", "enum": ["red", "blue"]},
                "ok": {"type": "boolean"},
            },
            "required": ["colour"],
        },
        **changes,
    }


def page_request(url: str = "https://pay.example.org/order?n=7", **changes: Any) -> Raw:
    """Params of mcpServer/elicitation/request: a page to open."""
    asked = elicitation(mode="url", message="Please pay.", url=url)
    del asked["requestedSchema"]
    return {**asked, "elicitationId": "e1", **changes}


def tool_approval(**meta: Any) -> Raw:
    """Params of mcpServer/elicitation/request that ask for a tool to run."""
    about = {
        "codex_approval_kind": "mcp_tool_call",
        "persist": ["session", "always"],
        "tool_name": "danger",
        "tool_annotations": {"readOnlyHint": False, "destructiveHint": True},
        "tool_description": "destroys",
        "tool_params": {"path": "/x"},
        "tool_params_display": [
            {"name": "path", "value": "/x", "display_name": "path"}
        ],
        **meta,
    }
    return elicitation(
        message='Allow the lab MCP server to run tool "danger"?',
        requestedSchema={"type": "object", "properties": {}},
        _meta=about,
    )
