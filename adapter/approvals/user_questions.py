"""Questions that the model asks the person (`request_user_input`). Sans-IO.

PROTOCOL.md section 5. They are answered by texts; no answer at all is Codex's way to say
that the person did not want to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from adapter.approvals import choices
from adapter.approvals.choices import Result, Way, fixed, refuse_filled, unfit
from adapter.approvals.legible import (
    hidden_lines,
    lines_fit,
    shown_lines,
    text_fits,
    unknown_lines,
)
from adapter.approvals.questions import Question, Raw
from adapter.limits import LABEL_BYTES, OPTIONS, QUESTIONS, TEXT_BYTES
from adapter.runtime.acts import Filled
from adapter.shapes.shapes import mapping, maybe_whole, sequence, text, wire_id
from adapter.shapes.texts import cut, one_line
from generated import codex
from transport.protocol.approvals import (
    ApprovalDetail,
    ApprovalKind,
    AskedQuestion,
    ChoiceEffect,
    QuestionOption,
)

NO_ANSWERS: Final[Result] = {"answers": {}}

_SHOWN: Final = frozenset(
    {"autoResolutionMs", "isBlocking", "itemId", "questions", "threadId", "turnId"}
)
_SHOWN_OF_ONE: Final = frozenset(
    {"header", "id", "isOther", "isSecret", "options", "question"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _One:
    """A question as it came. `id`: the one that clients are told."""

    id: str
    codex_id: str
    header: str
    words: str
    secret: bool
    other: bool
    options: Sequence[tuple[str, str]]

    @property
    def fits(self) -> bool:
        words = (self.header, *(part for option in self.options for part in option))
        return (
            len(self.options) <= OPTIONS
            and text_fits(self.words, TEXT_BYTES)
            and all(text_fits(part, LABEL_BYTES) for part in words)
        )

    def shown(self) -> AskedQuestion:
        return AskedQuestion(
            id=self.id,
            header=cut(self.header, LABEL_BYTES),
            text=cut(self.words, TEXT_BYTES),
            secret=self.secret,
            other=self.other,
            options=[
                QuestionOption(
                    label=cut(label, LABEL_BYTES),
                    description=cut(description, LABEL_BYTES),
                )
                for label, description in self.options[:OPTIONS]
            ],
        )

    def check(self, answers: Sequence[str]) -> None:
        """Raise `InvalidParams` unless these are answers to this question."""
        if not answers or not all(answer.strip() for answer in answers):
            raise unfit("answers", f"The answer to {self.id} is empty; leave it out.")
        labels = [label for label, _ in self.options]
        if not self.other and not set(answers) <= set(labels):
            raise unfit("answers", f"{self.id} must be one of its options.")


def about_input(raw: Raw) -> Question:
    """Raises one of `MISFITS`."""
    asked = cast("codex.ToolRequestUserInputParams", raw)
    ones = [_read(mapping(one)) for one in sequence(asked["questions"])]
    allows = unknown_lines(raw, _SHOWN)
    for one in sequence(asked["questions"]):
        allows += unknown_lines(mapping(one), _SHOWN_OF_ONE)
    allows += hidden_lines("".join(map(_all_words, ones)))
    ids = {one.id for one in ones}
    whole = 1 <= len(ones) <= QUESTIONS and len(ids) == len(ones)
    whole = whole and all(one.fits for one in ones) and lines_fit(allows)
    detail = ApprovalDetail(
        questions=[one.shown() for one in ones[:QUESTIONS]], allows=shown_lines(allows)
    )
    yes = {choices.ANSWER: _answer(ones)} if whole else {}
    no = fixed("Answer nothing; the turn goes on", ChoiceEffect.DENY, NO_ANSWERS)
    return Question(
        kind=ApprovalKind.QUESTION,
        thread_id=wire_id(raw["threadId"]),
        turn_id=wire_id(raw["turnId"]),
        title=_title(ones),
        detail=detail,
        choices={**yes, choices.DENY: no},
        lasts_ms=maybe_whole(asked.get("autoResolutionMs")),
    )


def _read(raw: Raw) -> _One:
    asked = cast("codex.ToolRequestUserInputQuestion", raw)
    options = [mapping(option) for option in sequence(asked.get("options"))]
    return _One(
        id=wire_id(asked["id"]),
        codex_id=text(asked["id"]),
        header=text(asked["header"]),
        words=text(asked["question"]),
        secret=asked.get("isSecret") is True,
        other=asked.get("isOther") is True or not options,
        options=[(text(one["label"]), text(one["description"])) for one in options],
    )


def _all_words(one: _One) -> str:
    options = "".join(part for option in one.options for part in option)
    return f"{one.header}{one.words}{options}"


def _title(ones: Sequence[_One]) -> str:
    if len(ones) == 1:
        return one_line(ones[0].words, 120) or "A question"
    return f"{len(ones)} questions"


def _answer(ones: Sequence[_One]) -> Way:
    known = {one.id: one for one in ones}
    return Way(label="Answer", effect=ChoiceEffect.ANSWER, reply=partial(_reply, known))


def _reply(known: Mapping[str, _One], filled: Filled) -> Result:
    """Return what Codex is told. Raises `InvalidParams`."""
    refuse_filled(filled.content, "content")
    if not filled.answers:
        raise unfit("answers", "Nothing is answered: that is the choice deny.")
    for name, answers in filled.answers.items():
        if name not in known:
            raise unfit("answers", "There is no question of that id.")
        known[name].check(answers)
    return {
        "answers": {
            known[name].codex_id: {"answers": list(answers)}
            for name, answers in filled.answers.items()
        }
    }
