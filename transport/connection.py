"""One Noise connection, either side: bytes in, events out; frames in, bytes out. Sans-IO.

PROTOCOL.md section 1. Joins `framing`, `noise`, `records` and `codec`. A peer is *proven*
by its first record: message 1 can be replayed by anybody who saw it, so nothing may
happen on it (no presence, no burnt offer) before `Confirmed`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from transport.codec import unpack
from transport.errors import (
    CLOSE_NUMBERS,
    CloseCode,
    HandshakeError,
    LocalProtocolError,
    RemoteProtocolError,
    TruncatedError,
)
from transport.framing import NOISE_PREFIX, UnitDecoder, encode_unit
from transport.identities import PrivateKey, agent_id
from transport.limits import (
    FRAME_IN,
    FRAME_OUT,
    MAX_DEVICE_NAME,
    MAX_FIRST_UNIT,
    MAX_PARTS,
    MAX_RECORDS,
    MAX_UNIT,
    MIN_UNIT,
)
from transport.noise import CipherState, Initiator, Responder
from transport.records import (
    FrameJoiner,
    Record,
    RecordType,
    decode_record,
    encode_record,
    split_frame,
)

MAJOR: Final = 2


class Mode(IntEnum):
    """What a connection is for: the low half of its first byte."""

    SESSION = 1
    PAIRING = 2


ChoosePsk = Callable[[Mode, bytes], bytes | None]
"""From a device's public key to its psk in this mode; `None`: refused, silently."""


