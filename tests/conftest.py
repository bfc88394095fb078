"""What all tests share: a home of their own, no leftover process, hypothesis profiles."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

from tests.support import cli_runs
from tests.support.codex import cache_folder, work_folder
from tests.support.leftovers import mark_run, marked_processes
from tests.support.warm_cli import warm_commands

REAL: Final = ("/tests/process/", "/tests/e2e/", "/tests/faults/", "/tests/security/")
PATIENCE_S: Final = 20.0  # a killed child needs a moment to be reaped by its parent

settings.register_profile(
    "dev",
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("dev"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session", autouse=True)
def home_of_the_run() -> Iterator[Path]:
    """Give all children a HOME that is nobody's.

    Codex runs the login shell of HOME for each thread that it loads, and a test ends
    codex in the middle of that: a developer's own rc files must not be cut short.
    """
    os.environ["THREADGATE_TEST_CACHE"] = str(cache_folder())
    with work_folder("home") as home:
        os.environ["HOME"] = str(home)
        yield home


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard() -> None:
    """A shell starts its background jobs deaf to SIGINT, and all their children are."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def run_mark(home_of_the_run: Path) -> str:
    del home_of_the_run  # set before anything is started
    return mark_run()


@pytest.fixture(scope="session")
def warm(run_mark: str) -> Iterator[tuple[str, ...]]:
    """The beginning of a warm command's argv."""
    del run_mark  # which the server does not take over
    with work_folder("warm") as folder, warm_commands(folder) as argv:
        yield argv


@pytest.fixture
def warm_runs(warm: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `run_cli` run warm commands."""
    monkeypatch.setattr(cli_runs, "_COMMAND", warm)


@pytest.fixture(autouse=True)
def no_process_outlives_its_test(
    request: pytest.FixtureRequest, run_mark: str
) -> Iterator[None]:
    yield
    if not any(part in str(request.path) for part in REAL):
        return
    deadline = time.monotonic() + PATIENCE_S
    while (left := marked_processes(run_mark)) and time.monotonic() < deadline:
        os.sched_yield()
    assert not left, f"processes outlived the test: {left}"
