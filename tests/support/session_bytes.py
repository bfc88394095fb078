"""A whole session in bytes, for authors of clients in other languages. Sans-IO.

Pairing, then a session, both ends played by the transport's own cores with keys that are
fixed and published: TEST KEYS, worth nothing. `worked_bytes` is docs/protocol/session-bytes.json.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from tests.support.session_talk import (
    AGENT_KEY,
    PAIRING_TALK,
    SESSION_TALK,
    Line,
    fixed_bytes,
    fixed_key,
)
from transport.codec import pack, unpack
from transport.connection import (
    AgentConnection,
    CloseArrived,
    Confirmed,
    Connection,
    DeviceConnection,
    Established,
    Event,
    FrameArrived,
    Mode,
)
from transport.errors import CLOSE_NUMBERS
from transport.identities import PrivateKey, Secret, agent_id
from transport.pairing import PairingText, check_number, device_psk, pairing_psk
from transport.records import RecordType, encode_record, split_frame

Json = dict[str, Any]

ABOUT: Final = (
    "TEST KEYS: everybody knows them, never use one. A pairing and a session of threadgate "
    "protocol 2.0 as bytes, in hex; PROTOCOL.md section 8.1 explains the fields."
)
DEVICE_NAME: Final = "phone"
URLS: Final = ("tcp://desk.example.net:7130",)


DEVICE: Final = fixed_key("device")
SECRET: Final = Secret(fixed_bytes("pairing secret"))


def worked_bytes() -> Json:
    """Return the whole document."""
    pairing, psk = _pairing()
    return {
        "about": ABOUT,
        "keys": {
            "agentId": agent_id(AGENT_KEY.public),
            "agent": _keys(AGENT_KEY),
            "device": _keys(DEVICE),
        },
        "pairing": pairing,
        "session": _session(psk),
    }


def _pairing() -> tuple[Json, bytes]:
    text = PairingText(agent_key=AGENT_KEY.public, secret=SECRET, urls=URLS)
    psk = pairing_psk(SECRET)
    talk, handshake_hash = _talk(Mode.PAIRING, psk, DEVICE_NAME.encode(), PAIRING_TALK)
    paired = device_psk(SECRET, handshake_hash)
    head: Json = {
        "secret": SECRET.reveal().hex(),
        "urls": [*URLS],
        "text": text.encode(),
        "checkNumber": check_number(handshake_hash),
        "devicePsk": paired.hex(),
    }
    return head | talk, paired


def _session(psk: bytes) -> Json:
    return _talk(Mode.SESSION, psk, b"", SESSION_TALK)[0]


def _talk(
    mode: Mode, psk: bytes, payload: bytes, lines: list[Line]
) -> tuple[Json, bytes]:
    """Shake hands, say every line; each is heard by the other end as it was said."""
    ephemerals = {
        who: fixed_key(f"{who}, {mode.name.lower()}") for who in ("device", "agent")
    }
    device = DeviceConnection(
        mode=mode,
        agent_key=AGENT_KEY.public,
        identity=DEVICE,
        ephemeral=ephemerals["device"],
        psk=psk,
        payload=payload,
        padded=True,
    )
    agent = AgentConnection(
        identity=AGENT_KEY,
        ephemeral=ephemerals["agent"],
        choose_psk=lambda _, key: psk if key == DEVICE.public else None,
        padded=True,
    )
    made = _only(_heard(agent, device.first_bytes))
    assert isinstance(made, Established)
    assert isinstance(_only(_heard(device, made.reply)), Established)
    ends: dict[str, Connection] = {"device": device, "agent": agent}
    head: Json = {
        "mode": int(mode),
        "psk": psk.hex(),
        "ephemerals": {who: _keys(key) for who, key in ephemerals.items()},
        "message1Payload": payload.hex(),
        "firstUnit": device.first_bytes.hex(),
        "message2": made.reply.hex(),
        "handshakeHash": made.handshake_hash.hex(),
    }
    return head | {"steps": _steps(ends, lines)}, made.handshake_hash


def _steps(ends: Mapping[str, Connection], lines: list[Line]) -> list[Json]:
    nonces = {"device": 0, "agent": 0}
    steps: list[Json] = []
    for line in lines:
        other = "agent" if line.who == "device" else "device"
        step: Json = _said(ends[line.who], line) | {"nonce": nonces[line.who]}
        nonces[line.who] += len(cast("list[str]", step["plaintexts"]))
        heard = _heard(ends[other], bytes.fromhex(str(step["bytes"])))
        _check(heard, line)
        steps.append({"from": line.who, "what": line.what} | step)
    return steps


def _said(end: Connection, line: Line) -> Json:
    if line.close is not None:
        body = bytes((CLOSE_NUMBERS[line.close],))
        plain = encode_record(RecordType.CLOSE, body, padded=True)
        sealed = end.close(line.close)
        return {
            "close": body[0],
            "plaintexts": [plain.hex()],
            "bytes": sealed.hex(),
        }
    packed = pack(line.frame)
    plains = [
        encode_record(kind, body, padded=True) for kind, body in split_frame(packed)
    ]
    return {
        "frame": line.frame,
        "packed": packed.hex(),
        "plaintexts": [plain.hex() for plain in plains],
        "bytes": end.send([packed]).hex(),
    }


def _check(heard: list[Event], line: Line) -> None:
    last = _only([event for event in heard if not isinstance(event, Confirmed)])
    if line.close is not None:
        assert isinstance(last, CloseArrived)
        assert last.code is line.close
    else:
        assert isinstance(last, FrameArrived)
        assert last.value == line.frame == unpack(pack(line.frame))


def _heard(end: Connection, data: bytes) -> list[Event]:
    end.receive_data(data)
    heard: list[Event] = []
    while (event := end.next_event()) is not None:
        heard.append(event)
        if isinstance(event, CloseArrived):
            break
    return heard


def _only(events: list[Event]) -> Event:
    (event,) = events
    return event


def _keys(key: PrivateKey) -> Json:
    return {"private": key.to_bytes().hex(), "public": key.public.hex()}
