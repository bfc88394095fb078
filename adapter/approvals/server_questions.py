"""What MCP servers ask, and whether their tools may run. Sans-IO. PROTOCOL.md section 5.

Both come as the same request of Codex: a server's *elicitation* is a form or a page to
open; a tool that wants leave is marked as such in `_meta`. Codex would also take a yes
for ever (it writes that into its configuration): that one is never sent.
"""

import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast
from urllib.parse import urlsplit

from adapter.approvals import choices
from adapter.approvals.choices import Result, Way, fixed, refuse_filled, unfit
from adapter.approvals.forms import Form, read_form
from adapter.approvals.legible import (
    hidden_lines,
    lines_fit,
    shown_lines,
    text_fits,
    unknown_lines,
)
from adapter.approvals.questions import Question, Raw, place_lines
from adapter.limits import LABEL_BYTES, PATH_BYTES, TEXT_BYTES
from adapter.runtime.acts import Filled
from adapter.shapes.shapes import (
    MISFITS,
    maybe_id,
    maybe_text,
    sequence,
    text,
    wire_id,
)
from adapter.shapes.texts import cut, one_line
from transport.protocol.approvals import (
    ApprovalDetail,
    ApprovalKind,
    ChoiceEffect,
    ElicitationMode,
)

DECLINED: Final[Result] = {"action": "decline", "content": None}

_ACCEPTED: Final[Result] = {"action": "accept", "content": {}}
_REMEMBERED: Final[Result] = {**_ACCEPTED, "_meta": {"persist": "session"}}
_NO: Final[Mapping[str, Way]] = {
    choices.DENY: fixed("Decline; the turn goes on", ChoiceEffect.DENY, DECLINED),
    choices.CANCEL: fixed(
        "Dismiss it unanswered; the turn goes on",
        ChoiceEffect.CANCEL,
        {"action": "cancel", "content": None},
    ),
}
_SHOWN: Final = frozenset(
    {
        "_meta",
        "elicitationId",
        "environmentId",
        "message",
        "mode",
        "requestedSchema",
        "serverName",
        "threadId",
        "turnId",
        "url",
    }
)
_SHOWN_META: Final = frozenset(
    {
        "codex_approval_kind",
        "persist",
        "tool_annotations",
        "tool_description",
        "tool_name",
        "tool_params",
        "tool_params_display",
    }
)
_TOOL: Final = re.compile(r'.* to run tool "([^"]+)"\?')
"""Codex's own words; its 0.163 names the tool nowhere else."""


def about_server(raw: Raw) -> Question:
    """Raises one of `MISFITS`."""
    meta = _object(raw.get("_meta"))
    if "codex_approval_kind" in meta:
        return _about_tool(raw, meta)
    match text(raw["mode"]):
        case "form":
            return _about_form(raw)
        case "url":
            return _about_page(raw)
        case _:
            return _about_something(raw)


def _about_form(raw: Raw) -> Question:
    form = _form(raw.get("requestedSchema"))
    allows = _extras(raw)
    if form is None:
        allows.append("its form has parts that are not known here")
    elif form.secrets:
        names = one_line(", ".join(form.secrets), 100)
        allows.append(f"it asks for a secret ({names}): a form is no place for that")
    seen = form is not None and not form.secrets
    words = json.dumps(form.schema, ensure_ascii=False) if form else ""
    return _elicitation(
        raw,
        mode=ElicitationMode.FORM,
        allows=[*allows, *hidden_lines(words)],
        form=form.schema if form else None,
        yes=_fill(form) if form is not None and seen else {},
    )


def _fill(form: Form) -> Mapping[str, Way]:
    if form.empty:
        return {choices.ALLOW: fixed("Agree", ChoiceEffect.ALLOW, _ACCEPTED)}
    reply = partial(_reply, form)
    return {
        choices.ANSWER: Way(
            label="Send the form", effect=ChoiceEffect.ANSWER, reply=reply
        )
    }


def _reply(form: Form, filled: Filled) -> Result:
    """Return what Codex is told. Raises `InvalidParams`."""
    refuse_filled(filled.answers, "answers")
    if filled.content is None:
        raise unfit("content", "The form is not filled in.")
    form.check(filled.content)
    return {"action": "accept", "content": dict(filled.content)}


def _about_page(raw: Raw) -> Question:
    url = text(raw["url"])
    host = _host(url)
    agree = f"I open the page at {host}" if host else ""
    allows = _extras(raw)
    if host is None:
        allows.append("it is no address of a web page")
    else:
        allows.append(f"the page is at {host}")
    whole = host is not None and text_fits(url, PATH_BYTES)
    return _elicitation(
        raw,
        mode=ElicitationMode.URL,
        allows=[*allows, *hidden_lines(url)],
        url=cut(url, PATH_BYTES),
        yes={choices.ALLOW: fixed(agree, ChoiceEffect.ALLOW, _ACCEPTED)}
        if whole
        else {},
    )


