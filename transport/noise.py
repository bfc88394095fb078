"""Noise_IKpsk1_25519_AESGCM_SHA256 and nothing else. Sans-IO.

Source: the Noise Protocol Framework, revision 34. Names are the spec's. The pattern:

    <- s
    -> e, es, s, ss, psk
    <- e, ee, se

Every failure is final: an object that failed once only repeats that it failed. No error
text tells which check it was, beyond what the length of the bytes tells anybody.
"""

import hashlib
import hmac
import struct
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from transport.errors import HandshakeError, LocalProtocolError, RemoteProtocolError
from transport.identities import KEY_SIZE, PrivateKey, Secret

PROTOCOL_NAME: Final = b"Noise_IKpsk1_25519_AESGCM_SHA256"  # 32 bytes: its own h
TAG: Final = 16
MAX_MESSAGE: Final = 65_535  # spec section 3
MAX_PLAINTEXT: Final = MAX_MESSAGE - TAG
MAX_NONCE: Final = 2**64 - 1  # reserved, never used to encrypt (spec section 5.1)
_NONCE: Final = struct.Struct(">IQ")  # spec section 12.4: 32 zero bits, then n

ChoosePsk = Callable[[bytes], bytes | None]
"""From the initiator's static key to its psk; `None`: nobody we know."""


class CipherState:
    """One direction: a key and a counter that only goes up (spec section 5.1)."""

    __slots__ = ("_aead", "_failed", "n")

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)
        self._failed = False
        self.n = 0

    def encrypt_with_ad(self, ad: bytes, plaintext: bytes) -> bytes:
        """Return ciphertext and tag; uses up one nonce."""
        if self.n >= MAX_NONCE or len(plaintext) > MAX_PLAINTEXT:
            raise LocalProtocolError("nothing more can be sealed with this key")
        sealed = self._aead.encrypt(_NONCE.pack(0, self.n), plaintext, ad)
        self.n += 1
        return sealed

    def decrypt_with_ad(self, ad: bytes, sealed: bytes) -> bytes:
        """Return the plaintext.

        Raises:
            RemoteProtocolError: it does not authenticate, now and ever after.
        """
        if self._failed or self.n >= MAX_NONCE or len(sealed) < TAG:
            raise RemoteProtocolError("a message that cannot be opened")
        try:
            plaintext = self._aead.decrypt(_NONCE.pack(0, self.n), sealed, ad)
        except InvalidTag:
            self._failed = True
            raise RemoteProtocolError("a message that cannot be opened") from None
        self.n += 1
        return plaintext

    def __repr__(self) -> str:
        return f"CipherState(n={self.n})"


class SymmetricState:
    """Chaining key, hash and the current cipher of a handshake (spec section 5.2)."""

    __slots__ = ("_cipher", "_ck", "h")

    def __init__(self, prologue: bytes, responder_static: bytes) -> None:
        self.h = self._ck = PROTOCOL_NAME
        self._cipher: CipherState | None = None
        self.mix_hash(prologue)
        self.mix_hash(responder_static)  # the pre-message "<- s"

    def mix_hash(self, data: bytes) -> None:
        self.h = hashlib.sha256(self.h + data).digest()

    def mix_key(self, material: bytes) -> None:
        self._ck, key = _hkdf(self._ck, material, 2)
        self._cipher = CipherState(key)

    def mix_ephemeral(self, public: bytes) -> None:
        """Token `e` of a psk handshake: into the hash and the key (section 9.2)."""
        self.mix_hash(public)
        self.mix_key(public)

    def mix_key_and_hash(self, psk: bytes) -> None:
        self._ck, hashed, key = _hkdf(self._ck, psk, 3)
        self.mix_hash(hashed)
        self._cipher = CipherState(key)

    def encrypt_and_hash(self, plaintext: bytes) -> bytes:
        assert self._cipher is not None  # in this pattern `e` comes first
        sealed = self._cipher.encrypt_with_ad(self.h, plaintext)
        self.mix_hash(sealed)
        return sealed

    def decrypt_and_hash(self, sealed: bytes) -> bytes:
        assert self._cipher is not None
        plaintext = self._cipher.decrypt_with_ad(self.h, sealed)
        self.mix_hash(sealed)
        return plaintext

    def split(self) -> tuple[CipherState, CipherState]:
        """Return the ciphers initiator → responder and back."""
        there, back = _hkdf(self._ck, b"", 2)
        return CipherState(there), CipherState(back)

    def __repr__(self) -> str:
        return "SymmetricState(hidden)"


class _Step(Enum):
    MESSAGE_1 = auto()
    MESSAGE_2 = auto()
    SPLIT = auto()
    DEAD = auto()


