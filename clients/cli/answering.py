"""`approve`, `deny`, `answer`: one answer to one question, as it was shown. Trio shell."""

from clients.cli.asking import at_terminal, confirm
from clients.cli.doors import open_door
from clients.cli.exits import ExitCode, FailedError, UsageProblemError
from clients.cli.filling import from_json, from_person
from clients.cli.find import find_approval
from clients.cli.lines.approvals import approval_lines, resolved_line, stops_turn
from clients.cli.plain import one_line
from clients.cli.screen import Screen
from transport.client import Client
from transport.protocol.approvals import (
    Approval,
    ApprovalAnswerParams,
    ApprovalState,
    Choice,
    ChoiceEffect,
)
from transport.protocol.methods import APPROVAL_ANSWER


async def approve(
    screen: Screen,
    *,
    host: str | None,
    approval: str,
    yes: bool,
    remember: bool,
    digest: str | None,
) -> ExitCode:
    """Show the whole question, ask, and allow exactly what was shown."""
    effect = ChoiceEffect.ALLOW_FOR_SESSION if remember else ChoiceEffect.ALLOW
    async with open_door(host) as client:
        asked = await find_approval(client, approval, screen.clock())
        choice = _choice(asked, effect)
        _check_digest(asked, digest)
        screen.lines(approval_lines(asked, screen.clock()))
        if not yes and not await _confirmed(choice):
            screen.note("Nothing was answered; it still waits.")
            return ExitCode.FAILED
        return await _answer(screen, client, plain_answer(asked, choice))


async def answer(
    screen: Screen, text: str, *, host: str | None, approval: str, digest: str | None
) -> ExitCode:
    """Fill in a question or a form: from JSON, or else by asking at the terminal."""
    async with open_door(host) as client:
        asked = await find_approval(client, approval, screen.clock())
        choice = _choice(asked, ChoiceEffect.ANSWER)
        _check_digest(asked, digest)
        screen.lines(approval_lines(asked, screen.clock()))
        if text:
            return await _answer(screen, client, from_json(asked, choice, text))
        params = await from_person(screen, asked, choice)
        if not await confirm("Send this?"):
            screen.note("Nothing was answered; it still waits.")
            return ExitCode.FAILED
        return await _answer(screen, client, params)


async def deny(
    screen: Screen, *, host: str | None, approval: str, stop: bool
) -> ExitCode:
    """Decline; with `stop` the turn ends as well."""
    effect = ChoiceEffect.CANCEL if stop else ChoiceEffect.DENY
    async with open_door(host) as client:
        asked = await find_approval(client, approval, screen.clock())
        if stop and not stops_turn(asked):
            raise FailedError(
                f"{asked.id} cannot stop the turn: decline it, and then "
                f"`threadgate interrupt {asked.root_thread_id}`"
            )
        return await _answer(
            screen, client, plain_answer(asked, _choice(asked, effect))
        )


async def _confirmed(choice: Choice) -> bool:
    if not at_terminal():
        raise UsageProblemError(
            "there is no terminal to confirm on: look at `threadgate approvals`, then "
            "add --yes (and --digest with what you saw)"
        )
    remembered = choice.effect is ChoiceEffect.ALLOW_FOR_SESSION
    more = " and remember it until the thread is unloaded" if remembered else ""
    return await confirm(f"Approve exactly this{more}?")


def _choice(asked: Approval, effect: ChoiceEffect) -> Choice:
    for choice in asked.choices:
        if choice.effect is effect:
            return choice
    if any(choice.effect is ChoiceEffect.ANSWER for choice in asked.choices):
        raise FailedError(
            f"{asked.id} wants an answer: `threadgate answer {asked.id}`, or `deny`"
        )
    offered = ", ".join(f"{c.effect} ({one_line(c.label, 40)})" for c in asked.choices)
    raise FailedError(
        f"{asked.id} cannot be answered so; offered is: {offered or 'nothing'}"
    )


def _check_digest(asked: Approval, digest: str | None) -> None:
    if digest is not None and digest != asked.digest:
        raise FailedError(
            f"{asked.id} is not what you saw (its digest is {asked.digest}): look again"
        )


def plain_answer(asked: Approval, choice: Choice) -> ApprovalAnswerParams:
    """Return an answer that needs nothing filled in, bound to what was shown."""
    return ApprovalAnswerParams(
        approval_id=asked.id, digest=asked.digest, choice=choice.id
    )


async def _answer(
    screen: Screen, client: Client, params: ApprovalAnswerParams
) -> ExitCode:
    approval = (await client.call(APPROVAL_ANSWER, params)).approval
    if screen.as_json:
        screen.json({"approval": approval.wire()})
    screen.lines([resolved_line(approval, client.opened.device.id)])
    if approval.state is ApprovalState.ANSWERING:
        return ExitCode.OK
    took_effect = approval.state is ApprovalState.ANSWERED
    return ExitCode.OK if took_effect else ExitCode.FAILED
