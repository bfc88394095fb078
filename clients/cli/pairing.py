"""`pair` at the workstation, `connect` at the device. Trio shell. PROTOCOL.md section 1."""

import platform
import shlex
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import segno

from clients.cli.asking import at_terminal, confirm
from clients.cli.doors import client_info, open_local
from clients.cli.exits import (
    ExitCode,
    FailedError,
    NotReachedError,
    UsageProblemError,
)
from clients.cli.folders import device_key_file, host_book_file
from clients.cli.hosts import load_book, record_of, save_book
from clients.cli.lines.devices import (
    candidate_lines,
    check_text,
    connected_lines,
    paired_line,
)
from clients.cli.plain import one_line
from clients.cli.screen import Screen
from clients.cli.style import Span
from transport.carriers.stdio import command_of, is_stdio, url_of
from transport.client import Client
from transport.client import pair as pair_device
from transport.errors import UnreachableError
from transport.keys import load_identity
from transport.pairing import parse_pairing_text
from transport.protocol.admin import (
    DeviceRow,
    PairAwaitParams,
    PairAwaitResult,
    PairCandidate,
    PairDecideParams,
    PairOpenParams,
    PairOpenResult,
)
from transport.protocol.gateway import ScopeName
from transport.protocol.methods import PAIR_AWAIT, PAIR_DECIDE, PAIR_OPEN

Ask = Callable[[PairCandidate], Awaitable[bool]]

NAME_BYTES = 100  # of UTF-8, the protocol's limit
QR_CELLS = 60  # the code of a text with three addresses, and its border


async def pair(
    screen: Screen,
    *,
    scopes: Sequence[ScopeName],
    only: Sequence[Path],
    unattended: bool,
) -> ExitCode:
    """Offer a pairing, show who comes, ask, and say what became of it."""
    if not unattended and not at_terminal():
        raise UsageProblemError(
            "there is no terminal to ask on: run it where you can answer, or add --yes "
            "(no question, and the device may only read)"
        )
    params = PairOpenParams(
        scopes=list(scopes),
        only=[str(folder.resolve()) for folder in only] or None,
        unattended=unattended,
    )
    async with open_local() as client:
        await offer(screen, client, params, _asked_here)
    return ExitCode.OK


async def offer(
    screen: Screen, client: Client, params: PairOpenParams, ask: Ask
) -> DeviceRow:
    """Open an offer over admin.sock and see it through; return the new device.

    `ask` gets the candidate after it was shown. Raises: FailedError (a no, an end).
    """
    show_offer(screen, await client.call(PAIR_OPEN, params))
    return await see_through(screen, client, ask)


async def see_through(screen: Screen, client: Client, ask: Ask) -> DeviceRow:
    """Wait for who takes the open offer, and decide; return the new device."""
    came = await client.call(PAIR_AWAIT, PairAwaitParams())
    device = came.device or await _decide(screen, client, _candidate(came), ask)
    screen.lines([paired_line(device)])
    return device


def show_offer(screen: Screen, opened: PairOpenResult) -> None:
    """Print the pairing text, on a terminal as a QR code as well."""
    if screen.width is not None and screen.width >= QR_CELLS:
        segno.make(opened.text, error="l").terminal(screen.out, border=2, compact=True)
    left = screen.clock().left(opened.expires_at)
    screen.say("On the other device run `threadgate connect` and give it this text:")
    screen.say()
    screen.say(Span(opened.text, "bold"))
    screen.say()
    screen.say(f"It is good for one device and {left}. Ctrl-C withdraws it.")


def _candidate(came: PairAwaitResult) -> PairCandidate:
    if came.candidate is None:
        why = one_line(came.why or "it has ended")
        raise FailedError(f"no device was paired: {why}; `threadgate pair` offers anew")
    return came.candidate


async def _decide(
    screen: Screen, client: Client, candidate: PairCandidate, ask: Ask
) -> DeviceRow:
    screen.say()
    screen.lines(candidate_lines(candidate))
    decision = PairDecideParams(accept=await ask(candidate), check=candidate.check)
    device = (await client.call(PAIR_DECIDE, decision)).device
    if device is None:
        raise FailedError("not paired: nothing was given to that device")
    return device


async def _asked_here(candidate: PairCandidate) -> bool:
    name = one_line(candidate.name, 40)
    return await confirm(f"Pair “{name}”?")


async def connect(
    screen: Screen, text: str, *, name: str | None, via: str | None
) -> ExitCode:
    """Pair this machine with an Agent; keep its record only once it said yes."""
    offered = parse_pairing_text(text)
    book = load_book(host_book_file())
    identity = load_identity(device_key_file(), create=True)

    def show_check(check: str) -> None:
        screen.say("Check number: ", Span(check_text(check), "warn"))
        screen.say("Compare it with the workstation's, and answer there.")

    try:
        paired = await pair_device(
            offered,
            identity=identity,
            name=device_name(name),
            client=client_info(),
            on_check=show_check,
            via=None if via is None else way_of(via),
        )
    except UnreachableError as error:
        raise NotReachedError(f"not paired: {error}") from error
    record = record_of(paired, offered, paired_at=screen.clock().now)
    save_book(host_book_file(), book.with_host(record))
    screen.lines(connected_lines(record.name, paired.device))
    return ExitCode.OK


def way_of(via: str) -> str:
    """Return the url of `--via`: a url as it is, else a command to run.

    Raises: UsageProblemError.
    """
    try:
        url = via if "://" in via.partition(" ")[0] else url_of(shlex.split(via))
        if is_stdio(url):
            command_of(url)
    except (UnreachableError, ValueError) as error:
        raise UsageProblemError(f"--via: {error}") from error
    return url


def device_name(name: str | None) -> str:
    """Return what the workstation will know this device by, within the limit."""
    wanted = one_line(name or platform.node()) or "device"
    return wanted.encode()[:NAME_BYTES].decode(errors="ignore")