class _Handshake:
    """The steps in their order. One that fails leaves the handshake dead."""

    def __init__(
        self, prologue: bytes, responder: bytes, static: PrivateKey, one: PrivateKey
    ) -> None:
        self._symmetric = SymmetricState(prologue, responder)
        self._s = static
        self._e = one
        self._re = self.remote_static = b""
        self._step = _Step.MESSAGE_1

    @property
    def handshake_hash(self) -> bytes:
        """32 bytes, unique to this channel once both messages went through."""
        return self._symmetric.h

    def _enter(self, step: _Step) -> None:
        if self._step is not step:
            raise LocalProtocolError("not the turn of this handshake step")
        self._step = _Step.DEAD  # until the step has gone through

    def _mix_dh(self, key: PrivateKey, public: bytes) -> None:
        try:
            self._symmetric.mix_key(key.exchange(public))
        except ValueError:  # all-zero result: a low-order point
            raise HandshakeError("a handshake message that cannot be read") from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._step.name})"


class Initiator(_Handshake):
    """The device's side. `ephemeral` must be new for every handshake."""

    def __init__(
        self,
        *,
        prologue: bytes,
        static: PrivateKey,
        ephemeral: PrivateKey,
        responder: bytes,
        psk: bytes,
    ) -> None:
        super().__init__(prologue, responder, static, ephemeral)
        self.remote_static = responder
        self._psk = Secret(_checked_psk(psk))

    def write_message_1(self, payload: bytes = b"") -> bytes:
        """Return `e, es, s, ss, psk` and the sealed payload."""
        self._enter(_Step.MESSAGE_1)
        state = self._symmetric
        state.mix_ephemeral(self._e.public)
        self._mix_dh(self._e, self.remote_static)
        static = state.encrypt_and_hash(self._s.public)
        self._mix_dh(self._s, self.remote_static)
        state.mix_key_and_hash(self._psk.reveal())
        message = self._e.public + static + state.encrypt_and_hash(payload)
        self._step = _Step.MESSAGE_2
        return message

    def read_message_2(self, message: bytes) -> bytes:
        """Take in `e, ee, se`; return the payload."""
        self._enter(_Step.MESSAGE_2)
        self._re, sealed = _cut(message, KEY_SIZE, TAG)
        state = self._symmetric
        state.mix_ephemeral(self._re)
        self._mix_dh(self._e, self._re)
        self._mix_dh(self._s, self._re)
        payload = state.decrypt_and_hash(sealed)
        self._step = _Step.SPLIT
        return payload

    def split(self) -> tuple[CipherState, CipherState]:
        """Return (sending, receiving)."""
        self._enter(_Step.SPLIT)
        return self._symmetric.split()


class Responder(_Handshake):
    """The Agent's side. `ephemeral` must be new for every handshake."""

    def __init__(
        self, *, prologue: bytes, static: PrivateKey, ephemeral: PrivateKey
    ) -> None:
        super().__init__(prologue, static.public, static, ephemeral)

    def read_message_1(self, message: bytes, choose_psk: ChoosePsk) -> bytes:
        """Take in `e, es, s, ss, psk`; return the payload.

        A stranger costs as much time as a device with a wrong psk.
        """
        self._enter(_Step.MESSAGE_1)
        self._re, rest = _cut(message, KEY_SIZE, KEY_SIZE + TAG)
        static, sealed = _cut(rest, KEY_SIZE + TAG, TAG)
        state = self._symmetric
        state.mix_ephemeral(self._re)
        self._mix_dh(self._s, self._re)
        self.remote_static = state.decrypt_and_hash(static)
        self._mix_dh(self._s, self.remote_static)
        psk = choose_psk(self.remote_static)
        state.mix_key_and_hash(bytes(KEY_SIZE) if psk is None else _checked_psk(psk))
        payload = state.decrypt_and_hash(sealed)
        if psk is None:  # even if it guessed what stands in for a missing psk
            raise HandshakeError("a handshake message that cannot be read")
        self._step = _Step.MESSAGE_2
        return payload

    def write_message_2(self, payload: bytes = b"") -> bytes:
        """Return `e, ee, se` and the sealed payload."""
        self._enter(_Step.MESSAGE_2)
        state = self._symmetric
        state.mix_ephemeral(self._e.public)
        self._mix_dh(self._e, self._re)
        self._mix_dh(self._e, self.remote_static)
        message = self._e.public + state.encrypt_and_hash(payload)
        self._step = _Step.SPLIT
        return message

    def split(self) -> tuple[CipherState, CipherState]:
        """Return (sending, receiving)."""
        self._enter(_Step.SPLIT)
        receiving, sending = self._symmetric.split()
        return sending, receiving


def _hkdf(chaining_key: bytes, material: bytes, outputs: int) -> list[bytes]:
    """Spec section 4.3."""
    temp = hmac.digest(chaining_key, material, "sha256")
    keys: list[bytes] = []
    last = b""
    for number in range(1, outputs + 1):
        last = hmac.digest(temp, last + bytes((number,)), "sha256")
        keys.append(last)
    return keys


def _cut(message: bytes, first: int, least: int) -> tuple[bytes, bytes]:
    """Split off `first` bytes; at least `least` must be left."""
    if not first + least <= len(message) <= MAX_MESSAGE:
        raise HandshakeError("a handshake message of a wrong length")
    return message[:first], message[first:]


def _checked_psk(psk: bytes) -> bytes:
    if len(psk) != KEY_SIZE:
        raise LocalProtocolError("a psk has 32 bytes")
    return psk
