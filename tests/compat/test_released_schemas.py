"""A client that was written against a released schema goes on working: changes only add."""

import json
from pathlib import Path

import pytest

from tests.support.release_schema import RELEASED, main
from tests.support.schema_breaks import breaks
from transport.protocol.schema import protocol_schema
from transport.protocol.session import PROTOCOL_VERSION


@pytest.mark.parametrize(
    "path", sorted(RELEASED.glob("2.*.json")), ids=lambda p: p.stem
)
def test_nothing_that_was_released_is_broken(path: Path) -> None:
    found = breaks(json.loads(path.read_text()), protocol_schema())
    assert not found, "clients of this version would break:\n" + "\n".join(found)


def test_the_version_that_is_spoken_has_its_promise_on_file() -> None:
    assert (RELEASED / f"{PROTOCOL_VERSION}.schema.json").is_file()


def test_a_promise_on_file_is_not_replaced_by_accident(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sorted((path, path.read_bytes()) for path in RELEASED.iterdir())
    assert main([]) == 1
    assert "a promise is kept" in capsys.readouterr().err
    assert before == sorted((path, path.read_bytes()) for path in RELEASED.iterdir())
