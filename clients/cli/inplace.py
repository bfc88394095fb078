"""Answering where a question is shown, by who sits there. Trio shell.

Only at a terminal, only for a device that may answer, and only right below the whole
question. Nothing is a yes but the word. While a question is open, what else happens is
kept back and told after it. It is taken back when it needs no answer any more, and when
the connection is lost: once that is back, it is asked again if it still waits.
"""

from collections.abc import Sequence
from typing import Final

import trio

from clients.cli.answering import plain_answer
from clients.cli.asking import at_terminal, confirm, in_foreground, read_word
from clients.cli.exits import CommandError, refusal_text
from clients.cli.filling import from_person
from clients.cli.lines.approvals import approval_lines
from clients.cli.lines.asked import FIELD
from clients.cli.lines.layout import INDENT
from clients.cli.screen import Screen
from clients.cli.style import dim, line
from clients.cli.transcript import Piece, Transcript
from transport.client import Client
from transport.errors import Refusal
from transport.protocol.approvals import (
    Approval,
    ApprovalAnswerParams,
    ApprovalState,
    Choice,
    ChoiceEffect,
)
from transport.protocol.events import ApprovalResolved
from transport.protocol.methods import APPROVAL_ANSWER
from transport.subscription import ClientEvent, EventSeen, Resumed

KEPT: Final = (
    2_000  # pieces kept back; who does not answer for so long gets to see them
)

_SCOPE: Final = "approve"
_WORDS: Final = {
    ChoiceEffect.ALLOW: "approve",
    ChoiceEffect.ANSWER: "answer",
    ChoiceEffect.DENY: "deny",
}


