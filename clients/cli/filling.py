"""`answer`: what a person fills in, at the terminal or as JSON. Trio shell.

A secret is typed without echo, and never given as an argument: those can be read by
every program of the machine (`--answers -` reads stdin).
"""

import json
import sys
from collections.abc import Callable
from typing import Any, cast

from pydantic import ValidationError

from clients.cli.asking import MAX_TEXT, ask_line, at_terminal
from clients.cli.exits import FailedError, UsageProblemError
from clients.cli.formfields import FormField, Value, form_fields
from clients.cli.lines.asked import fields, form_field_lines, question_lines
from clients.cli.plain import one_line
from clients.cli.screen import Screen
from transport.protocol.approvals import (
    Approval,
    ApprovalAnswerParams,
    ApprovalKind,
    AskedQuestion,
    Choice,
)


def read_filled(answers: str | None, content: str | None) -> Callable[[], str]:
    """Return what reads the JSON that was given: `-` is stdin; nothing is ``."""

    def read() -> str:
        if answers is not None and content is not None:
            raise UsageProblemError("--answers is for questions, --content for forms")
        given = content if answers is None else answers
        return sys.stdin.read(MAX_TEXT) if given == "-" else given or ""

    return read


def from_json(asked: Approval, choice: Choice, text: str) -> ApprovalAnswerParams:
    """Return the answer that the JSON holds. Raises: UsageProblemError."""
    try:
        given = cast("object", json.loads(text))
    except (ValueError, RecursionError) as exc:  # the latter: nested very deep
        raise UsageProblemError(f"that is no JSON: {exc}") from exc
    if not isinstance(given, dict):
        raise UsageProblemError('an answer is an object, like {"q1": ["Red"]}')
    said = cast("dict[str, Any]", given)
    if asked.kind is ApprovalKind.QUESTION:
        listed = {k: [v] if isinstance(v, str) else v for k, v in said.items()}
        return _params(asked, choice, answers=listed)
    return _params(asked, choice, content=said)


async def from_person(
    screen: Screen, asked: Approval, choice: Choice
) -> ApprovalAnswerParams:
    """Ask for one thing after the other. Raises: UsageProblemError, FailedError."""
    if not at_terminal():
        raise UsageProblemError(
            "there is no terminal to ask at: look at `threadgate approvals`, then give "
            "--answers or --content (and --digest with what you saw)"
        )
    if asked.kind is ApprovalKind.QUESTION:
        answers: dict[str, list[str]] = {}
        for question in asked.detail.questions or ():
            if (text := await _ask_question(screen, question)) is not None:
                answers[question.id] = [text]
        if not answers:
            raise FailedError("nothing was answered; it still waits")
        return _params(asked, choice, answers=answers)
    content: dict[str, Value] = {}
    for field in form_fields(asked.detail.form):
        if (value := await _ask_field(screen, field)) is not None:
            content[field.name] = value
    return _params(asked, choice, content=content)


async def _ask_question(screen: Screen, question: AskedQuestion) -> str | None:
    """Return the answer; `None` where it is left open."""
    screen.lines(question_lines(question))
    labels = [option.label for option in question.options]
    while typed := await ask_line("  > ", hidden=question.secret):
        if typed.isdecimal() and 1 <= int(typed) <= len(labels):
            return labels[int(typed) - 1]
        if question.other or typed in labels:
            return typed
        screen.lines(fields("", "type the number of an option, or nothing"))
    return None


async def _ask_field(screen: Screen, field: FormField) -> Value | None:
    screen.lines(form_field_lines(field))
    while True:
        typed = await ask_line("  > ")
        if not typed and not field.required:
            return None
        try:
            return field.read(typed)
        except ValueError as exc:
            screen.lines(fields("", str(exc)))


def _params(asked: Approval, choice: Choice, **filled: object) -> ApprovalAnswerParams:
    try:
        return ApprovalAnswerParams.model_validate(
            {
                "approvalId": asked.id,
                "digest": asked.digest,
                "choice": choice.id,
                **filled,
            }
        )
    except ValidationError as exc:
        first = exc.errors(include_input=False)[0]
        place = ".".join(one_line(str(part), 40) for part in first["loc"][:2])
        raise UsageProblemError(f"{place}: {first['msg']}") from exc
