"""Remote text on a terminal: nothing moves, nothing recolours, nothing hides."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.cli.plain import ROW, PlainStream, block, one_line, safe, visible, wrapped

# Format characters that are seen, and joiners that scripts and emoji need.
SEEN = {*map(chr, range(0x600, 0x606)), "\u06dd", "\u070f", "\u0890", "\u0891"} | {
    "\u08e2",
    "\U000110bd",
    "\U000110cd",
}
JOINERS = {"\u200c", "\u200d"}
TEXTS = st.text(st.characters() | st.sampled_from("\x1b[\x9b;mK\r\n\u202e0123"))


def is_dangerous(char: str) -> bool:
    kind = unicodedata.category(char)
    if kind in {"Cc", "Cs", "Zl", "Zp"}:
        return char not in "\n\t"
    return kind == "Cf" and char not in SEEN | JOINERS


def test_every_control_and_invisible_character_of_unicode_is_dropped() -> None:
    left = [hex(c) for c in range(0x110000) if any(map(is_dangerous, block(chr(c))))]
    assert left == []


def test_every_control_and_invisible_character_is_written_as_an_escape() -> None:
    dangerous = [chr(c) for c in range(0x110000) if is_dangerous(chr(c))]
    assert all(visible(char).startswith("\\") for char in dangerous)
    assert all(visible(char).startswith("\\") for char in JOINERS | {"\t", "\u00a0"})


# What Unicode calls "default ignorable" (DerivedCoreProperties): shown as nothing.
IGNORABLE = [
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F),
    (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
]  # fmt: skip


def test_nothing_that_is_shown_as_nothing_hides_in_what_is_decided_on() -> None:
    shown = [visible(chr(c)) for a, b in IGNORABLE for c in range(a, b + 1)]
    assert all(text.startswith("\\") for text in shown)


@given(TEXTS)
def test_a_row_that_is_decided_on_fits_a_terminal_and_none_of_it_is_lost(
    text: str,
) -> None:
    rows = wrapped(text)
    joined = "".join(row if on else f"\n{row}" for on, row in rows)
    assert joined == f"\n{visible(text)}"
    assert all(len(row) <= ROW for _, row in rows)


def test_wide_letters_take_two_cells_of_a_row() -> None:
    assert [len(row) for _, row in wrapped("漢" * 70)] == [ROW // 2, ROW // 2, 4]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2K\x1b[1A\rover", "\nover"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07rest", "]0;titlerest"),
        ("\x1b]0;never ended, and then", "]0;never ended, and then"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\u202egpj.exe", "agpj.exe"),
        ("tag\U000e0041\U000e0042", "tag"),
        ("😀\u200d👩", "😀\u200d👩"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_text_that_is_read_loses_its_controls_and_no_letter(
    raw: str, shown: str
) -> None:
    assert block(raw) == shown


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("rm -rf x # \x1b[8mhidden", "rm -rf x # \\x1b[8mhidden"),
        ("echo ok\rrm -rf /", "echo ok\\rrm -rf /"),
        ("cat a\u202etxt.exe", "cat a\\u202etxt.exe"),
        ("ls\u00a0-la", "ls\\xa0-la"),
        ("one\ntwo", "one\ntwo"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("blank\u3164x", "blank\\u3164x"),
    ],
)
def test_text_that_is_decided_on_shows_all_that_it_holds(raw: str, shown: str) -> None:
    assert visible(raw) == shown


@given(TEXTS)
def test_what_is_visible_is_safe_as_it_is(text: str) -> None:
    assert safe(visible(text)) == visible(text).replace("\n", " ")


@given(TEXTS)
def test_a_line_never_holds_a_line_feed_or_a_control_character(text: str) -> None:
    for shown in (one_line(text), safe(text)):
        assert not any(map(is_dangerous, shown))
        assert "\n" not in shown


@given(TEXTS, st.lists(st.integers(0, 50)))
def test_a_stream_cut_anywhere_shows_what_the_whole_text_would(
    text: str, cuts: list[int]
) -> None:
    stream, shown, at = PlainStream(), "", 0
    for cut in [*sorted(cuts), len(text)]:
        shown += stream.feed(text[at:cut])
        at = max(at, cut)
    assert shown + stream.finish() == block(text)


def test_a_sequence_that_never_ends_does_not_hold_back_the_stream() -> None:
    stream = PlainStream()
    stream.feed("\x1b[")
    assert stream.feed("1;" * 40).startswith("[1;1;")


def test_a_long_line_is_cut_with_a_mark() -> None:
    assert one_line("a  b\n c", 4) == "a b…"
    assert one_line("abcd", 4) == "abcd"
