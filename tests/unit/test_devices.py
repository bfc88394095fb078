"""The file of paired devices: written whole, refused when damaged, rights as of now."""

import json
from pathlib import Path

import pytest

from agent.access.scopes import narrowed
from agent.edge_limits import DEVICES
from agent.errors import StorageError
from agent.pairing.device_records import Device, DevicesFileError, plain_name
from agent.pairing.devices import Devices
from transport.errors import InvalidParams, NotFound, Overloaded
from transport.identities import PrivateKey, Secret
from transport.protocol.admin import DeviceGrantParams
from transport.protocol.gateway import Ceiling

CEILING = Ceiling(sandbox="workspace-write", approval_policy=["on-request"], roots=[])


def device(number: int = 1, public: bytes | None = None) -> Device:
    return Device(
        id=f"{number:016x}",
        public=public or PrivateKey.generate().public,
        psk=Secret(bytes([number % 256]) * 32),
        name=f"device {number}",
        scopes=frozenset({"read"}),
        ceiling=CEILING,
        follows_threads=True,
        created_at=1,
        paired_by_check=True,
    )


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder


def open_devices(folder: Path) -> Devices:
    return Devices(folder / "devices.json", now_ms=Clock())


def test_a_device_is_there_after_a_restart(folder: Path) -> None:
    one = device()
    open_devices(folder).add(one)
    again = open_devices(folder)
    assert again.get(one.id) == one
    assert again.psk_of(one.public) == b"\x01" * 32


def test_a_revoked_device_keeps_its_name_and_loses_its_psk(folder: Path) -> None:
    one = device()
    devices = open_devices(folder)
    devices.add(one)
    devices.revoke(one.id)
    devices.save()
    for found in (devices, open_devices(folder)):
        left = found.get(one.id)
        assert left.revoked
        assert left.psk is None
        assert found.psk_of(one.public) is None
    assert (b"\x01" * 32).hex() not in (folder / "devices.json").read_text()


def test_a_caller_dies_with_any_change_of_its_rights(folder: Path) -> None:
    one = device()
    devices = open_devices(folder)
    devices.add(one)
    first = devices.caller(one.id)
    assert first.alive()
    devices.grant(DeviceGrantParams(device_id=one.id, scopes=["read", "write"]))
    second = devices.caller(one.id)
    assert not first.alive()
    assert second.alive()
    assert second.scopes == {"read", "write"}
    devices.revoke(one.id)
    assert not second.alive()


def test_pairing_the_same_key_again_replaces_its_record(folder: Path) -> None:
    key = PrivateKey.generate().public
    devices = open_devices(folder)
    devices.add(device(1, key))
    old = devices.caller(f"{1:016x}")
    devices.add(device(2, key))
    assert [one.id for one in devices.all()] == [f"{2:016x}"]
    assert not old.alive()
    assert devices.psk_of(key) == b"\x02" * 32


def test_only_a_change_of_what_is_seen_gives_a_new_sight(folder: Path) -> None:
    one = device()
    devices = open_devices(folder)
    devices.add(one)
    devices.grant(DeviceGrantParams(device_id=one.id, scopes=["read", "write"]))
    devices.grant(DeviceGrantParams(device_id=one.id, sandbox="read-only"))
    assert devices.sight(one.id) == 0
    devices.grant(DeviceGrantParams(device_id=one.id, roots=["/srv"]))
    assert devices.sight(one.id) == 1
    devices.grant(DeviceGrantParams(device_id=one.id, scopes=["write"]))
    assert devices.sight(one.id) == 2


def test_the_same_roots_without_the_folders_of_threads_are_a_new_sight(
    folder: Path,
) -> None:
    one = device()
    devices = open_devices(folder)
    devices.add(one)
    devices.grant(DeviceGrantParams(device_id=one.id, roots=[*one.ceiling.roots]))
    assert not devices.caller(one.id).follows_threads
    assert devices.sight(one.id) == 1


def test_a_grant_sets_what_it_names_and_leaves_the_rest(folder: Path) -> None:
    one = device()
    devices = open_devices(folder)
    devices.add(one)
    granted = devices.grant(DeviceGrantParams(device_id=one.id, sandbox="read-only"))
    assert granted.ceiling.sandbox == "read-only"
    assert granted.ceiling.approval_policy == ["on-request"]
    assert granted.scopes == {"read"}


def test_a_device_that_is_given_folders_follows_threads_no_more(folder: Path) -> None:
    one = device()
    devices = open_devices(folder)
    devices.add(one)
    assert devices.grant(
        DeviceGrantParams(device_id=one.id, scopes=["write"])
    ).follows_threads
    devices.grant(DeviceGrantParams(device_id=one.id, roots=["/srv"]))
    assert not devices.caller(one.id).follows_threads
    assert not open_devices(folder).get(one.id).follows_threads


