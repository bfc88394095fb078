"""A transcript is the same page whatever ids, times and folders a run had."""

from typing import Final

from tests.support.transcripts import Page, Stand

DEVICE: Final = ("5d41402abc4b2a76", "bf32d0c7ad219456")
RUNS: Final = (
    ("01b22e55-10dc", "01b22e56-77aa", "apr_5d41402abc4b2a76b9719d911017c592", "/a"),
    ("01b3ffff-0001", "01b3ffff-0009", "apr_00000000000000000000000000000001", "/bc/d"),
)
REST: Final = "-7221-b972-3e1191277281"


def page(thread: str, turn: str, approval: str, folder: str, *, slow: bool) -> str:
    made = Page(Stand({folder: "/home/ann"}))
    made.stand.know(*DEVICE)
    made.title("Morning")
    made.tell("It begins.")
    seconds = "1.2 s" if slow else "340 ms"
    made.block(
        ("phone |", f"new thread {thread}{REST} as turn {turn}{REST}\nin {seconds}\n"),
        ("phone $", f"threadgate read {thread}"),
        ("phone |", f"THREAD  CHANGED  TITLE\n{thread}  {seconds}  Six breads"),
        (
            "phone |",
            f"{approval} asks at 09:15, yes: threadgate approve {approval[:12]}",
        ),
        (
            "desk  |",
            f"device {DEVICE[0]} at tcp://127.0.0.1:{4000 + slow}\n  in {folder}",
        ),
    )
    return made.text()


def test_two_runs_make_one_page() -> None:
    first, second = (page(*run, slow=bool(n)) for n, run in enumerate(RUNS))
    assert first == second


def test_the_same_thing_has_one_stand_in_and_others_have_theirs() -> None:
    rows = page(*RUNS[1], slow=True).splitlines()
    assert (
        "phone | new thread 01a22e55-13fb-7221-b972-3e1191277280 as turn 01a22e56"
        in ("\n".join(rows))
    )
    assert "phone $ threadgate read 01a22e55" in rows
    assert "phone | 01a22e55  1 s      Six breads" in rows
    assert "desk  |   in /home/ann" in rows


def test_a_text_that_was_folded_at_the_screen_s_width_is_one_line_again() -> None:
    stand = Stand({"/root/long": "/home/ann"})
    folded = "  folder   | /root/lo\n           > ng/bakery\n  reason   why"
    assert stand.rows(folded) == ["  folder   /home/ann/bakery", "  reason   why"]


def test_the_qr_code_and_the_pairing_text_are_not_kept() -> None:
    rows = Stand({}).rows("█▀▀█\n\nTGATE:AEQY5HGB7777\n\n\nIt is good")
    assert rows == ["TGATE:AEQY5HGBZWYHNIEAJ5P2X22UPABC4MP3NTTB…", "", "It is good"]
