"""Looks at codex for `doctor`: which, how far from the tested ones. Trio shell.

And what it decides without asking: for that a reader is started, as `serve` does; it
loads no thread.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import trio

from adapter.calls.drift import Drift, SchemaUnreadableError, schema_drift
from adapter.calls.versions import OLDEST, PINNED, parse_version, traits_of
from adapter.codex import CodexRuntime
from adapter.errors import AdapterError, BinaryNotFoundError
from adapter.processes.binary import Codex, find_codex
from adapter.runtime.events import RuntimeEvent
from adapter.runtime.reader import Reader
from agent.clocks import wall_ms
from agent.config import Config
from agent.doctor.findings import Finding, fail, ok, warn

_READER_S = 30.0
_SHOWN = 6  # names in one line


async def look_at_codex(config: Config, environ: Mapping[str, str]) -> list[Finding]:
    """Which codex, its version, its schema, its configuration and sandbox."""
    try:
        codex = await trio.to_thread.run_sync(find_codex, config.codex, environ)
    except BinaryNotFoundError as exc:
        said, _, advice = str(exc).partition(". ")
        return [fail("codex", said, advice or "install codex")]
    found = [ok("codex", f"{codex.version}, {codex.path}"), version_of(codex.version)]
    found.append(await _schema(codex))
    if config.codex_home.is_dir():
        found += await _asked(codex, config.codex_home)
    return found


def version_of(version: str) -> Finding:
    """Where a version lies in the tested range."""
    number = parse_version(version)
    oldest, newest = parse_version(OLDEST), parse_version(PINNED)
    assert oldest is not None
    assert newest is not None
    tested = f"tested are {OLDEST} to {PINNED}"
    if number is None or number < oldest:
        advice = "update codex"
        return fail("version", f"{version} is older than what is tested", advice)
    if not traits_of(version).locks_threads:
        advice = "update codex to 0.147 or newer: beside another Codex only reads work"
        return warn("version", f"{version} takes no thread locks ({tested})", advice)
    if number > newest:
        advice = "look for a newer threadgate; what it does not know arrives as `other`"
        return warn("version", f"{version} is newer than what is tested", advice)
    return ok("version", tested)


async def _schema(codex: Codex) -> Finding:
    try:
        drift = await trio.to_thread.run_sync(schema_drift, codex.path)
    except SchemaUnreadableError as exc:
        advice = "look whether this is the codex that you mean"
        return warn("schema", str(exc), advice)
    return schema_finding(drift, codex.version)


def schema_finding(drift: Drift, version: str) -> Finding:
    """What a difference in the messages means."""
    if not drift:
        return ok("schema", f"its messages are those of {PINNED}")
    parts = [
        f"{len(names)} {what} ({_some(names)})"
        for names, what in (
            (drift.missing, "missing"),
            (drift.added, "new"),
            (drift.changed, "changed"),
        )
        if names
    ]
    text = f"against {PINNED}: {', '.join(parts)}"
    if version == PINNED:
        advice = "this codex is not what it says it is: install it anew"
        return fail("schema", text, advice)
    number, pinned = parse_version(version), parse_version(PINNED)
    if number is not None and pinned is not None and number < pinned:
        return ok("schema", f"{text}, as expected of an older one")
    return warn("schema", text, "look for a newer threadgate")


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


async def _asked(codex: Codex, home: Path) -> list[Finding]:
    try:
        with trio.fail_after(_READER_S), tempfile.TemporaryDirectory() as records:
            runtime = CodexRuntime(
                codex=codex, home=home, records=Path(records), now_ms=wall_ms
            )
            async with runtime.open_reader(_ignore) as reader:
                return [await _approvals(reader), await _sandbox(reader)]
    except (AdapterError, trio.TooSlowError, OSError) as exc:
        advice = "run `codex app-server` by hand and look at what it says"
        said = str(exc) or "it did not answer in time"
        return [fail("app-server", said.splitlines()[0], advice)]


async def _approvals(reader: Reader) -> Finding:
    alone = await reader.decided_alone()
    if not alone:
        return ok("approvals", "your Codex configuration leaves them to you")
    advice = "change your Codex configuration if devices are meant to be asked"
    text = f"your Codex configuration decides some by itself: {'; '.join(alone)}"
    return warn("approvals", text, advice)


async def _sandbox(reader: Reader) -> Finding:
    fault = await reader.sandbox_fault()
    if fault is None:
        return ok("sandbox", "`true` runs in it")
    advice = "see Codex's notes on its sandbox; in containers it often cannot start"
    return warn("sandbox", f"`true` does not run in it: {fault}", advice)


def _ignore(event: RuntimeEvent) -> None:
    """A reader's events are of no interest here."""