class InPlace:
    """Prints a transcript's pieces, and asks below the questions among them."""

    def __init__(self, screen: Screen, client: Client, *, ask: bool = True) -> None:
        self._screen = screen
        self._client = client
        self._ask = ask and at_terminal() and not screen.as_json
        self._transcript: Transcript | None = None
        self._open: Approval | None = None
        self._prompting = False  # a line is being typed for the open one
        self._sending = False  # its answer is on its way: that is not taken back
        self._cut_off = False  # until events go on, nothing is asked
        self._next: list[Approval] = []  # they came while another one was open
        self._kept: list[Piece] = []
        self._scope = trio.CancelScope()  # of the open one
        self._news = trio.Event()
        screen.cut_ins.append(self._cut_in)

    def tell(self, transcript: Transcript) -> None:
        """Say whose pieces these are: a line of it is ended where something cuts in."""
        self._transcript = transcript

    def show(self, pieces: Sequence[Piece], asked: Approval | None = None) -> None:
        """Print pieces, or keep them while a question is open; ask what they ask.

        `asked`: the question that they end with. Where there are none it was told before,
        and something else stands last: it is not asked then.
        """
        if self._open is None:
            self._screen.pieces(pieces)
        else:
            self._kept += pieces
            if len(self._kept) > KEPT:
                self._take_back("left as it is: much has happened meanwhile")
        if pieces and asked is not None:
            self._offer(asked)

    def _offer(self, approval: Approval) -> None:
        may = self._ask and _SCOPE in self._client.opened.device.scopes
        if not may or approval.state is not ApprovalState.PENDING:
            return
        if self._open is not None or self._cut_off:
            self._next.append(approval)
        elif in_foreground():
            self._put(approval)

    def meet(self, event: ClientEvent) -> None:
        """Take a question back that has ended; go on asking where events go on."""
        if isinstance(event, Resumed) and event.verdict == "ok":
            self._go_on()
        if isinstance(event, EventSeen) and isinstance(event.data, ApprovalResolved):
            ended = event.data.approval.id
            self._next = [one for one in self._next if one.id != ended]
            if self._open is not None and self._open.id == ended:
                self._take_back()

    def settle(self, waiting: Sequence[Approval]) -> None:
        """Drop what does not wait any more, after events were missed; then go on."""
        ids = {one.id for one in waiting}
        if self._open is not None and self._open.id not in ids:
            self._take_back(_gone(self._open))
        for gone in [one for one in self._next if one.id not in ids]:
            self._next.remove(gone)
            self.show([Piece(line(INDENT, dim(_gone(gone))))])
        self._go_on()

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Ask one question after the other, until cancelled."""
        task_status.started()
        while True:
            await self._news.wait()
            self._news = trio.Event()
            while (approval := self._to_ask()) is not None:
                await self._ask_about(approval)

    def _to_ask(self) -> Approval | None:
        """Return the open one; else open the next, which may have scrolled away."""
        if self._open is None and self._next and not self._cut_off and in_foreground():
            self._break()
            following = self._next.pop(0)
            self._put(following)
            self._screen.lines(approval_lines(following, self._screen.clock()))
        return self._open

    def _put(self, approval: Approval) -> None:
        """Have this one open: it stands last, whole."""
        self._open = approval
        self._scope = trio.CancelScope()
        self._news.set()

    def _take_back(self, why: str | None = None) -> None:
        """Close the open one, at once: what is printed next stands below its prompt."""
        if self._sending:
            return
        self._scope.cancel(reason="the question needs no answer any more")
        if self._prompting:
            self._prompting = False
            self._screen.say()  # ends the line of the prompt
        if why is not None:
            self._say(why)
        self._close()

    def _close(self) -> None:
        self._open = None
        kept, self._kept = self._kept, []
        self._screen.pieces(kept)

    def _cut_in(self) -> None:
        """The connection is lost, and a line will say so.

        An answer that is on its way is carried over by the client.
        """
        if self._open is not None and not self._sending:
            self._next.insert(0, self._open)
            self._take_back("not answered: it is asked again if it still waits")
        self._cut_off = self._transcript is not None
        self._break()

    def _go_on(self) -> None:
        self._cut_off = False
        self._news.set()

    def _break(self) -> None:
        if self._transcript is not None and self._open is None:
            self._screen.pieces(self._transcript.finish())

    def _say(self, text: str) -> None:
        self._screen.say(INDENT, dim(text))

    async def _ask_about(self, approval: Approval) -> None:
        try:
            with self._scope:
                await self._answer(approval)
        finally:
            self._sending = False
            if self._open is approval:  # else it was taken back
                self._close()

    async def _answer(self, approval: Approval) -> None:
        try:
            params = await self._typed(approval)
            if params is None:
                self._say("left as it is: it waits")
                return
            self._sending = True  # what is sent is not taken back
            await self._client.call(APPROVAL_ANSWER, params)
        except CommandError as error:
            self._screen.problem(error.message, error.details)
        except Refusal as refusal:
            self._screen.problem(refusal_text(refusal, self._screen.clock()))

    async def _typed(self, approval: Approval) -> ApprovalAnswerParams | None:
        """Return the answer; `None`: there is to be none."""
        self._prompting = True
        try:
            return await self._params(approval)
        except trio.Cancelled:
            if self._prompting:  # by Ctrl-C
                self._screen.say()  # ends the line of the prompt
            raise
        finally:
            self._prompting = False

    async def _params(self, approval: Approval) -> ApprovalAnswerParams | None:
        choice = await self._choice(approval)
        if choice is None:
            return None
        if choice.effect is not ChoiceEffect.ANSWER:
            return plain_answer(approval, choice)
        params = await from_person(self._screen, approval, choice)
        return params if await confirm("Send this?") else None

    async def _choice(self, approval: Approval) -> Choice | None:
        words = {
            _WORDS[choice.effect]: choice
            for choice in approval.choices
            if choice.effect in _WORDS
        }
        told = ", ".join(f"{word[0]}({word[1:]})" for word in words)
        prompt = f"  {'here':<{FIELD}}{told}, Enter leaves it > "
        while typed := await read_word(prompt):
            for word, choice in words.items():
                if typed in {word, word[0]}:
                    return choice
        return None


def _gone(approval: Approval) -> str:
    return f"{approval.id} does not wait any more: answered, or ended with its Agent"
