"""Noise IKpsk1: published vectors, another implementation, and all that must fail.

Published vectors (`../shared/noise_vectors.json`, cacophony's, public domain) are read
in place where they are; vectors of our own and the other implementation always run.
"""

import json
import warnings
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noise.connection import Keypair, NoiseConnection

from transport.errors import HandshakeError, LocalProtocolError, RemoteProtocolError
from transport.identities import PrivateKey
from transport.noise import (
    MAX_NONCE,
    MAX_PLAINTEXT,
    PROTOCOL_NAME,
    CipherState,
    Initiator,
    Responder,
)

ROOT: Final = Path(__file__).parents[2]
PUBLISHED: Final = ROOT.parent / "shared" / "noise_vectors.json"
OWN: Final = Path(__file__).with_name("noise_ikpsk1_vectors.json")

DEVICE: Final = PrivateKey.from_bytes(bytes([1]) * 32)
AGENT: Final = PrivateKey.from_bytes(bytes([2]) * 32)
PSK: Final = bytes([3]) * 32
PROLOGUE: Final = b"prologue"

LOW_ORDER: Final = {
    "zero": bytes(32),
    "one": b"\1" + bytes(31),
    "p-1": (2**255 - 20).to_bytes(32, "little"),
    "p": (2**255 - 19).to_bytes(32, "little"),
    "order 8": bytes.fromhex(
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"
    ),
    "order 8, the other": bytes.fromhex(
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"
    ),
}


def initiator(**changes: Any) -> Initiator:
    given_values: dict[str, Any] = {
        "prologue": PROLOGUE,
        "static": DEVICE,
        "ephemeral": PrivateKey.generate(),
        "responder": AGENT.public,
        "psk": PSK,
    }
    return Initiator(**(given_values | changes))


def responder(**changes: Any) -> Responder:
    given_values: dict[str, Any] = {
        "prologue": PROLOGUE,
        "static": AGENT,
        "ephemeral": PrivateKey.generate(),
    }
    return Responder(**(given_values | changes))


def known(key: bytes) -> bytes | None:
    return PSK if key == DEVICE.public else None


