"""The pairing offer: made at the workstation, taken by a device, decided. Trio shell.

PROTOCOL.md section 1, SECURITY.md. A device is stored, durably, before it is told; on
every other way nothing of it is left. The person's answer is no unless they say yes.
The connection of the device: `pairing_door`.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import trio

from agent.errors import AuditUnavailableError, StorageError
from agent.mutations.refusals import storage_failed
from agent.pairing.device_records import Device, plain_name
from agent.pairing.devices import Devices
from agent.pairing.offers import Offer, Phase, Suitor, Terms, outcome_of
from agent.sessions.router import Call
from transport.channel import Channel
from transport.errors import (
    Conflict,
    Internal,
    InvalidParams,
    Refusal,
)
from transport.identities import Secret, fingerprint
from transport.pairing import PairingText, check_number, device_psk
from transport.protocol.admin import (
    PairAwaitParams,
    PairAwaitResult,
    PairDecideParams,
    PairDecideResult,
    PairOpenParams,
    PairOpenResult,
)
from transport.protocol.gateway import AgentInfo, Ceiling

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Household:
    """What pairing needs to know of the Agent.

    `boot_now`: seconds of a clock that counts sleep too; `now_ms`: the wall clock;
    `random_bytes`: from the system. `urls`: where devices reach us, at this moment.
    `record`: the audit; `replaced`: told the id of a record that a new one replaced.
    """

    agent: AgentInfo
    agent_key: bytes
    default_ceiling: Ceiling
    urls: Callable[[], tuple[str, ...]]
    record: Callable[..., None]
    replaced: Callable[[str], object]
    boot_now: Callable[[], float]
    now_ms: Callable[[], int]
    random_bytes: Callable[[int], bytes]


class Pairings:
    """At most one offer at a time."""

    def __init__(self, house: Household, devices: Devices) -> None:
        self.house = house
        self._devices = devices
        self._offer: Offer | None = None
        self._changed = trio.Event()

    # At the workstation

    async def open(self, call: Call, params: PairOpenParams) -> PairOpenResult:
        """`pair/open`."""
        self._look()
        if self._offer is not None and not self._offer.over:
            raise Conflict(
                "A pairing offer is open already; close its window first.",
                data={"what": "pairing"},
            )
        terms = self._terms(params)
        secret = Secret(self.house.random_bytes(32))
        try:
            self.house.record("pair.offered", scopes=sorted(terms.scopes))
        except AuditUnavailableError as exc:
            raise storage_failed("audit log") from exc
        offer = Offer(secret, terms, now=self.house.boot_now())
        self._offer = offer
        self._tell()
        call.desk.on_end(partial(self._end, offer, "Its window was closed."))
        text = PairingText(
            agent_key=self.house.agent_key, secret=secret, urls=self.house.urls()
        )
        left_ms = round((offer.expires_at - self.house.boot_now()) * 1000)
        return PairOpenResult(
            text=text.encode(), expires_at=self.house.now_ms() + left_ms
        )

    async def wait(self, call: Call, params: PairAwaitParams) -> PairAwaitResult:
        """`pair/await`."""
        del call, params
        offer = self._offer
        if offer is None:
            return PairAwaitResult(outcome="ended", why="There is no offer.")
        self._look()
        while offer.phase is Phase.OPEN:
            changed = self._changed
            with trio.move_on_after(offer.expires_at - self.house.boot_now()):
                await changed.wait()
            self._look()
        return outcome_of(offer)

    async def decide(self, call: Call, params: PairDecideParams) -> PairDecideResult:
        """`pair/decide`."""
        del call
        offer = self._offer
        if offer is None or offer.phase is not Phase.TAKEN or offer.suitor is None:
            why = offer.why if offer is not None else ""
            raise Conflict(
                f"No device waits for an answer. {why}".strip(),
                data={"what": "pairing"},
            )
        if params.check != offer.suitor.check:
            raise InvalidParams(
                "This is not the check number of the device that waits.",
                data={"field": "check", "reason": "another device"},
            )
        if not params.accept:
            self.refuse(offer, "The answer was no.")
            return PairDecideResult()
        return PairDecideResult(device=self.store(offer, by_check=True).row(sessions=0))

    def withdraw(self, why: str) -> None:
        """End the offer that is open, and whoever took it. No checkpoint."""
        if self._offer is not None and not self._offer.over:
            self.refuse(self._offer, why)

    # At the door

    def begin_handshake(self) -> tuple[bytes, Offer] | None:
        """Return a stranger's psk in mode 2 and the offer it is of; None: silence.

        What came of the handshake must be told: `fail_handshake`, or `take`.
        """
        offer = self._offer
        if offer is None:
            return None
        psk = offer.begin_handshake(self.house.boot_now())
        self._tell()
        return None if psk is None else (psk, offer)

    def fail_handshake(self, offer: Offer) -> None:
        """Tell of a handshake that came to nothing."""
        offer.fail_handshake()
        self._tell()

    def take(self, channel: Channel, offer: Offer, *, source: str) -> bool:
        """Give the offer to who is on this channel; False: it is not to be had any more."""
        suitor = self._suitor(channel, offer, source)
        if suitor is None or not offer.take(suitor, self.house.boot_now()):
            return False
        self._tell()
        return True

    async def wait_over(self, offer: Offer) -> None:
        """Return when nothing more can come of the offer."""
        while not offer.over:
            await self._changed.wait()

    def _suitor(self, channel: Channel, offer: Offer, source: str) -> Suitor | None:
        secret = offer.secret()
        if secret is None:
            return None
        known = self._devices.by_public(channel.remote_static)
        return Suitor(
            public=channel.remote_static,
            name=plain_name(channel.payload),
            check=check_number(channel.handshake_hash),
            source=source,
            psk=Secret(device_psk(secret, channel.handshake_hash)),
            known_revoked=known is not None and known.revoked,
        )

    def store(self, offer: Offer, *, by_check: bool) -> Device:
        """Make the device exist: audit, then file, then memory; or end the offer."""
        assert offer.suitor is not None
        device = self._device(offer.suitor, offer.terms, by_check=by_check)
        before = self._devices.by_public(device.public)
        try:
            self.house.record(
                "pair.accepted",
                device=device.id,
                fingerprint=fingerprint(device.public),
                scopes=sorted(device.scopes),
                by_check=by_check,
            )
            self._devices.add(device)
        except (StorageError, AuditUnavailableError) as exc:
            self._end(offer, "It could not be stored at the workstation.")
            raise Internal(
                "The device could not be stored; nothing of it was kept. Make room in "
                "the state folder and pair again."
            ) from exc
        except Refusal:
            self._end(offer, "It could not be stored at the workstation.")
            raise
        offer.accept(device)
        self._tell()
        if before is not None:
            self.house.replaced(before.id)
        return device

    def _device(self, suitor: Suitor, terms: Terms, *, by_check: bool) -> Device:
        return Device(
            id=self.house.random_bytes(8).hex(),
            public=suitor.public,
            psk=suitor.psk,
            name=suitor.name,
            scopes=terms.scopes,
            ceiling=terms.ceiling,
            follows_threads=terms.follows_threads,
            created_at=self.house.now_ms(),
            paired_by_check=by_check,
        )

    def _terms(self, params: PairOpenParams) -> Terms:
        if params.unattended and set(params.scopes) != {"read"}:
            raise InvalidParams(
                "Without a question at the workstation a device gets the scope read "
                "and nothing else; grant more afterwards.",
                data={"field": "scopes", "reason": "unattended pairing is for read"},
            )
        ceiling = self.house.default_ceiling
        if params.only is not None:
            roots = [_existing(folder) for folder in params.only]
            ceiling = ceiling.model_copy(update={"roots": roots})
        return Terms(
            scopes=frozenset(params.scopes),
            ceiling=ceiling,
            follows_threads=params.only is None,
            unattended=params.unattended,
        )

    def refuse(self, offer: Offer, why: str) -> None:
        """Say no: the offer is over, and nothing of the device is left."""
        if offer.phase is Phase.TAKEN:
            try:
                self.house.record("pair.refused")
            except AuditUnavailableError:
                _LOG.warning("a refused pairing could not be recorded")
        self._end(offer, why)

    def _end(self, offer: Offer, why: str) -> None:
        offer.end(why)
        self._tell()

    def _look(self) -> None:
        if self._offer is not None:
            self._offer.look(self.house.boot_now())

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


def _existing(folder: str) -> str:
    if not Path(folder).is_dir():
        raise InvalidParams(
            f"There is no folder {folder}.",
            data={"field": "only", "reason": "no such folder"},
        )
    return folder
