"""The pairing text and what is derived from its secret. Sans-IO. PROTOCOL.md section 1.

The text is upper-case base32, so that a QR code can use its compact mode. It ends in a
checksum: one wrong character is "mistyped", and no connection is tried with it. The
secret has 256 bits because its text travels by camera or clipboard, never by typing: a
short code would need another protocol (one guess per offer), which this is not.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from transport.errors import PairingTextError
from transport.identities import KEY_SIZE, Secret

__all__ = [
    "PairingText",
    "PairingTextError",
    "check_number",
    "device_psk",
    "pairing_psk",
    "parse_pairing_text",
]

_PREFIX: Final = "TGATE:"
_FORM: Final = b"\x01"
_CHECKSUM: Final = 4  # bytes: a mistyped text passes once in 4 billion
_MAX_TEXT: Final = 2_048  # characters; two keys and a handful of addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingText:
    """What a device needs to be paired: which Agent, the secret, where to reach it."""

    agent_key: bytes
    secret: Secret
    urls: tuple[str, ...]

    def encode(self) -> str:
        """Return the text to show as a QR code or to copy; it holds the secret."""
        body = _FORM + self.agent_key + self.secret.reveal()
        for url in self.urls:
            body += bytes((len(url),)) + url.encode("ascii")
        return _PREFIX + _base32(body + _checksum(body))


def parse_pairing_text(text: str) -> PairingText:
    """Read a pairing text; case, spaces, line ends and hyphens do not matter.

    Raises:
        PairingTextError: it says to a person what is wrong with the text.
    """
    body = _checked_body(text)
    if body[:1] != _FORM:
        raise PairingTextError("This pairing text is of a newer version: update.")
    key, secret = body[1 : 1 + KEY_SIZE], body[1 + KEY_SIZE : 1 + 2 * KEY_SIZE]
    if len(secret) != KEY_SIZE:
        raise PairingTextError("This pairing text is incomplete. Copy it again.")
    urls = _urls(body[1 + 2 * KEY_SIZE :])
    return PairingText(agent_key=key, secret=Secret(secret), urls=urls)


def pairing_psk(secret: Secret) -> bytes:
    """Return the psk of the pairing channel, 32 bytes."""
    return _derive(secret, salt=b"", info=b"threadgate/pair-psk/1")


def device_psk(secret: Secret, handshake_hash: bytes) -> bytes:
    """Return the psk of the paired device, 32 bytes, bound to this one pairing."""
    return _derive(secret, salt=handshake_hash, info=b"threadgate/device-psk/1")


def check_number(handshake_hash: bytes) -> str:
    """Return the six digits that both screens show: the same only on the same channel."""
    digest = hmac.digest(handshake_hash, b"threadgate/sas/1", "sha256")
    return f"{int.from_bytes(digest, 'big') % 1_000_000:06d}"


def _derive(secret: Secret, *, salt: bytes, info: bytes) -> bytes:
    hkdf = HKDF(algorithm=SHA256(), length=KEY_SIZE, salt=salt, info=info)
    return hkdf.derive(secret.reveal())


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:_CHECKSUM]


def _base32(data: bytes) -> str:
    return base64.b32encode(data).decode("ascii").rstrip("=")


def _checked_body(text: str) -> bytes:
    compact = "".join(text.split()).replace("-", "").upper()
    if not compact.startswith(_PREFIX) or len(compact) > _MAX_TEXT:
        raise PairingTextError("This is not a pairing text: one begins with TGATE:")
    letters = compact.removeprefix(_PREFIX)
    mistyped = PairingTextError("The pairing text is mistyped. Copy it again.")
    try:
        data = base64.b32decode(letters + "=" * (-len(letters) % 8))
    except (binascii.Error, ValueError):
        raise mistyped from None
    body, checksum = data[:-_CHECKSUM], data[-_CHECKSUM:]
    # Re-encoding finds a changed last character, whose spare bits decode to nothing.
    if not hmac.compare_digest(_checksum(body), checksum) or _base32(data) != letters:
        raise mistyped
    return body


def _urls(rest: bytes) -> tuple[str, ...]:
    urls: list[str] = []
    while rest:
        length = rest[0]
        url, rest = rest[1 : 1 + length], rest[1 + length :]
        text = url.decode("ascii", "replace")
        # Other schemes belong to newer Agents: whoever cannot dial them skips them.
        clean = text.isascii() and text.isprintable() and "://" in text
        if len(url) != length or not clean:
            raise PairingTextError("This pairing text holds an address that is none.")
        if _scheme(text) not in {"", "stdio"}:  # a text must not say what is run here
            urls.append(text)
    return tuple(urls)


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:  # it cannot be dialled, whatever it is
        return ""
