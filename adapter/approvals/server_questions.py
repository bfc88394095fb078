"""What MCP servers ask: a form to fill in, a page to open. Sans-IO. PROTOCOL.md section 5."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from adapter.approvals import choices
from adapter.approvals.choices import Result, Way, fixed, refuse_filled, unfit
from adapter.approvals.forms import Form
from adapter.approvals.legible import hidden_lines, lines_fit, shown_lines, text_fits
from adapter.approvals.questions import Question, Raw
from adapter.approvals.server_frame import (
    ACCEPTED,
    NO,
    asked_by,
    extra_lines,
    form_of,
    object_of,
)
from adapter.approvals.tool_questions import about_tool
from adapter.limits import LABEL_BYTES, PATH_BYTES, TEXT_BYTES
from adapter.runtime.acts import Filled
from adapter.shapes.shapes import text
from adapter.shapes.texts import cut, one_line
from transport.protocol.approvals import (
    ApprovalDetail,
    ApprovalKind,
    ChoiceEffect,
    ElicitationMode,
)


def about_server(raw: Raw) -> Question:
    """Raises one of `MISFITS`."""
    meta = object_of(raw.get("_meta"))
    if "codex_approval_kind" in meta:
        return about_tool(raw, meta)
    match text(raw["mode"]):
        case "form":
            return _about_form(raw)
        case "url":
            return _about_page(raw)
        case _:
            return _about_something(raw)


def _about_form(raw: Raw) -> Question:
    form = form_of(raw.get("requestedSchema"))
    allows = extra_lines(raw)
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
        return {choices.ALLOW: fixed("Agree", ChoiceEffect.ALLOW, ACCEPTED)}
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
    allows = extra_lines(raw)
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
        yes={choices.ALLOW: fixed(agree, ChoiceEffect.ALLOW, ACCEPTED)}
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
    return asked_by(
        ApprovalKind.ELICITATION,
        raw,
        title=f"{one_line(server, 40)} asks: {one_line(message, 100)}",
        detail=detail,
        choices={**(yes if whole and lines_fit(allows) else {}), **NO},
    )
