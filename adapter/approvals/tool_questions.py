"""Whether a tool of an MCP server may run. Sans-IO. PROTOCOL.md section 5.

It comes as an elicitation that is marked as such in `_meta`. Codex would also take a yes
for ever (it writes that into its configuration): that one is never sent.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from adapter.approvals import choices
from adapter.approvals.choices import Result, Way, fixed
from adapter.approvals.legible import (
    hidden_lines,
    lines_fit,
    shown_lines,
    text_fits,
    unknown_lines,
)
from adapter.approvals.questions import Question, Raw
from adapter.approvals.server_frame import (
    ACCEPTED,
    NO,
    asked_by,
    extra_lines,
    form_of,
    object_of,
)
from adapter.limits import LABEL_BYTES, TEXT_BYTES
from adapter.shapes.shapes import maybe_text, sequence, text
from adapter.shapes.texts import cut, one_line
from transport.protocol.approvals import ApprovalDetail, ApprovalKind, ChoiceEffect

_REMEMBERED: Final[Result] = {**ACCEPTED, "_meta": {"persist": "session"}}
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


def about_tool(raw: Raw, meta: Raw) -> Question:
    """`meta`: the `_meta` of the request. Raises one of `MISFITS`."""
    server, message = text(raw["serverName"]), text(raw["message"])
    tool = _tool(meta, message)
    given = meta.get("tool_params")
    arguments = None if given is None else json.dumps(given, ensure_ascii=False)
    allows = [*extra_lines({**raw, "_meta": None}), *unknown_lines(meta, _SHOWN_META)]
    allows += _hints(meta)
    allows += hidden_lines(f"{server}{message}{tool or ''}{arguments or ''}")
    detail = ApprovalDetail(
        server=cut(server, LABEL_BYTES),
        tool=None if tool is None else cut(tool, LABEL_BYTES),
        arguments=None if arguments is None else cut(arguments, TEXT_BYTES),
        message=cut(message, TEXT_BYTES),
        allows=shown_lines(allows),
    )
    form = form_of(raw.get("requestedSchema"))
    known = meta["codex_approval_kind"] == "mcp_tool_call" and tool is not None
    whole = known and form is not None and form.empty and lines_fit(allows)
    whole = (
        whole and text_fits(arguments, TEXT_BYTES) and text_fits(message, TEXT_BYTES)
    )
    whole = whole and text_fits(server, LABEL_BYTES) and text_fits(tool, LABEL_BYTES)
    return asked_by(
        ApprovalKind.TOOL_CALL,
        raw,
        title=f"Let {one_line(server, 40)} run {one_line(tool or 'a tool', 60)}",
        detail=detail,
        choices={**(_runs(meta) if whole else {}), choices.DENY: NO[choices.DENY]},
    )


def _runs(meta: Raw) -> Mapping[str, Way]:
    """Remembered is the tool, whatever its arguments: so the label says it."""
    once = fixed("Run it once", ChoiceEffect.ALLOW, ACCEPTED)
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
    if object_of(meta.get("tool_annotations")).get("destructiveHint") is True:
        lines.append("its server says that it may destroy something")
    return lines
