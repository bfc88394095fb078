"""Both sides of a connection as bytes and events, without any stream."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transport.codec import pack
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
from transport.errors import (
    CLOSE_NUMBERS,
    CloseCode,
    HandshakeError,
    LocalProtocolError,
    RemoteProtocolError,
    TruncatedError,
)
from transport.framing import NOISE_PREFIX, encode_unit
from transport.identities import PrivateKey
from transport.limits import FRAME_IN, FRAME_OUT, MAX_RECORDS, MAX_UNIT, MIN_UNIT
from transport.noise import Responder
from transport.records import RecordType, encode_record

AGENT: Final = PrivateKey.generate()
DEVICE: Final = PrivateKey.generate()
PSK: Final = bytes(range(32))


def device(**changes: Any) -> DeviceConnection:
    values: dict[str, Any] = {
        "mode": Mode.SESSION,
        "agent_key": AGENT.public,
        "identity": DEVICE,
        "ephemeral": PrivateKey.generate(),
        "psk": PSK,
        "padded": True,
    }
    return DeviceConnection(**(values | changes))


def agent(*, padded: bool = True) -> AgentConnection:
    return AgentConnection(
        identity=AGENT,
        ephemeral=PrivateKey.generate(),
        choose_psk=lambda _, key: PSK if key == DEVICE.public else None,
        padded=padded,
    )


def events(connection: Connection, data: bytes = b"") -> list[Event]:
    if data:
        connection.receive_data(data)
    found: list[Event] = []
    while (event := connection.next_event()) is not None:
        found.append(event)
        if isinstance(event, CloseArrived):
            break
    return found


def connected(*, padded: bool = True) -> tuple[DeviceConnection, AgentConnection]:
    """Both sides after the handshake; the device is not proven yet."""
    one, two = device(padded=padded), agent(padded=padded)
    (made,) = events(two, one.first_bytes)
    assert isinstance(made, Established)
    events(one, made.reply)
    return one, two


def proven(*, padded: bool = True) -> tuple[DeviceConnection, AgentConnection]:
    one, two = connected(padded=padded)
    events(two, one.send([pack({})]))
    return one, two


def frames(found: Iterable[Event]) -> list[dict[str, Any]]:
    return [event.value for event in found if isinstance(event, FrameArrived)]


def test_both_sides_agree_on_the_channel() -> None:
    one, two = device(), agent()
    (at_agent,) = events(two, one.first_bytes)
    assert isinstance(at_agent, Established)
    (at_device,) = events(one, at_agent.reply)
    assert isinstance(at_device, Established)
    assert at_agent.handshake_hash == at_device.handshake_hash
    assert at_agent.remote_static == DEVICE.public
    assert at_device.remote_static == AGENT.public
    assert at_agent.mode is at_device.mode is Mode.SESSION


@pytest.mark.parametrize("mode", Mode)
def test_the_first_unit_is_as_specified(mode: Mode) -> None:
    first = device(mode=mode).first_bytes
    assert first[:2] == (1 + 96).to_bytes(2, "big")
    assert first[2] == 0x20 + mode
    hashed = hashlib.sha256(b"threadgate/agent-id/1" + AGENT.public).digest()
    responder = Responder(
        prologue=b"threadgate/2\0" + first[2:3] + hashed[:16],
        static=AGENT,
        ephemeral=PrivateKey.generate(),
    )
    assert responder.read_message_1(first[3:], lambda _: PSK) == b""


def test_a_device_is_confirmed_by_its_first_record_and_once() -> None:
    one, two = connected()
    first = pack({"n": 1})
    found = events(two, one.send([first]) + one.send([first]))
    assert found == [Confirmed(), FrameArrived({"n": 1}), FrameArrived({"n": 1})]


def test_a_name_comes_with_a_pairing() -> None:
    one = device(mode=Mode.PAIRING, payload="Küche".encode())
    (made,) = events(agent(), one.first_bytes)
    assert isinstance(made, Established)
    assert (made.mode, made.payload) == (Mode.PAIRING, "Küche".encode())


@pytest.mark.parametrize(
    ("mode", "size"), [(Mode.SESSION, 1), (Mode.PAIRING, 101), (Mode.PAIRING, 1_900)]
)
def test_message_1_carries_no_more_than_it_may(mode: Mode, size: int) -> None:
    with pytest.raises(HandshakeError):
        events(agent(), device(mode=mode, payload=bytes(size)).first_bytes)


FRAMES = st.lists(
    st.fixed_dictionaries({"n": st.integers(0, 9), "text": st.text(max_size=300)}),
    min_size=1,
    max_size=6,
)


@given(sent=FRAMES, padded=st.booleans(), data=st.data())
def test_any_cut_of_the_stream_gives_the_same_events(
    sent: list[dict[str, Any]], padded: bool, data: st.DataObject
) -> None:
    one, two = connected(padded=padded)
    stream = one.send([pack(frame) for frame in sent]) + one.close(CloseCode.DONE)
    found: list[Event] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += events(two, stream[:size])
        stream = stream[size:]
    closed = CloseArrived(CloseCode.DONE, 0)
    assert found == [Confirmed(), *(FrameArrived(frame) for frame in sent), closed]


@given(stream=st.binary(max_size=3_000), after=st.booleans())
def test_any_bytes_give_events_or_a_protocol_error(stream: bytes, after: bool) -> None:
    two = proven()[1] if after else agent()
    two.receive_data(stream)
    two.receive_data(b"")
    with pytest.raises(RemoteProtocolError):  # nobody can guess an authentic record
        events(two)


@pytest.mark.parametrize("size", [0, 65_500, 65_516, 65_517, 200_000, FRAME_IN - 40])
def test_a_large_frame_arrives_whole(size: int) -> None:
    one, two = connected()
    sent = {"text": "x" * (size // 2), "more": "y" * (size - size // 2)}
    assert frames(events(two, one.send([pack(sent)]))) == [sent]


@pytest.mark.parametrize("side", ["device", "agent"])
def test_a_frame_above_the_limit_is_not_begun(side: str) -> None:
    one, two = proven()
    sender, limit = (one, FRAME_IN) if side == "device" else (two, FRAME_OUT)
    with pytest.raises(LocalProtocolError):
        sender.send([pack({"n": 1}), bytes(limit + 1)])
    receiver = two if side == "device" else one
    assert frames(events(receiver, sender.send([pack({"n": 2})]))) == [{"n": 2}]


def test_an_agents_frame_may_be_larger_than_a_devices() -> None:
    one, two = proven()
    sent = {str(n): "x" * 200_000 for n in range(5)}
    assert frames(events(one, two.send([pack(sent)]))) == [sent]


def test_a_padded_stream_tells_only_buckets() -> None:
    one, two = proven()
    sizes = {len(two.send([pack({"d": [n, 1, 0, 0, "x" * n]})])) for n in range(90)}
    assert sizes == {2 + 128 + 16}
    assert events(one)[:0] == []


def test_an_unpadded_stream_is_small() -> None:
    _, two = proven(padded=False)
    delta = pack({"d": [4182, 31, 0, 0, " tests"]})
    assert len(delta) <= 18
    assert len(two.send([delta])) == 2 + 3 + len(delta) + 16


@pytest.mark.parametrize("code", CloseCode)
def test_every_close_code_arrives(code: CloseCode) -> None:
    one, two = proven()
    event = CloseArrived(code, CLOSE_NUMBERS[code])
    assert events(one, two.close(code)) == [event]
    assert one.next_event() == event
    one.receive_data(b"")
    assert one.next_event() == event  # the end of stream after it is no truncation


def test_an_end_without_close_is_a_truncation() -> None:
    one, two = proven()
    one.receive_data(two.send([pack({"n": 1})]))
    one.receive_data(b"")
    assert one.next_event() == FrameArrived({"n": 1})
    for _ in range(2):
        with pytest.raises(TruncatedError):
            one.next_event()


def test_nothing_is_sent_after_close() -> None:
    _, two = proven()
    assert two.close(CloseCode.REVOKED)
    assert two.close(CloseCode.DONE) == b""
    with pytest.raises(LocalProtocolError):
        two.send([pack({})])


def test_nobody_is_told_a_close_before_it_proved_itself() -> None:
    assert agent().close(CloseCode.DONE) == b""
    _, two = connected()
    assert two.close(CloseCode.DONE) == b""


def test_a_peer_that_broke_the_protocol_is_told_so() -> None:
    one, two = proven()
    two.receive_data(bytes([0, 16]) + bytes(16))
    with pytest.raises(RemoteProtocolError):
        two.next_event()
    number = CLOSE_NUMBERS[CloseCode.PROTOCOL_ERROR]
    closed = CloseArrived(CloseCode.PROTOCOL_ERROR, number)
    assert events(one, two.close(CloseCode.DONE)) == [closed]


def test_nothing_is_sent_before_the_handshake() -> None:
    with pytest.raises(LocalProtocolError):
        device().send([pack({})])


def cipher_counts(connection: Connection) -> Sequence[Any]:
    ciphers = connection._ciphers  # pyright: ignore[reportPrivateUsage]
    assert ciphers is not None
    return ciphers


@pytest.mark.parametrize("direction", [0, 1])
def test_used_up_keys_end_the_session_with_renew(direction: int) -> None:
    one, two = proven()
    for connection in (one, two):
        for cipher in cipher_counts(connection):
            cipher.n = MAX_RECORDS - 2
    sender, receiver = ((one, two), (two, one))[direction]
    assert frames(events(receiver, sender.send([pack({"n": 1})]))) == [{"n": 1}]
    assert sender.worn_out
    assert receiver.worn_out
    with pytest.raises(LocalProtocolError):
        sender.send([pack({"n": 2})])
    (closed,) = events(receiver, sender.close(CloseCode.DONE))
    assert closed == CloseArrived(CloseCode.RENEW, CLOSE_NUMBERS[CloseCode.RENEW])


def test_a_peer_that_goes_on_with_used_up_keys_is_cut_off() -> None:
    one, two = proven()
    sending, receiving = cipher_counts(two)[0], cipher_counts(one)[1]
    record = encode_record(RecordType.LAST, pack({"n": 1}), padded=True)
    sending.n = receiving.n = MAX_RECORDS - 1
    last = encode_unit(sending.encrypt_with_ad(b"", record), NOISE_PREFIX)
    assert frames(events(one, last)) == [{"n": 1}]
    one.receive_data(encode_unit(sending.encrypt_with_ad(b"", record), NOISE_PREFIX))
    with pytest.raises(RemoteProtocolError):
        one.next_event()


def test_a_unit_is_no_shorter_than_a_tag_and_no_longer_than_noise_allows() -> None:
    _, one = connected()
    with pytest.raises(RemoteProtocolError, match=f"a unit of {MIN_UNIT - 1} bytes"):
        events(one, NOISE_PREFIX.pack(MIN_UNIT - 1))
    _, other = connected()
    assert events(other, NOISE_PREFIX.pack(MAX_UNIT)) == [], "waits for all of it"
    device_side, agent_side = connected()
    frame = pack({"x": "y" * (2 * MAX_UNIT)})
    sent = device_side.send([frame])
    units, longest = sent, 0
    while units:
        (length,) = NOISE_PREFIX.unpack_from(units)
        longest, units = max(longest, length), units[2 + length :]
    assert longest <= MAX_UNIT
    assert FrameArrived({"x": "y" * (2 * MAX_UNIT)}) in events(agent_side, sent)
