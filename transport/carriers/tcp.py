"""TCP. Trio shell. It carries ciphertext only; nothing listens unless configured.

Trio sets TCP_NODELAY on every stream: a frame never waits for the one after it.
"""

from collections.abc import Sequence
from typing import Final

import trio

from transport.errors import UnreachableError
from transport.limits import CONNECT_S

_BACKLOG: Final = 64  # twice the handshakes that the Agent lets wait


async def connect(host: str, port: int) -> trio.SocketStream:
    """Return a stream to `host:port` within `CONNECT_S`.

    Raises:
        UnreachableError: nobody answers there.
    """
    try:
        with trio.move_on_after(CONNECT_S):
            return await trio.open_tcp_stream(host, port)
    except (OSError, UnicodeError) as exc:  # the latter of a name that none can be
        raise UnreachableError(f"nobody answers at {host}:{port} ({exc})") from exc
    raise UnreachableError(f"nobody answered at {host}:{port} in {CONNECT_S:g} s")


async def listen(host: str, port: int) -> Sequence[trio.SocketListener]:
    """Listen on the addresses of `host` (never on all by default); 0 takes any port.

    Raises:
        OSError: the address is taken or not ours.
    """
    try:
        return await trio.open_tcp_listeners(port, host=host, backlog=_BACKLOG)
    except OSError as exc:
        raise OSError(f"cannot listen at {host}:{port}: {exc.strerror}") from exc


def address(listener: trio.SocketListener) -> str:
    """Return `tcp://host:port` of a listener, as a pairing text holds it."""
    host, port = listener.socket.getsockname()[:2]
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def peer_host(stream: trio.SocketStream) -> str:
    """Return the peer's numeric address, for limits per source and for the log."""
    return str(stream.socket.getpeername()[0])
