"""What the state folder holds: identity, devices, ledger, audit. Blocking I/O.

SECURITY.md. Whatever is wrong with it is told and nothing starts; a key or a list of
devices is never made anew by itself, since to every device that would look like an
attack.
"""

import logging
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from agent.access.rules import within
from agent.clocks import wall_ms
from agent.config import Config
from agent.gate.panic import LockFile
from agent.pairing.devices import Devices
from agent.records.audit import Audit
from agent.records.reserve import Reserve
from agent.records.store import Store
from transport.identities import PrivateKey
from transport.keys import load_identity, remove_drafts

_LOG: Final = logging.getLogger(__name__)
IDENTITY: Final = "identity.key"
DEVICES: Final = "devices.json"
LEDGER: Final = "ledger.sqlite"
AUDIT: Final = "audit.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Open as long as the Agent runs."""

    identity: PrivateKey
    devices: Devices
    store: Store
    audit: Audit
    lock: LockFile
    reserve: Reserve


@contextmanager
def open_state(
    config: Config, in_place: Callable[[], bool] = lambda: True
) -> Generator[State]:
    """Open what survives a restart. `in_place`: whether the folder is still this one;
    else nothing new is begun.

    Raises: KeyFileError, DevicesFileError, StorageError; each says what to do.
    """
    folder = config.state_dir
    reserve = Reserve(folder)
    for name in (DEVICES, IDENTITY):
        remove_drafts(folder / name)
    reserve.may_begin()
    devices = Devices(
        folder / DEVICES,
        now_ms=wall_ms,
        within=partial(within, config),
        insist=reserve.insist,
    )
    identity = load_identity(folder / IDENTITY, create=not len(devices))
    with ExitStack() as stack:
        audit = Audit(
            folder / AUDIT,
            now_ms=wall_ms,
            may_begin=partial(_may_begin, in_place, reserve),
        )
        stack.enter_context(closing(audit))
        store = reserve.insist(lambda: Store.open(folder / LEDGER))
        stack.enter_context(closing(store))
        stack.callback(devices.keep_seen)
        yield State(
            identity=identity,
            devices=devices,
            store=store,
            audit=audit,
            lock=LockFile(folder, insist=reserve.insist),
            reserve=reserve,
        )


def _may_begin(in_place: Callable[[], bool], reserve: Reserve) -> bool:
    if in_place():
        return reserve.may_begin()
    _LOG.error("the state folder was removed or replaced: start the Agent anew")
    return False
