"""How a message that grows is told on a screen, once and whole."""

from clients.cli.transcript import Transcript
from tests.support import cli_samples as samples
from tests.support.cli_samples import BLOG, SHOP
from tests.support.story import Story, resumed, told
from transport.protocol.events import (
    ItemCompleted,
    ItemStarted,
    Open,
)
from transport.protocol.items import ItemStatus

RUNNING = ItemStatus.IN_PROGRESS


def test_a_message_that_something_interrupts_goes_on_with_its_label() -> None:
    story = Story()
    item = samples.message("", RUNNING)
    shown = told(
        Transcript(),
        [
            story.event(ItemStarted(ref=1, item=item)),
            story.delta(1, "one "),
            story.event(ItemStarted(ref=2, item=samples.command(RUNNING))),
            story.delta(1, "two"),
            story.event(ItemCompleted(ref=1, item=samples.message("one two"))),
        ],
    )
    assert shown == "codex  one \nrun    make test\ncodex  two\n"


def test_what_the_deltas_lacked_comes_with_the_completed_message() -> None:
    story = Story()
    shown = told(
        Transcript(),
        [
            story.event(ItemStarted(ref=1, item=samples.message("", RUNNING))),
            story.delta(1, "one "),
            story.event(ItemCompleted(ref=1, item=samples.message("one two three"))),
        ],
    )
    assert shown == "codex  one two three\n"


def test_a_message_that_became_another_is_told_again_whole() -> None:
    story = Story()
    shown = told(
        Transcript(),
        [
            story.event(ItemStarted(ref=1, item=samples.message("", RUNNING))),
            story.delta(1, "half a"),
            story.event(ItemCompleted(ref=1, item=samples.message("whole"))),
        ],
    )
    assert shown == "codex  half a\ncodex  (the whole message:)\ncodex  whole\n"


def test_a_message_that_was_cut_for_the_wire_is_not_told_twice() -> None:
    story = Story()
    cut = samples.message("begin…end").model_copy(update={"truncated": ["text"]})
    shown = told(
        Transcript(),
        [
            story.event(ItemStarted(ref=1, item=samples.message("", RUNNING))),
            story.delta(1, "begin middle end"),
            story.event(ItemCompleted(ref=1, item=cut)),
        ],
    )
    assert shown == "codex  begin middle end\n"


def test_whoever_comes_late_sees_the_open_message_from_its_beginning() -> None:
    story = Story()
    late = Open(ref=7, seq=3, item=samples.message("so far ", RUNNING))
    shown = told(
        Transcript(),
        [
            resumed("new", late),
            story.delta(7, "and on"),
            story.event(ItemCompleted(ref=7, item=samples.message("so far and on"))),
        ],
    )
    assert shown == "codex  so far and on\n"


def test_an_open_item_is_placed_though_its_turn_was_not_told() -> None:
    shop = samples.message("for the shop", RUNNING)
    blog = samples.message("for the blog", RUNNING)
    opened = (
        Open(ref=1, seq=1, item=shop, thread_id=SHOP),
        Open(ref=2, seq=2, item=blog, thread_id=BLOG),
        Open(ref=3, seq=3, item=shop, thread_id="child", root_thread_id=SHOP),
    )
    names = {SHOP: "Shop", BLOG: "Blog"}
    assert told(Transcript(names=names), [resumed("gap", *opened[:2])]).endswith(
        f"── {SHOP}  Shop\ncodex  for the shop\n── {BLOG}  Blog\ncodex  for the blog\n"
    )
    one = told(Transcript(root=SHOP), [resumed("new", *opened)])
    assert one == "codex  for the shop\n── sub-agent child\ncodex  for the shop\n"