def test_nothing_can_be_granted_to_a_revoked_or_an_unknown_device(
    folder: Path,
) -> None:
    one = device()
    devices = open_devices(folder)
    devices.add(one)
    devices.revoke(one.id)
    for device_id in (one.id, "f" * 16):
        with pytest.raises(NotFound):
            devices.grant(DeviceGrantParams(device_id=device_id, scopes=["write"]))


def test_a_full_disk_stores_nothing_and_keeps_what_was_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = device(1)
    devices = open_devices(folder)
    devices.add(first)
    before = (folder / "devices.json").read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError):
        devices.add(device(2))
    with pytest.raises(StorageError):
        devices.grant(DeviceGrantParams(device_id=first.id, scopes=["write"]))
    monkeypatch.undo()
    assert [one.id for one in devices.all()] == [first.id]
    assert devices.get(first.id).scopes == {"read"}
    assert (folder / "devices.json").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["devices.json"]


def test_a_full_disk_keeps_nobody_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = device()
    devices = open_devices(folder)
    devices.add(one)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    devices.revoke(one.id)
    assert devices.psk_of(one.public) is None
    with pytest.raises(StorageError):
        devices.save()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"not json",
        b'{"form": 2, "devices": []}',
        b'{"form": 1, "devices": [{"id": "x"}]}',
        b'{"form": 1, "devices": [], "more": 1}',
    ],
)
def test_a_damaged_file_is_refused_and_left_alone(folder: Path, data: bytes) -> None:
    path = folder / "devices.json"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(DevicesFileError, match="backup"):
        open_devices(folder)
    assert path.read_bytes() == data


def test_a_file_that_names_a_key_twice_is_damaged(folder: Path) -> None:
    devices = open_devices(folder)
    devices.add(device(1))
    path = folder / "devices.json"
    data = json.loads(path.read_text())
    data["devices"].append({**data["devices"][0], "id": "f" * 16})
    path.write_text(json.dumps(data))
    with pytest.raises(DevicesFileError, match="twice"):
        open_devices(folder)


def test_the_number_of_records_is_bounded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.pairing.devices.DEVICES", 3)
    devices = open_devices(folder)
    for number in range(3):
        devices.add(device(number))
    with pytest.raises(Overloaded):
        devices.add(device(9))
    assert DEVICES >= 3


def test_last_seen_is_not_written_for_every_session(folder: Path) -> None:
    clock = Clock()
    devices = Devices(folder / "devices.json", now_ms=clock)
    one = device()
    devices.add(one)
    devices.seen(one.id)
    clock.now += 1_000
    devices.seen(one.id)
    assert devices.get(one.id).last_seen_at == 1_001_000
    assert open_devices(folder).get(one.id).last_seen_at == 1_000_000
    devices.keep_seen()
    assert open_devices(folder).get(one.id).last_seen_at == 1_001_000


def test_no_secret_shows_in_a_repr() -> None:
    assert (b"\x01" * 32).hex() not in repr(device())
    assert "\\x01\\x01" not in repr(device())


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"Kitchen tablet", "Kitchen tablet"),
        (b"evil\x1b[2J\x1b[1;31mname", "evil[2J[1;31mname"),
        (b"two\nlines\r\n", "two lines"),
        ("right\u202eto\u202cleft".encode(), "righttoleft"),
        ("\u200b\ufeff".encode(), "unnamed device"),
        (b"\xff\xfe", "unnamed device"),
        (b"", "unnamed device"),
        (b"x" * 10_000, "x" * 40),
        ("Ünïcode 📱".encode(), "Ünïcode 📱"),
    ],
)
def test_a_device_name_is_fit_for_a_terminal(raw: bytes, shown: str) -> None:
    assert plain_name(raw) == shown


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"sandbox": "danger-full-access"}, "sandbox"),
        ({"approvalPolicy": ["on-request", "never"]}, "approvalPolicy"),
    ],
)
def test_what_the_config_file_does_not_allow_cannot_seem_granted(
    folder: Path, wish: dict[str, object], field: str
) -> None:
    one = device()
    devices = Devices(
        folder / "devices.json",
        now_ms=Clock(),
        within=lambda ceiling: narrowed(
            ceiling,
            widest_sandbox="workspace-write",
            policies=("untrusted", "on-request"),
        ),
    )
    devices.add(one)
    params = DeviceGrantParams.model_validate({"deviceId": one.id, **wish})
    with pytest.raises(InvalidParams) as refusal:
        devices.grant(params)
    assert refusal.value.data["field"] == field
    assert devices.get(one.id) == one
