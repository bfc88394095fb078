"""The way to an Agent: a paired host, or admin.sock of this machine. Trio shell."""

import os
import platform
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from clients.cli.clock import duration
from clients.cli.exits import FailedError, NotReachedError
from clients.cli.folders import device_key_file, host_book_file
from clients.cli.hosts import LOCAL, choose_host, load_book
from clients.cli.screen import Screen
from clients.cli.workstation import admin_sockets, running_agent
from transport.client import AdminTarget, Client, LinkState, Target, open_client
from transport.errors import SilentAgentError, UnreachableError
from transport.keys import PrivateKey, load_identity
from transport.protocol.session import ClientInfo


class LinkTeller:
    """Says on stderr when a connection is lost, and when it is there again."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._lost = False

    def tell(self, link: LinkState) -> None:
        """Take in a change; for `open_client`."""
        if link.up and self._lost:
            self._screen.note("connected again")
        elif not link.up and link.retry_in_s is not None:
            when = duration(round(link.retry_in_s * 1000))
            self._screen.cut_in()
            self._screen.note(f"connection lost ({link.why}); next try in {when}")
        self._lost = not link.up


def client_info() -> ClientInfo:
    """Return what this process says about itself; a new instance each time."""
    return ClientInfo(
        name="threadgate-cli",
        version=version("threadgate"),
        platform=platform.system().lower() or "unknown",
        instance=secrets.token_hex(16),
    )


OnLink = Callable[[LinkState], None]


@asynccontextmanager
async def open_door(
    wanted: str | None, *, on_link: OnLink | None = None
) -> AsyncGenerator[Client]:
    """Connect to the host that is meant: `--host`, the only one known, else `local`.

    `on_link` is told of losses and returns. Raises: UsageProblemError, NotReachedError, KeyFileError.
    """
    record = choose_host(load_book(host_book_file()), wanted, os.environ)
    if record is None:
        async with open_local(asked=wanted == LOCAL, on_link=on_link) as client:
            yield client
        return
    targets = record.targets(device_key())
    async with AsyncExitStack() as stack:
        yield await _first_reached(stack, targets, record.name, on_link)


def device_key() -> PrivateKey:
    """Return the key that this device was paired with."""
    path = device_key_file()
    if not path.exists():
        raise FailedError(
            f"the key of this device ({path}) is missing: pair again (`threadgate connect`)"
        )
    return load_identity(path, create=False)


async def _first_reached(
    stack: AsyncExitStack, targets: Sequence[Target], name: str, on_link: OnLink | None
) -> Client:
    failures: list[str] = []
    for target in targets:
        door = open_client(target, client_info(), on_link=on_link)
        try:
            return await stack.enter_async_context(door)
        except SilentAgentError as error:
            raise NotReachedError(
                f"{name} does not answer, though something listens at {target.url}: the "
                "Agent hangs or has too much to do (try again; look at what it prints), "
                "or it does not take this device any more (revoked, locked, another "
                "Agent): its owner knows which"
            ) from error
        except UnreachableError as error:
            failures.append(str(error))
    raise NotReachedError(
        f"cannot reach {name}: {'; '.join(failures)}; is `threadgate serve` running there?"
    )


@asynccontextmanager
async def open_local(
    *, asked: bool = True, on_link: OnLink | None = None
) -> AsyncGenerator[Client]:
    """Connect to the Agent of this machine, as its owner.

    `asked`: the person meant it; else it is what is left when no host is known.
    """
    paths = admin_sockets()
    async with AsyncExitStack() as stack:
        yield await _first_local(stack, paths, asked=asked, on_link=on_link)


async def _first_local(
    stack: AsyncExitStack, paths: Sequence[Path], *, asked: bool, on_link: OnLink | None
) -> Client:
    failures: list[UnreachableError] = []
    for path in paths:
        door = open_client(AdminTarget(path=path), client_info(), on_link=on_link)
        try:
            return await stack.enter_async_context(door)
        except UnreachableError as error:
            failures.append(error)
    # One that was reached and says nothing tells more than one that is not there.
    silent = [one for one in failures if not isinstance(one.__cause__, OSError)]
    first = (silent or failures)[0]
    raise NotReachedError(_nobody(paths[0], first, asked=asked)) from first


def _nobody(path: Path, error: UnreachableError, *, asked: bool) -> str:
    if not isinstance(error.__cause__, OSError):  # it was reached
        return (
            f"the Agent of this machine does not answer ({error}): it hangs or has too "
            "much to do; look at what it prints, or start it anew"
        )
    if (agent := running_agent()) is not None:
        return (
            f"an Agent runs here ({agent.text}) and cannot be reached ({error}): it "
            f"starts or closes; try again in a moment, else {agent.end} and start it anew"
        )
    if asked:
        return (
            f"no Agent answers on this machine ({error}): start one (`threadgate "
            "serve`) if this is the workstation; if not, do this there"
        )
    return (
        f"no host is paired and no Agent runs here ({path}): pair with one "
        "(`threadgate connect`), or start one (`threadgate serve`)"
    )
