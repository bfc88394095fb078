"""Looks at folders and keys for `doctor`: whose they are, who else may read. Blocking I/O.

Only the modes are looked at; nothing below CODEX_HOME is opened.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent.config import Config
from agent.doctor.findings import Finding, Level, fail, ok, warn
from agent.limits import BEGIN_BYTES, RESERVE_BYTES
from agent.records.reserve import NAME as RESERVE
from agent.state import AUDIT, DEVICES, IDENTITY, LEDGER

_OTHERS: Final = 0o077
_OTHERS_WRITE: Final = 0o022
_SECRETS: Final = (
    IDENTITY,
    DEVICES,
    LEDGER,
    AUDIT,
    "client/device.key",
    "client/hosts.json",
)


def look_at_state(config: Config) -> Finding:
    """The state folder and every secret in it: ours, and for nobody else."""
    folder = config.state_dir
    if not folder.exists():
        return ok(
            "keys", f"no state folder yet ({folder}): `threadgate serve` makes it"
        )
    wrong = list(_open_to_others(folder))
    if wrong:
        paths = " ".join(str(path) for path in wrong)
        advice = f"chmod go= {paths}; if others use this machine, pair all devices anew"
        return fail("keys", f"others can reach {len(wrong)} of the secrets", advice)
    return ok("keys", f"{folder} and the keys in it are for you alone")


def _open_to_others(folder: Path) -> Iterator[Path]:
    for path in (folder, *(folder / name for name in _SECRETS)):
        try:
            found = path.lstat()
        except OSError:
            continue
        strange = found.st_uid != os.geteuid() or stat.S_ISLNK(found.st_mode)
        if strange or stat.S_IMODE(found.st_mode) & _OTHERS:
            yield path


def look_at_disk(folder: Path) -> Finding:
    """Room where the Agent writes: without it every mutation is refused."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        disk = os.statvfs(folder)
    except OSError as exc:
        advice = f"look at {folder}"
        return fail("disk", f"its room cannot be told ({exc.strerror})", advice)
    room = disk.f_bavail * disk.f_frsize
    laid_in = (folder / RESERVE).exists()
    advice = f"make room on the disk of {folder}"
    if room < BEGIN_BYTES + (0 if laid_in else RESERVE_BYTES):
        text = f"{room >> 10:,} KiB are free: threads can be read, nothing is sent"
        return fail("disk", text, advice)
    if room < 4 * RESERVE_BYTES:
        return warn("disk", f"only {room >> 10:,} KiB are free", advice)
    return ok("disk", f"{room >> 20:,} MiB are free for the Agent's records")


def look_at_codex_home(home: Path) -> Finding:
    """Codex's own folder: there, ours, and not writable by others."""
    try:
        found = home.stat()
    except OSError:
        advice = "run codex once and log in (`codex login`), or set CODEX_HOME"
        return fail("codex home", f"{home} is not there", advice)
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.geteuid():
        advice = "run threadgate as the user that uses Codex"
        return fail("codex home", f"{home} belongs to another user", advice)
    if mode & _OTHERS_WRITE:
        advice = f"chmod go= {home}"
        return fail("codex home", f"others may write to {home} ({mode:o})", advice)
    if mode & _OTHERS:
        advice = f"chmod go= {home}, unless you share it on purpose"
        return warn("codex home", f"others may look into {home} ({mode:o})", advice)
    return ok("codex home", f"{home} is for you alone")


def look_at_clock(config: Config, *, now_ms: int, oldest_ms: int) -> Finding:
    """The clock: not before this program was made, nor before what was written here.

    Deadlines of approvals and audit entries are told by it.
    """
    newest = 0.0
    for path in (config.state_dir / name for name in _SECRETS):
        try:
            newest = max(newest, path.lstat().st_mtime * 1_000)
        except OSError:
            continue
    advice = "set the clock (on systemd: timedatectl set-ntp true)"
    if now_ms < oldest_ms:
        return fail("clock", "it is before this program was made", advice)
    if newest > now_ms + 60_000:
        return warn("clock", "files of ours were written later than now", advice)
    return Finding(name="clock", level=Level.OK, text="it does not go backwards")
