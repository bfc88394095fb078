"""Keys, secrets and their names."""

import base64
import hashlib

import pytest

from transport.identities import PrivateKey, Secret, agent_id, fingerprint


def test_a_key_comes_back_from_its_bytes() -> None:
    key = PrivateKey.generate()
    again = PrivateKey.from_bytes(key.to_bytes())
    assert again.public == key.public
    assert len(key.public) == 32


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_has_32_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="32"):
        PrivateKey.from_bytes(bytes(size))


def test_no_key_and_no_secret_shows_itself() -> None:
    raw = hashlib.sha256(b"canary").digest()
    key, secret = PrivateKey.from_bytes(raw), Secret(raw)
    shown = f"{key!r} {key} {secret!r} {secret}"
    for form in (raw.hex(), repr(raw), base64.b64encode(raw).decode(), str(list(raw))):
        assert form not in shown


def test_a_secret_equals_its_like_alone() -> None:
    assert Secret(b"a") == Secret(b"a")
    assert Secret(b"a") != Secret(b"b")
    assert Secret(b"a") != b"a"
    with pytest.raises(TypeError):
        hash(Secret(b"a"))


def test_the_agent_id_is_half_of_a_labelled_hash() -> None:
    public = bytes(range(32))
    expected = hashlib.sha256(b"threadgate/agent-id/1" + public).digest()[:16].hex()
    assert agent_id(public) == expected
    assert len(agent_id(public)) == 32


def test_a_fingerprint_is_short_enough_to_compare_and_long_enough_to_trust() -> None:
    shown = fingerprint(bytes(32))
    assert [len(group) for group in shown.split("-")] == [4] * 6
    assert shown != fingerprint(bytes(31) + b"\1")
    assert shown.replace("-", "").isalnum()
