"""docs/protocol/session-bytes.json: a session in bytes, made by our cores, checked by another.

`THREADGATE_GOLDEN=write` writes the file anew; clients of others are tested with it, so
that is for a new example, never for other bytes of the same one.
"""

import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from noise.connection import Keypair, NoiseConnection

from tests.support.golden import check_golden
from tests.support.session_bytes import worked_bytes
from transport.codec import unpack
from transport.pairing import parse_pairing_text
from transport.protocol.base import WireModel
from transport.protocol.events import JOURNAL_EVENTS
from transport.protocol.methods import METHODS

FILE: Final = Path(__file__).parents[2] / "docs" / "protocol" / "session-bytes.json"
PARTS: Final = ("pairing", "session")
Json = dict[str, Any]


def whole() -> Json:
    found: Json = json.loads(FILE.read_text())
    return found


def raw(text: str) -> bytes:
    return bytes.fromhex(text)


def test_the_file_is_what_our_cores_say() -> None:
    check_golden(FILE, json.dumps(worked_bytes(), indent=1, ensure_ascii=False) + "\n")


def other_side(document: Json, part: str, who: str) -> Any:
    """The same handshake in another implementation of Noise, from the file alone."""
    keys, talk = document["keys"], document[part]
    side: Any = NoiseConnection.from_name(b"Noise_IKpsk1_25519_AESGCM_SHA256")
    side.set_as_initiator() if who == "device" else side.set_as_responder()
    first = bytes([0x20 | talk["mode"]])
    side.set_prologue(b"threadgate/2\0" + first + raw(keys["agentId"]))
    side.set_psks(psk=raw(talk["psk"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, key in (
            (Keypair.STATIC, keys[who]),
            (Keypair.EPHEMERAL, talk["ephemerals"][who]),
        ):
            side.set_keypair_from_private_bytes(kind, raw(key["private"]))
        if who == "device":
            agent = raw(keys["agent"]["public"])
            side.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, agent)
        side.start_handshake()  # warns: ephemerals that are set are for tests only
    return side


def unit(message: bytes) -> bytes:
    return len(message).to_bytes(2, "big") + message


@pytest.mark.parametrize("part", PARTS)
def test_another_implementation_makes_the_same_bytes_from_the_keys(part: str) -> None:
    document = whole()
    talk = document[part]
    sides = {who: other_side(document, part, who) for who in ("device", "agent")}
    message_1 = bytes(sides["device"].write_message(raw(talk["message1Payload"])))
    assert unit(bytes([0x20 | talk["mode"]]) + message_1) == raw(talk["firstUnit"])
    assert bytes(sides["agent"].read_message(message_1)) == raw(talk["message1Payload"])
    message_2 = bytes(sides["agent"].write_message(b""))
    assert unit(message_2) == raw(talk["message2"])
    assert bytes(sides["device"].read_message(message_2)) == b""
    assert sides["device"].get_handshake_hash() == raw(talk["handshakeHash"])
    counts = {"device": 0, "agent": 0}
    for step in talk["steps"]:
        who = step["from"]
        assert step["nonce"] == counts[who]
        plains = [raw(plain) for plain in step["plaintexts"]]
        assert b"".join(
            unit(bytes(sides[who].encrypt(plain))) for plain in plains
        ) == raw(step["bytes"])
        counts[who] += len(plains)


@pytest.mark.parametrize("part", PARTS)
def test_plaintexts_are_records_with_padding_and_msgpack_as_the_text_says(
    part: str,
) -> None:
    for step in whole()[part]["steps"]:
        (plain,) = map(raw, step["plaintexts"])
        kind, size = plain[0], int.from_bytes(plain[1:3], "big")
        body, rest = plain[3 : 3 + size], plain[3 + size :]
        assert not any(rest)
        assert len(plain) % 128 == 0
        if "close" in step:
            assert (kind, body) == (2, bytes([step["close"]]))
        else:
            assert (kind, body) == (0, raw(step["packed"]))
            assert unpack(body) == step["frame"]


def test_the_pairing_text_says_the_keys_and_the_session_has_the_psk_of_the_pairing() -> (
    None
):
    document = whole()
    text = parse_pairing_text(document["pairing"]["text"])
    assert text.agent_key.hex() == document["keys"]["agent"]["public"]
    assert text.secret.reveal().hex() == document["pairing"]["secret"]
    assert [*text.urls] == document["pairing"]["urls"]
    assert document["session"]["psk"] == document["pairing"]["devicePsk"]
    assert "TEST KEYS" in document["about"]


@pytest.mark.parametrize("part", PARTS)
def test_what_is_said_is_what_the_protocol_says(part: str) -> None:
    methods: dict[int, Any] = {}
    for step in whole()[part]["steps"]:
        frame = step.get("frame", {})
        if "method" in frame:
            methods[frame["id"]] = METHODS[frame["method"]]
        for key, model in models(frame, methods):
            assert model.model_validate(frame[key]).wire() == frame[key]


def models(
    frame: Json, methods: Mapping[int, Any]
) -> Iterator[tuple[str, type[WireModel]]]:
    """Which model is behind which key of a frame."""
    if "params" in frame:
        yield "params", methods[frame["id"]].params
    elif "result" in frame:
        yield "result", methods[frame["id"]].result
    elif "event" in frame:
        yield "data", JOURNAL_EVENTS[frame["event"]]


def test_the_session_has_one_of_each_kind_of_message() -> None:
    steps = whole()["session"]["steps"]
    keys = {key for step in steps for key in step.get("frame", {})}
    assert keys >= {"method", "result", "error", "event", "d", "ds", "ping", "pong"}
    assert "close" in steps[-1]
    assert len({len(plain) for step in steps for plain in step["plaintexts"]}) >= 4
