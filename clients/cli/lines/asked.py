"""What an approval is about as lines, kind by kind; nothing is left out. Sans-IO.

PROTOCOL.md section 5. All of it is decided on, so none of it may hide: what would not be
seen is written out, and no row wraps to where our own words stand.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from clients.cli.formfields import FormField, form_fields
from clients.cli.lines.items import file_lines
from clients.cli.lines.layout import bar
from clients.cli.plain import wrapped
from clients.cli.style import Line, bold, dim, line
from transport.protocol.approvals import ApprovalDetail, AskedQuestion

FIELD: Final = 9  # cells; the longest field name has seven letters


def detail_lines(detail: ApprovalDetail) -> list[Line]:
    """Return all that the detail says."""
    return list(_rows(detail))


def field(name: str, text: str) -> Line:
    """Return one line of our own words beside its name."""
    return line("  ", dim(f"{name:<{FIELD}}"), text)


def fields(name: str, text: str) -> list[Line]:
    """Return others' text beside its name, behind a bar where it has several rows."""
    head, *rest = wrapped(text)
    first = line(
        "  ",
        dim(f"{name:<{FIELD}}"),
        bar(goes_on=False) if rest else "",
        bold(head[1]),
    )
    return [
        first,
        *(
            line("  " + " " * FIELD, bar(goes_on=goes_on), bold(row))
            for goes_on, row in rest
        ),
    ]


def question_lines(question: AskedQuestion) -> list[Line]:
    """Return one question with its numbered options."""
    rows = fields("asks", question.text)
    for number, option in enumerate(question.options, 1):
        more = f": {option.description}" if option.description else ""
        rows += fields(f"  {number}", f"{option.label}{more}")
    if question.options and question.other:
        rows.append(field("  or", "a text of your own"))
    if question.secret:
        rows.append(field("", "(a secret: it is not shown while you type)"))
    return rows


def form_field_lines(asked: FormField) -> list[Line]:
    """Return one field of a form with its numbered choices."""
    need = "" if asked.required else " (may be left out)"
    rows = fields("field", f"{asked.title}{need}")
    if asked.description:
        rows += fields("", asked.description)
    for number, choice in enumerate(asked.choices, 1):
        rows += fields(f"  {number}", choice.title)
    rows.append(field("", asked.says))
    return rows


def _rows(detail: ApprovalDetail) -> Iterator[Line]:
    named = (
        ("command", detail.command),
        ("folder", detail.cwd),
        ("server", detail.server),
        ("tool", detail.tool),
        ("with", detail.arguments),
        ("says", detail.message),
        ("page", detail.url),
        ("reason", detail.reason),
    )
    for name, text in named:
        if text:
            yield from fields(name, text)
    for change in detail.changes or ():
        yield from file_lines(change, full=True)
    for permission in detail.permissions or ():
        yield from fields("grants", permission.text)
    for question in detail.questions or ():
        yield from _question(question, detail.questions or ())
    for asked in form_fields(detail.form):
        yield from form_field_lines(asked)
    for allowed in detail.allows:
        yield from fields("allows", allowed)


def _question(question: AskedQuestion, every: Sequence[AskedQuestion]) -> list[Line]:
    rows = fields("about", question.header) if question.header else []
    if len(every) > 1:
        rows += fields("id", question.id)
    return rows + question_lines(question)