@dataclass(frozen=True, slots=True)
class Established:
    """Keys are agreed. `reply` must be sent now, before anything else."""

    mode: Mode
    remote_static: bytes
    handshake_hash: bytes
    payload: bytes = field(repr=False)
    reply: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The first record of the device was authentic: it is there, now."""


@dataclass(frozen=True, slots=True)
class FrameArrived:
    """One whole frame."""

    value: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class CloseArrived:
    """The peer said CLOSE; `code` is `None` for a number that we do not know."""

    code: CloseCode | None
    number: int


Event = Established | Confirmed | FrameArrived | CloseArrived


class Connection:
    """The common part of both sides, after the handshake. Any error is final."""

    def __init__(self, *, padded: bool, max_in: int, max_out: int) -> None:
        self._padded = padded
        self._max_out = max_out
        self._decoder = UnitDecoder(
            NOISE_PREFIX, minimum=MIN_UNIT, maximum=MAX_FIRST_UNIT
        )
        self._joiner = FrameJoiner(max_frame=max_in, max_parts=MAX_PARTS)
        self._ciphers: tuple[CipherState, CipherState] | None = None
        self._proven = False
        self._waiting: Event | None = None
        self._error: RemoteProtocolError | None = None
        self._closed: CloseArrived | None = None
        self._said_close = False

    def receive_data(self, data: bytes | bytearray) -> None:
        """Take in what was read; `b""` means end of stream."""
        self._decoder.receive_data(data)

    def next_event(self) -> Event | None:
        """Return the next event, or `None` when more bytes are needed.

        Raises:
            TruncatedError: the stream ended without CLOSE.
            RemoteProtocolError: anything else that is wrong; now and on every call.
        """
        if self._error is not None:
            raise self._error
        try:
            return self._next()
        except RemoteProtocolError as exc:
            self._error = exc
            raise

    def send(self, frames: Iterable[bytes]) -> bytes:
        """Return packed frames, sealed, ready for one write.

        Raises:
            LocalProtocolError: too early, too late, or a frame above the limit; then
                nothing has been sealed.
        """
        sending = self._sending()
        frames = list(frames)
        if any(len(frame) > self._max_out for frame in frames):
            raise LocalProtocolError(f"a frame above {self._max_out} bytes")
        bodies = [part for frame in frames for part in split_frame(frame)]
        if sending.n + len(bodies) >= MAX_RECORDS:  # one is left for CLOSE
            raise LocalProtocolError("this session has sent all that it may")
        return b"".join(self._seal(sending, *part) for part in bodies)

    def close(self, code: CloseCode) -> bytes:
        """Return a CLOSE record, or nothing where there is nobody to tell.

        A peer that broke the protocol is told so, whatever `code` says.
        """
        if self._ciphers is None or self._said_close or not self._proven:
            return b""
        self._said_close = True
        if self._error is not None and not isinstance(self._error, TruncatedError):
            code = CloseCode.PROTOCOL_ERROR
        elif self.worn_out:
            code = CloseCode.RENEW
        body = bytes((CLOSE_NUMBERS[code],))
        return self._seal(self._ciphers[0], RecordType.CLOSE, body)

    @property
    def worn_out(self) -> bool:
        """Either direction is at its last records: close with `renew`."""
        return self._ciphers is not None and any(
            cipher.n >= MAX_RECORDS - MAX_PARTS for cipher in self._ciphers
        )

    def _sending(self) -> CipherState:
        if self._ciphers is None or self._said_close:
            raise LocalProtocolError("this connection does not take frames")
        return self._ciphers[0]

    def _seal(self, sending: CipherState, kind: RecordType, body: bytes) -> bytes:
        plain = encode_record(kind, body, padded=self._padded)
        return encode_unit(sending.encrypt_with_ad(b"", plain), NOISE_PREFIX)

    def _next(self) -> Event | None:
        if (waiting := self._waiting) is not None:
            self._waiting = None
            return waiting
        if self._closed is not None:
            return self._closed
        while (unit := self._decoder.next_unit()) is not None:
            if self._ciphers is None:
                return self._shake(unit)
            event = self._open(self._ciphers[1], unit)
            if not self._proven:
                self._proven, self._waiting = True, event
                return Confirmed()
            if event is not None:
                return event
        if self._decoder.ended:
            raise TruncatedError("the stream ended without CLOSE")
        return None

    def _shake(self, unit: bytes) -> Established:
        raise NotImplementedError

    def _open(self, receiving: CipherState, unit: bytes) -> Event | None:
        if receiving.n >= MAX_RECORDS:
            raise RemoteProtocolError("more records than a session may have")
        record = decode_record(receiving.decrypt_with_ad(b"", unit))
        match record.type:
            case RecordType.WINDOW:
                return None
            case RecordType.CLOSE:
                self._closed = _close_event(record)
                return self._closed
            case RecordType.LAST | RecordType.PART:
                frame = self._joiner.add(record)
                return None if frame is None else FrameArrived(unpack(frame))

    def _start(self, ciphers: tuple[CipherState, CipherState], *, proven: bool) -> None:
        self._ciphers = ciphers
        self._proven = proven
        self._decoder.maximum = MAX_UNIT


class DeviceConnection(Connection):
    """The initiator. `first_bytes` must be sent at once."""

    def __init__(
        self,
        *,
        mode: Mode,
        agent_key: bytes,
        identity: PrivateKey,
        ephemeral: PrivateKey,
        psk: bytes,
        payload: bytes = b"",
        padded: bool,
    ) -> None:
        super().__init__(padded=padded, max_in=FRAME_OUT, max_out=FRAME_IN)
        self._mode = mode
        self._noise = Initiator(
            prologue=_prologue(mode, agent_key),
            static=identity,
            ephemeral=ephemeral,
            responder=agent_key,
            psk=psk,
        )
        first = bytes((_first_byte(mode),)) + self._noise.write_message_1(payload)
        self.first_bytes = encode_unit(first, NOISE_PREFIX)

    def _shake(self, unit: bytes) -> Established:
        payload = self._noise.read_message_2(unit)
        if payload:
            raise HandshakeError("message 2 carries nothing")
        remote, handshake_hash = self._noise.remote_static, self._noise.handshake_hash
        self._start(self._noise.split(), proven=True)
        return Established(self._mode, remote, handshake_hash, payload, b"")


class AgentConnection(Connection):
    """The responder. Says nothing at all before message 1 was good."""

    def __init__(
        self,
        *,
        identity: PrivateKey,
        ephemeral: PrivateKey,
        choose_psk: ChoosePsk,
        padded: bool,
    ) -> None:
        super().__init__(padded=padded, max_in=FRAME_IN, max_out=FRAME_OUT)
        self._identity = identity
        self._ephemeral = ephemeral
        self._choose_psk = choose_psk

    def _shake(self, unit: bytes) -> Established:
        mode = _mode(unit[0])
        noise = Responder(
            prologue=_prologue(mode, self._identity.public),
            static=self._identity,
            ephemeral=self._ephemeral,
        )
        payload = noise.read_message_1(
            unit[1:], lambda key: self._choose_psk(mode, key)
        )
        if len(payload) > (MAX_DEVICE_NAME if mode is Mode.PAIRING else 0):
            raise HandshakeError("message 1 carries too much")
        reply = encode_unit(noise.write_message_2(), NOISE_PREFIX)
        remote, handshake_hash = noise.remote_static, noise.handshake_hash
        self._start(noise.split(), proven=False)
        return Established(mode, remote, handshake_hash, payload, reply)


def _first_byte(mode: Mode) -> int:
    return MAJOR << 4 | mode


def _mode(first_byte: int) -> Mode:
    try:
        if first_byte >> 4 == MAJOR:
            return Mode(first_byte & 0x0F)
    except ValueError:
        pass
    raise HandshakeError(f"first byte {first_byte:#04x}")


def _prologue(mode: Mode, agent_key: bytes) -> bytes:
    """Bind version, mode and Agent: a flipped byte makes another handshake."""
    head = b"threadgate/2\0" + bytes((_first_byte(mode),))
    return head + bytes.fromhex(agent_id(agent_key))


def _close_event(record: Record) -> CloseArrived:
    if len(record.body) != 1:
        raise RemoteProtocolError("a CLOSE record of a wrong length")
    number = record.body[0]
    codes = list(CloseCode)
    return CloseArrived(codes[number] if number < len(codes) else None, number)