def _host(url: str) -> str | None:
    """Return where a web page is; what stands before an @ only looks like it."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return None
    return f"{parts.hostname}{port}"


def _about_something(raw: Raw) -> Question:
    """A way to ask that is not known here, or not from afar (a verification)."""
    words = [raw.get(key) for key in ("title", "description", "message")]
    said = "\n".join(word for word in words if isinstance(word, str))
    allows = ["it asks in a way that cannot be answered from here"]
    return _elicitation(
        {**raw, "message": said}, mode=ElicitationMode.OTHER, allows=allows, yes={}
    )


def _elicitation(
    raw: Raw,
    *,
    mode: ElicitationMode,
    allows: list[str],
    yes: Mapping[str, Way],
    form: Mapping[str, Any] | None = None,
    url: str | None = None,
) -> Question:
    server, message = text(raw["serverName"]), text(raw["message"])
    allows = [*allows, *hidden_lines(server + message)]
    whole = text_fits(server, LABEL_BYTES) and text_fits(message, TEXT_BYTES)
    detail = ApprovalDetail(
        server=cut(server, LABEL_BYTES),
        mode=mode,
        message=cut(message, TEXT_BYTES),
        form=dict(form) if form is not None else None,
        url=url,
        allows=shown_lines(allows),
    )
    return _question(
        ApprovalKind.ELICITATION,
        raw,
        title=f"{one_line(server, 40)} asks: {one_line(message, 100)}",
        detail=detail,
        choices={**(yes if whole and lines_fit(allows) else {}), **_NO},
    )


def _about_tool(raw: Raw, meta: Raw) -> Question:
    server, message = text(raw["serverName"]), text(raw["message"])
    tool = _tool(meta, message)
    given = meta.get("tool_params")
    arguments = None if given is None else json.dumps(given, ensure_ascii=False)
    allows = [*_extras({**raw, "_meta": None}), *unknown_lines(meta, _SHOWN_META)]
    allows += _hints(meta)
    allows += hidden_lines(f"{server}{message}{tool or ''}{arguments or ''}")
    detail = ApprovalDetail(
        server=cut(server, LABEL_BYTES),
        tool=None if tool is None else cut(tool, LABEL_BYTES),
        arguments=None if arguments is None else cut(arguments, TEXT_BYTES),
        message=cut(message, TEXT_BYTES),
        allows=shown_lines(allows),
    )
    form = _form(raw.get("requestedSchema"))
    known = meta["codex_approval_kind"] == "mcp_tool_call" and tool is not None
    whole = known and form is not None and form.empty and lines_fit(allows)
    whole = (
        whole and text_fits(arguments, TEXT_BYTES) and text_fits(message, TEXT_BYTES)
    )
    whole = whole and text_fits(server, LABEL_BYTES) and text_fits(tool, LABEL_BYTES)
    return _question(
        ApprovalKind.TOOL_CALL,
        raw,
        title=f"Let {one_line(server, 40)} run {one_line(tool or 'a tool', 60)}",
        detail=detail,
        choices={**(_runs(meta) if whole else {}), choices.DENY: _NO[choices.DENY]},
    )


def _runs(meta: Raw) -> Mapping[str, Way]:
    """Remembered is the tool, whatever its arguments: so the label says it."""
    once = fixed("Run it once", ChoiceEffect.ALLOW, _ACCEPTED)
    again = fixed(
        "Run it, and do not ask about this tool again, with any arguments, until the "
        "thread is unloaded",
        ChoiceEffect.ALLOW_FOR_SESSION,
        _REMEMBERED,
    )
    offered = meta.get("persist")
    ways = (offered,) if isinstance(offered, str) else sequence(offered)
    if "session" not in ways:
        return {choices.ALLOW: once}
    return {choices.ALLOW: once, choices.ALLOW_FOR_SESSION: again}


def _tool(meta: Raw, message: str) -> str | None:
    if (named := maybe_text(meta.get("tool_name"))) is not None:
        return named
    found = _TOOL.fullmatch(message)
    return found[1] if found else None


def _hints(meta: Raw) -> list[str]:
    """What the server says of its tool; it may be wrong, and allows nothing."""
    said = maybe_text(meta.get("tool_description"))
    lines = [f"its server says of it: {cut(said, LABEL_BYTES)}"] if said else []
    if _object(meta.get("tool_annotations")).get("destructiveHint") is True:
        lines.append("its server says that it may destroy something")
    return lines


def _object(raw: object) -> Raw:
    """Return an object; anything else is an empty one."""
    return cast("Raw", raw) if isinstance(raw, Mapping) else {}


def _form(raw: object) -> Form | None:
    try:
        return read_form(raw)
    except MISFITS:
        return None


def _extras(raw: Raw) -> list[str]:
    meta = raw.get("_meta")
    rest = {} if meta is None else {"_meta": meta}
    return [*place_lines(raw), *unknown_lines(raw, _SHOWN), *unknown_lines(rest, ())]


def _question(
    kind: ApprovalKind,
    raw: Raw,
    *,
    title: str,
    detail: ApprovalDetail,
    choices: Mapping[str, Way],
) -> Question:
    return Question(
        kind=kind,
        thread_id=wire_id(raw["threadId"]),
        turn_id=maybe_id(raw.get("turnId")),
        title=title,
        detail=detail,
        choices=choices,
    )
