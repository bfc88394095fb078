"""The pairing text and what both sides derive. PROTOCOL.md section 1."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transport.identities import Secret
from transport.pairing import (
    PairingText,
    PairingTextError,
    check_number,
    device_psk,
    pairing_psk,
    parse_pairing_text,
)

KEY, SECRET = bytes(range(32)), Secret(bytes(range(32, 64)))
URLS = ("tcp://192.168.1.20:7443", "wss://gate.example/c")
TEXT = PairingText(agent_key=KEY, secret=SECRET, urls=URLS)
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def encoded(body: bytes) -> str:
    whole = body + hashlib.sha256(body).digest()[:4]
    return "TGATE:" + base64.b32encode(whole).decode().rstrip("=")


def test_the_text_holds_what_the_specification_says() -> None:
    body = b"\1" + KEY + SECRET.reveal()
    for url in URLS:
        body += bytes([len(url)]) + url.encode()
    assert TEXT.encode() == encoded(body)


@given(
    key=st.binary(min_size=32, max_size=32),
    secret=st.binary(min_size=32, max_size=32),
    ports=st.lists(st.integers(1, 65_535), max_size=4),
)
def test_a_text_comes_back(key: bytes, secret: bytes, ports: list[int]) -> None:
    urls = tuple(f"tcp://host:{port}" for port in ports)
    text = PairingText(agent_key=key, secret=Secret(secret), urls=urls)
    assert parse_pairing_text(text.encode()) == text


def test_case_spaces_and_line_ends_do_not_matter() -> None:
    letters = TEXT.encode().lower()
    sloppy = "  " + "\n".join(letters[i : i + 20] for i in range(0, len(letters), 20))
    assert parse_pairing_text(sloppy + "\r\n") == TEXT


@pytest.mark.parametrize("urls", [(), ("tcp://h:1",), ("tcp://host:12",), URLS])
def test_one_wrong_character_anywhere_is_found(urls: tuple[str, ...]) -> None:
    text = PairingText(agent_key=KEY, secret=SECRET, urls=urls).encode()
    for place in range(len("TGATE:"), len(text)):
        for other in ALPHABET:
            if other != text[place]:
                wrong = text[:place] + other + text[place + 1 :]
                with pytest.raises(PairingTextError, match="mistyped"):
                    parse_pairing_text(wrong)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a pairing text"),
        ("https://example", "not a pairing text"),
        ("TGATE:" + "A" * 5_000, "not a pairing text"),
        ("TGATE:", "mistyped"),
        ("TGATE:1890!", "mistyped"),
        (TEXT.encode()[:-1], "mistyped"),
        (TEXT.encode() + "A", "mistyped"),
        (encoded(b"\2" + bytes(64)), "newer version"),
        (encoded(b"\1" + bytes(63)), "incomplete"),
        (encoded(b"\1" + bytes(64) + b"\5ab"), "address"),
        (encoded(b"\1" + bytes(64) + b"\0"), "address"),
        (encoded(b"\1" + bytes(64) + b"\x20tcp://h:1"), "address"),
        (encoded(b"\1" + bytes(64) + b"\6tcp://\1\x1b"), "address"),
        (encoded(b"\1" + bytes(64) + b"\7tcp://\xff"), "address"),
    ],
)
def test_what_is_wrong_with_a_text_is_said(text: str, why: str) -> None:
    with pytest.raises(PairingTextError, match=why):
        parse_pairing_text(text)


@pytest.mark.parametrize("odd", ["tcp://[::1", "stdio://true", " stdio://true"])
def test_an_address_that_cannot_or_must_not_be_dialled_is_skipped(odd: str) -> None:
    text = PairingText(agent_key=KEY, secret=SECRET, urls=(odd, "tcp://host:12"))
    assert parse_pairing_text(text.encode()).urls == ("tcp://host:12",)


def test_no_refusal_repeats_the_text() -> None:
    with pytest.raises(PairingTextError) as caught:
        parse_pairing_text(TEXT.encode()[:-1])
    assert TEXT.encode()[10:30] not in str(caught.value)
    assert caught.value.__cause__ is None


def hkdf(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """RFC 5869 for one block, written down anew."""
    extracted = hmac.digest(salt or bytes(32), secret, "sha256")
    return hmac.digest(extracted, info + b"\1", "sha256")


def test_the_psks_are_derived_as_specified() -> None:
    raw, channel = SECRET.reveal(), hashlib.sha256(b"channel").digest()
    assert pairing_psk(SECRET) == hkdf(raw, b"", b"threadgate/pair-psk/1")
    assert device_psk(SECRET, channel) == hkdf(raw, channel, b"threadgate/device-psk/1")


def test_the_check_number_is_six_digits_of_the_channel() -> None:
    for number in range(200):
        channel = hashlib.sha256(bytes([number])).digest()
        digest = hmac.digest(channel, b"threadgate/sas/1", "sha256")
        shown = check_number(channel)
        assert len(shown) == 6
        assert int(shown) == int.from_bytes(digest, "big") % 1_000_000
    assert any(
        check_number(hashlib.sha256(bytes([n])).digest())[0] == "0" for n in range(200)
    )