def vectors(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    found: list[dict[str, Any]] = json.loads(path.read_text())["vectors"]
    return [one for one in found if one["protocol_name"] == PROTOCOL_NAME.decode()]


def replay(vector: dict[str, Any]) -> None:
    """Both sides, message by message: ciphertext, payload, hash, remote key."""

    def raw(name: str) -> bytes:
        return bytes.fromhex(vector[name])

    psk = bytes.fromhex(vector["init_psks"][0])
    device = PrivateKey.from_bytes(raw("init_static"))
    one = Initiator(
        prologue=raw("init_prologue"),
        static=device,
        ephemeral=PrivateKey.from_bytes(raw("init_ephemeral")),
        responder=raw("init_remote_static"),
        psk=psk,
    )
    two = Responder(
        prologue=raw("resp_prologue"),
        static=PrivateKey.from_bytes(raw("resp_static")),
        ephemeral=PrivateKey.from_bytes(raw("resp_ephemeral")),
    )
    messages = [
        (bytes.fromhex(m["payload"]), bytes.fromhex(m["ciphertext"]))
        for m in vector["messages"]
    ]
    (first, sealed_first), (second, sealed_second), *later = messages
    assert one.write_message_1(first) == sealed_first
    assert two.read_message_1(sealed_first, lambda _: psk) == first
    assert two.remote_static == device.public
    assert two.write_message_2(second) == sealed_second
    assert one.read_message_2(sealed_second) == second
    assert one.handshake_hash == two.handshake_hash == raw("handshake_hash")
    sides = one.split(), two.split()
    for number, (payload, sealed) in enumerate(later):
        (sending, _), (_, receiving) = sides if number % 2 == 0 else sides[::-1]
        assert sending.encrypt_with_ad(b"", payload) == sealed
        assert receiving.decrypt_with_ad(b"", sealed) == payload


def test_the_published_vectors_hold_message_by_message() -> None:
    found = vectors(PUBLISHED)
    if not PUBLISHED.exists():
        pytest.skip(f"the published Noise vectors are not at {PUBLISHED}")
    assert found
    for vector in found:
        assert len(vector["messages"]) >= 4
        replay(vector)


@pytest.mark.parametrize("vector", vectors(OWN), ids=lambda vector: vector["name"])
def test_our_own_vectors_hold_message_by_message(vector: dict[str, Any]) -> None:
    replay(vector)


# Against another implementation


def other(*, initiates: bool, static: PrivateKey) -> Any:
    side = NoiseConnection.from_name(PROTOCOL_NAME)
    side.set_as_initiator() if initiates else side.set_as_responder()
    side.set_prologue(PROLOGUE)
    side.set_psks(psk=PSK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        side.set_keypair_from_private_bytes(Keypair.STATIC, static.to_bytes())
    if initiates:
        side.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, AGENT.public)
    side.start_handshake()
    return side


@given(
    name=st.binary(max_size=100), records=st.lists(st.binary(max_size=200), max_size=6)
)
def test_our_device_talks_to_another_implementation(
    name: bytes, records: list[bytes]
) -> None:
    ours, theirs = initiator(), other(initiates=False, static=AGENT)
    assert bytes(theirs.read_message(ours.write_message_1(name))) == name
    assert ours.read_message_2(bytes(theirs.write_message(b""))) == b""
    sending, receiving = ours.split()
    for record in records:
        assert theirs.decrypt(sending.encrypt_with_ad(b"", record)) == record
        assert receiving.decrypt_with_ad(b"", bytes(theirs.encrypt(record))) == record


@given(
    name=st.binary(max_size=100), records=st.lists(st.binary(max_size=200), max_size=6)
)
def test_our_agent_talks_to_another_implementation(
    name: bytes, records: list[bytes]
) -> None:
    ours, theirs = responder(), other(initiates=True, static=DEVICE)
    assert ours.read_message_1(bytes(theirs.write_message(name)), known) == name
    assert bytes(theirs.read_message(ours.write_message_2())) == b""
    sending, receiving = ours.split()
    for record in records:
        assert theirs.decrypt(sending.encrypt_with_ad(b"", record)) == record
        assert receiving.decrypt_with_ad(b"", bytes(theirs.encrypt(record))) == record


# What must fail


def refused(agent: Responder, message: bytes) -> None:
    """The message is refused, and the agent is dead afterwards."""
    with pytest.raises(RemoteProtocolError):
        agent.read_message_1(message, known)
    for step in (
        lambda: agent.read_message_1(message, known),
        agent.write_message_2,
        agent.split,
    ):
        with pytest.raises(LocalProtocolError):
            step()


@pytest.mark.parametrize(
    "changes",
    [
        {"prologue": b"prologuf"},
        {"prologue": b""},
        {"psk": bytes(32)},
        {"static": PrivateKey.from_bytes(bytes([9]) * 32)},
        {"static": PrivateKey.from_bytes(bytes([9]) * 32), "psk": bytes(32)},
        {"responder": DEVICE.public},
    ],
    ids=["prologue", "no prologue", "psk", "stranger", "stranger, zero psk", "agent"],
)
def test_a_device_with_one_thing_wrong_is_refused(changes: dict[str, Any]) -> None:
    refused(responder(), initiator(**changes).write_message_1())


def test_every_flipped_bit_of_message_1_is_refused() -> None:
    good = initiator().write_message_1(b"name")
    for bit in range(len(good) * 8):
        wrong = bytearray(good)
        wrong[bit // 8] ^= 1 << bit % 8
        with pytest.raises(RemoteProtocolError):
            responder().read_message_1(bytes(wrong), known)
    assert responder().read_message_1(good, known) == b"name"


def test_every_flipped_bit_of_message_2_is_refused() -> None:
    device, agent, ephemeral = initiator(), responder(), PrivateKey.generate()
    agent.read_message_1(device.write_message_1(), known)
    good = agent.write_message_2()
    first = initiator(ephemeral=ephemeral)
    first.write_message_1()
    for bit in range(len(good) * 8):
        again = initiator(ephemeral=ephemeral)
        again.write_message_1()
        wrong = bytearray(good)
        wrong[bit // 8] ^= 1 << bit % 8
        with pytest.raises(RemoteProtocolError):
            again.read_message_2(bytes(wrong))
    assert device.read_message_2(good) == b""


def test_every_truncation_of_a_handshake_message_is_refused() -> None:
    device, agent = initiator(), responder()
    first = device.write_message_1(b"name")
    for size in range(len(first)):
        refused(responder(), first[:size])
    refused(responder(), first + b"\0")
    agent.read_message_1(first, known)
    second = agent.write_message_2()
    for size in range(len(second)):
        cut = initiator()
        cut.write_message_1()
        with pytest.raises(RemoteProtocolError):
            cut.read_message_2(second[:size])


@pytest.mark.parametrize("point", LOW_ORDER.values(), ids=LOW_ORDER.keys())
def test_a_low_order_ephemeral_is_refused_on_both_sides(point: bytes) -> None:
    good = initiator().write_message_1()
    refused(responder(), point + good[32:])
    device = initiator()
    device.write_message_1()
    with pytest.raises(HandshakeError):
        device.read_message_2(point + bytes(16))


def test_an_oversized_handshake_message_is_refused() -> None:
    refused(responder(), bytes(65_536))


def test_the_order_of_steps_is_fixed() -> None:
    with pytest.raises(LocalProtocolError):
        initiator().split()
    with pytest.raises(LocalProtocolError):
        initiator().read_message_2(bytes(48))
    with pytest.raises(LocalProtocolError):
        responder().write_message_2()
    device = initiator()
    device.write_message_1()
    with pytest.raises(LocalProtocolError):
        device.write_message_1()


def test_a_recorded_message_1_gives_the_replayer_no_key() -> None:
    device, agent, later = initiator(), responder(), responder()
    recorded = device.write_message_1()
    agent.read_message_1(recorded, known)
    device.read_message_2(agent.write_message_2())
    later.read_message_1(recorded, known)  # accepted: by design nothing happens on it
    later.write_message_2()
    sending, _ = device.split()
    with pytest.raises(RemoteProtocolError):
        later.split()[1].decrypt_with_ad(b"", sending.encrypt_with_ad(b"", b"record"))


# Transport messages


def ciphers() -> tuple[CipherState, CipherState]:
    return CipherState(bytes(32)), CipherState(bytes(32))


def test_a_record_that_fails_ends_the_direction_for_good() -> None:
    sending, receiving = ciphers()
    good = sending.encrypt_with_ad(b"", b"one")
    with pytest.raises(RemoteProtocolError):
        receiving.decrypt_with_ad(b"", good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(RemoteProtocolError):
        receiving.decrypt_with_ad(b"", good)


@pytest.mark.parametrize("size", [0, 15])
def test_a_message_shorter_than_its_tag_is_refused(size: int) -> None:
    with pytest.raises(RemoteProtocolError):
        ciphers()[0].decrypt_with_ad(b"", bytes(size))


def test_the_last_nonce_is_never_used() -> None:
    sending, receiving = ciphers()
    sending.n = receiving.n = MAX_NONCE - 1
    last = sending.encrypt_with_ad(b"", b"last")
    assert receiving.decrypt_with_ad(b"", last) == b"last"
    with pytest.raises(LocalProtocolError):
        sending.encrypt_with_ad(b"", b"one more")
    with pytest.raises(RemoteProtocolError):
        receiving.decrypt_with_ad(b"", last)


def test_a_plaintext_that_no_message_can_hold_is_our_bug() -> None:
    sending, receiving = ciphers()
    full = sending.encrypt_with_ad(b"", bytes(MAX_PLAINTEXT))
    assert receiving.decrypt_with_ad(b"", full) == bytes(MAX_PLAINTEXT)
    with pytest.raises(LocalProtocolError):
        sending.encrypt_with_ad(b"", bytes(MAX_PLAINTEXT + 1))


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_psk_has_32_bytes(size: int) -> None:
    with pytest.raises(LocalProtocolError):
        initiator(psk=bytes(size))
    with pytest.raises(LocalProtocolError):
        responder().read_message_1(initiator().write_message_1(), lambda _: bytes(size))


def test_no_state_of_a_handshake_shows_a_key() -> None:
    device, agent = initiator(), responder()
    agent.read_message_1(device.write_message_1(), known)
    shown = f"{device!r} {agent!r} {ciphers()!r} {vars(device)!r} {vars(agent)!r}"
    for secret in (PSK, DEVICE.to_bytes(), AGENT.to_bytes()):
        assert secret.hex() not in shown
        assert repr(secret)[2:-1] not in shown.replace(repr(DEVICE.public), "")
