"""Keys and their names, in memory. Sans-IO. PROTOCOL.md section 1, SECURITY.md.

One X25519 key is one identity. It takes part in Noise and in nothing else: it signs
nothing and encrypts nothing by itself (Noise spec section 14).
"""

import base64
import hashlib
import hmac
from typing import Final, Self, final

from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)

KEY_SIZE: Final = 32  # bytes of a private key, a public key and a psk alike
_FINGERPRINT_LABEL: Final = b"threadgate/fingerprint/1"
_AGENT_ID_LABEL: Final = b"threadgate/agent-id/1"
_FINGERPRINT_CHARS: Final = 24  # 120 bits: nobody finds a second key for it
_FINGERPRINT_GROUP: Final = 4


@final
class PrivateKey:
    """An X25519 private key that never shows itself. `public` is 32 bytes."""

    __slots__ = ("_key", "public")

    def __init__(self, key: X25519PrivateKey) -> None:
        self._key = key
        self.public: Final = key.public_key().public_bytes_raw()

    @classmethod
    def generate(cls) -> Self:
        """Return a new key from the system's randomness."""
        return cls(X25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Return the key of 32 raw bytes; `ValueError` for any other size."""
        return cls(X25519PrivateKey.from_private_bytes(raw))

    def to_bytes(self) -> bytes:
        """Return the 32 raw bytes, for a key file and nothing else."""
        return self._key.private_bytes_raw()

    def exchange(self, public: bytes) -> bytes:
        """Return the shared secret; `ValueError` for a low-order `public`."""
        return self._key.exchange(X25519PublicKey.from_public_bytes(public))

    def __repr__(self) -> str:
        return f"PrivateKey({fingerprint(self.public)})"


@final
class Secret:
    """Bytes that must not reach a log: a pairing secret or a psk."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        self._value = bytes(value)

    def reveal(self) -> bytes:
        """Return the bytes; the caller is where they are used."""
        return self._value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value, other._value)

    __hash__ = None  # type: ignore[assignment] # no secret as a dict key

    def __repr__(self) -> str:
        return f"Secret({len(self._value)} bytes)"


def fingerprint(public: bytes) -> str:
    """Return what people compare: 24 base32 characters in six groups of four."""
    digest = hashlib.sha256(_FINGERPRINT_LABEL + public).digest()
    text = base64.b32encode(digest).decode("ascii")[:_FINGERPRINT_CHARS]
    starts = range(0, _FINGERPRINT_CHARS, _FINGERPRINT_GROUP)
    return "-".join(text[start : start + _FINGERPRINT_GROUP] for start in starts)


def agent_id(public: bytes) -> str:
    """Return an Agent's id: 32 lower-case hex characters of its public key's hash."""
    return hashlib.sha256(_AGENT_ID_LABEL + public).hexdigest()[:32]
