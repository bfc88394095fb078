"""Questions to a person: what they name comes from afar."""

from io import StringIO

import pytest

from clients.cli.asking import confirm


async def test_a_name_in_a_question_cannot_play_with_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("yes\n"))
    assert await confirm("Forget a\x1b[2K\rb\u202ec?")
    assert capsys.readouterr().out == "Forget a[2K bc? [y/N] "
