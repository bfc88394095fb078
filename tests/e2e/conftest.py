"""Commands that many tests here type: they start warm."""

import pytest

from clients.cli import demo_actors


@pytest.fixture
def warm_actors(warm: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the actors of a stage type warm commands."""
    monkeypatch.setattr(demo_actors, "_COMMAND", warm)
