"""A thread as a page of Markdown: nothing in it gets out of its place."""

from clients.cli.lines.items import near
from clients.cli.lines.markdown import markdown_lines
from clients.cli.style import paint
from tests.support import cli_samples as samples
from tests.support.cli_samples import CLOCK
from transport.protocol.items import FileChange, Item


def page(*items: Item, title: str = "Add a cart page", full: bool = False) -> str:
    thread = samples.thread(title=title)
    turn = samples.turn().model_copy(update={"items": list(items)})
    rows = markdown_lines(thread, [turn], CLOCK, full=full, more=False)
    return "\n".join(paint(row, colour=False) for row in rows)


def test_a_turn_is_a_section_and_each_voice_has_its_own_form() -> None:
    told = page(samples.user_message(), samples.command(), samples.message())
    assert told.startswith("# Add a cart page\n\n`019ad9a0-1111")
    assert "\n## 11:56, completed in 12 s\n" in told
    assert "**You**\n\n> Add a cart page.\n> Keep it small.\n" in told
    assert "\n```\n$ make test\n3 passed\nexit 0, 1.2 s\n```\n" in told
    assert told.endswith("**Codex**\n\nThe cart page is there.")


def test_a_fence_is_longer_than_what_is_in_it() -> None:
    told = page(samples.command(output="```\n# not a heading\n````\n"))
    assert "\n`````\n$ make test\n```\n# not a heading\n````\n" in told


def test_a_title_means_nothing_to_markdown_and_nothing_to_a_terminal() -> None:
    told = page(title="<b>[x](y)\x1b[2J*")
    assert told.splitlines()[0] == r"# \<b\>\[x\](y)\*"


def test_diffs_come_with_full_alone_and_files_are_named_from_the_folder() -> None:
    change = samples.change()
    whole = [
        one.model_copy(update={"path": f"/home/ann/shop/{one.path}"})
        for one in change.changes
    ]
    change = change.model_copy(update={"changes": whole})
    assert "edit   shop/cart.py  new file, +1 -0" in page(change)
    assert "+CART" not in page(change)
    assert "+CART" in page(change, full=True)
    elsewhere = near(change, "/home/ann/sho")
    assert isinstance(elsewhere, FileChange)
    assert elsewhere.changes[0].path.startswith("/home/ann/shop/")
