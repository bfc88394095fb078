"""From an address to an open channel. Trio shell. PROTOCOL.md section 1."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import trio

from transport.carriers import stdio, tcp, unix
from transport.channel import (
    Channel,
    MessageChannel,
    Mode,
    PlainChannel,
    connect_channel,
)
from transport.errors import HandshakeError, SilentAgentError, UnreachableError
from transport.identities import PrivateKey, Secret
from transport.limits import CHILD_HANDSHAKE_S, HANDSHAKE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An Agent that this device is paired with.

    `url`: `tcp://host:port`, `unix:///path` (its agent.sock), `ssh://[user@]host[:port]`,
    or `stdio:COMMAND`. `psk`: made by pairing.
    """

    url: str
    agent_key: bytes
    identity: PrivateKey
    psk: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminTarget:
    """The Agent of this machine, as its owner: admin.sock, no keys."""

    path: Path


async def dial(target: Target | AdminTarget) -> MessageChannel:
    """Return an open channel, which the caller closes.

    Raises:
        UnreachableError: nobody answers, or (SilentAgentError) hangs up on us.
    """
    if isinstance(target, AdminTarget):
        return PlainChannel(await unix.connect(target.path))
    return await shake_hands(
        target.url,
        mode=Mode.SESSION,
        agent_key=target.agent_key,
        identity=target.identity,
        psk=target.psk.reveal(),
    )


async def shake_hands(
    url: str,
    *,
    mode: Mode,
    agent_key: bytes,
    identity: PrivateKey,
    psk: bytes,
    payload: bytes = b"",
) -> Channel:
    """Return an encrypted channel to the Agent at `url`; padded where a network is.

    Raises:
        UnreachableError: nobody answers, or (SilentAgentError) hangs up on us.
    """
    stream, padded = await _open_stream(url)
    try:
        return await connect_channel(
            stream,
            mode=mode,
            agent_key=agent_key,
            identity=identity,
            psk=psk,
            payload=payload,
            padded=padded,
            within_s=CHILD_HANDSHAKE_S if stdio.is_stdio(url) else HANDSHAKE_S,
        )
    except HandshakeError as exc:
        refused = exc
    if isinstance(stream, stdio.ChildStream) and (why := await stream.failure()):
        raise why from refused
    raise SilentAgentError(
        f"something listens at {url} and does not answer this device: the Agent hangs or "
        "has too much to do, or it does not take this device (revoked or not paired "
        "there, the pairing has ended, locked, another Agent)"
    ) from refused


async def _open_stream(url: str) -> tuple[trio.abc.Stream, bool]:
    if stdio.is_stdio(url):
        return await stdio.connect(url), False  # it ends at an agent.sock
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as exc:
        raise UnreachableError(f"this client cannot dial {url}") from exc
    if parts.scheme == "unix" and parts.path and not parts.netloc:
        return await unix.connect(Path(unquote(parts.path))), False
    if parts.scheme == "tcp" and host and port:
        return await tcp.connect(host, port), True
    raise UnreachableError(f"this client cannot dial {url}")
