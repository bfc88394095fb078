"""The book of hosts: a secret file, many records, and which one a command means."""

import json
import stat
from pathlib import Path

import pytest
import trio

from clients.cli.exits import FailedError, UsageProblemError
from clients.cli.hosts import (
    HostBook,
    HostRecord,
    choose_host,
    load_book,
    record_of,
    save_book,
)
from tests.support.cli_runs import cli_environ, run_cli
from transport.client import Paired
from transport.keys import KeyFileError, PrivateKey, Secret
from transport.pairing import PairingText
from transport.protocol.gateway import AgentInfo, DeviceInfo

pytestmark = pytest.mark.usefixtures("warm_runs")

PSK = bytes(range(32))
KEY = bytes(range(32, 64))


def record(name: str = "ann-desk", agent_id: str = "a" * 32) -> HostRecord:
    paired = Paired(
        device=DeviceInfo(id="0a1b2c3d4e5f6071", name="phone", scopes=["read"]),
        agent=AgentInfo(id=agent_id, name=name, version="0.1.0"),
        psk=Secret(PSK),
        url="tcp://b:1",
    )
    urls = ("tcp://a:1", "tcp://b:1")
    text = PairingText(agent_key=KEY, secret=Secret(PSK), urls=urls)
    return record_of(paired, text, paired_at=7)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "client" / "hosts.json"


def test_a_book_comes_back_as_it_was_written_and_is_for_its_owner_alone(
    file: Path,
) -> None:
    book = HostBook().with_host(record()).with_host(record("other", "b" * 32))
    save_book(file, book)
    assert load_book(file) == book
    assert load_book(file).hosts[0].psk == PSK
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_no_file_is_an_empty_book(file: Path) -> None:
    assert load_book(file) == HostBook()


def test_a_book_that_others_can_read_is_refused(file: Path) -> None:
    save_book(file, HostBook().with_host(record()))
    file.chmod(0o644)
    with pytest.raises(KeyFileError, match="chmod 600"):
        load_book(file)


def test_something_else_than_a_book_is_not_overwritten_in_silence(file: Path) -> None:
    save_book(file, HostBook())
    file.write_text("[]")
    with pytest.raises(FailedError, match="not a book of hosts"):
        load_book(file)


def test_what_a_later_version_has_written_is_kept(file: Path) -> None:
    save_book(file, HostBook().with_host(record()))
    raw = json.loads(file.read_text())
    raw["note"], raw["hosts"][0]["colour"] = "x", "blue"
    file.write_text(json.dumps(raw))
    save_book(file, load_book(file).with_host(record("other", "b" * 32)))
    again = json.loads(file.read_text())
    assert again["note"] == "x"
    assert again["hosts"][0]["colour"] == "blue"


def test_pairing_anew_replaces_the_record_of_the_same_agent() -> None:
    book = HostBook().with_host(record()).with_host(record("renamed"))
    assert [host.name for host in book.hosts] == ["renamed"]


def test_the_address_that_worked_is_tried_first() -> None:
    targets = record().targets(PrivateKey.generate())
    assert [target.url for target in targets] == ["tcp://b:1", "tcp://a:1"]
    assert targets[0].agent_key == KEY
    assert targets[0].psk == Secret(PSK)


def test_the_key_of_a_pairing_does_not_reach_a_log() -> None:
    assert "psk" not in repr(record())
    assert PSK.hex() not in repr(record())


def test_without_a_record_the_agent_of_this_machine_is_meant() -> None:
    assert choose_host(HostBook(), None, {}) is None


def test_the_only_host_is_meant_unless_local_is_said() -> None:
    book = HostBook().with_host(record())
    assert choose_host(book, None, {}) == record()
    assert choose_host(book, "local", {}) is None
    assert choose_host(book, None, {"THREADGATE_HOST": "local"}) is None
    assert choose_host(book, "aaaa", {}) == record()


def test_of_several_hosts_none_is_guessed() -> None:
    book = HostBook().with_host(record()).with_host(record("other", "b" * 32))
    with pytest.raises(UsageProblemError, match="--host") as caught:
        choose_host(book, None, {})
    assert len(caught.value.details) == 2
    assert choose_host(book, "other", {}) == record("other", "b" * 32)
    twins = book.with_host(record("other", "c" * 32))
    with pytest.raises(UsageProblemError, match="several"):
        choose_host(twins, "other", {})
    with pytest.raises(UsageProblemError, match="nobody"):
        choose_host(book, "nobody", {})
    with pytest.raises(UsageProblemError, match="none is known"):
        choose_host(HostBook(), "nobody", {})


async def test_hosts_lists_renames_forgets_and_chooses_a_default(
    tmp_path: Path,
) -> None:
    environ = cli_environ(tmp_path)
    file = tmp_path / "client" / "hosts.json"
    book = HostBook().with_host(record()).with_host(record("other", "b" * 32))
    tmp_path.chmod(0o700)
    save_book(file, book)

    async def hosts(*args: str, code: int = 0) -> str:
        ran = await run_cli("hosts", *args, environ=environ)
        assert ran.code == code, ran
        return ran.out + ran.err

    with trio.fail_after(240):
        assert PSK.hex() not in await hosts()
        assert "*" not in await hosts()
        assert "mean other" in await hosts("default", "other")
        assert choose_host(load_book(file), None, {}) == record("other", "b" * 32)
        assert "needed" in await hosts("rename", "other", "ann-desk", code=2)
        assert "attic" in await hosts("rename", "bbbb", "attic")
        told = json.loads(await hosts("list", "--json"))["hosts"]
        assert [(row["name"], row["default"]) for row in told] == [
            ("ann-desk", False),
            ("attic", True),
        ]
        assert "--yes" in await hosts("forget", "attic", code=2)
        assert "devices revoke" in await hosts("forget", "attic", "--yes")
    assert load_book(file) == HostBook().with_host(record())


def test_a_default_is_no_default_any_more_when_it_is_forgotten_or_taken_back() -> None:
    one, other = record(), record("other", "b" * 32)
    book = HostBook().with_host(one).with_host(other).with_default(other)
    assert choose_host(book, None, {}) == other
    assert choose_host(book, None, {"THREADGATE_HOST": "ann-desk"}) == one
    with pytest.raises(UsageProblemError, match="hosts default"):
        choose_host(book.with_default(None), None, {})
    third = book.with_host(record("third", "c" * 32)).without(other)
    with pytest.raises(UsageProblemError):
        choose_host(third, None, {})
