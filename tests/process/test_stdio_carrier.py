"""The way through a program: `ssh HOST threadgate stdio`, over a real sshd where it is."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.support.agents import (
    Device,
    House,
    client_info,
    open_agent,
    open_owner,
    pair_device,
)
from tests.support.cli_runs import cli_environ, command_line, run_cli
from tests.support.sshd import Sshd, open_sshd
from transport.carriers.stdio import ChildStream, command_of, connect, is_stdio, url_of
from transport.client import Target, open_client, pair
from transport.errors import SilentAgentError, UnreachableError
from transport.identities import PrivateKey, Secret
from transport.limits import CHILD_WORDS
from transport.pairing import PairingText, parse_pairing_text
from transport.protocol import admin, gateway
from transport.protocol.methods import (
    DEVICE_REVOKE,
    GATEWAY_STATUS,
    PAIR_AWAIT,
    PAIR_DECIDE,
    PAIR_OPEN,
)

THREADGATE = Path(sys.executable).parent / "threadgate"


def environ_of(house: House) -> dict[str, str]:
    return {
        **cli_environ(house.config.state_dir),
        "THREADGATE_RUNTIME_DIR": str(house.config.runtime_dir),
    }


def through(house: House, device: Device, url: str) -> Target:
    return replace(house.target(device, carrier="unix"), url=url)


def stdio_url(house: House) -> str:
    """A url whose program is `threadgate stdio` of this machine, without ssh."""
    names = ("THREADGATE_STATE_DIR", "THREADGATE_RUNTIME_DIR", "XDG_CONFIG_HOME")
    settings = [f"{name}={environ_of(house)[name]}" for name in names]
    return url_of(["env", *settings, *command_line("stdio")])


@asynccontextmanager
async def sshd_of(house: House, folder: Path) -> AsyncGenerator[Sshd]:
    names = ("THREADGATE_STATE_DIR", "THREADGATE_RUNTIME_DIR", "XDG_CONFIG_HOME")
    environ = {name: environ_of(house)[name] for name in names}
    async with open_sshd(folder, environ) as sshd:
        yield sshd


async def check_status(target: Target) -> None:
    async with open_client(target, client_info()) as client:
        params = gateway.GatewayStatusParams()
        assert (await client.call(GATEWAY_STATUS, params)).agent.name == "bench"


@pytest.mark.parametrize(
    ("url", "tail"),
    [
        ("ssh://desk", ["--", "desk", "threadgate stdio"]),
        ("ssh://ann@desk:2222", ["-p2222", "-lann", "--", "desk", "threadgate stdio"]),
        ("ssh://[::1]", ["--", "::1", "threadgate stdio"]),
        ("ssh://desk/opt/tg/bin/threadgate", ["desk", "/opt/tg/bin/threadgate stdio"]),
        ("stdio:ssh%20desk%20threadgate%20stdio", ["ssh", "desk", "threadgate", "stdio"]),
    ],
)  # fmt: skip
def test_a_url_says_what_is_run(url: str, tail: list[str]) -> None:
    assert is_stdio(url)
    assert command_of(url)[-len(tail) :] == tail


@pytest.mark.parametrize(
    "url",
    [
        "ssh://-oProxyCommand=touch%20x",
        "ssh://-oProxyCommand=x@desk",
        "ssh://desk/bin/x;reboot",
        "ssh://desk/$(reboot)",
        "ssh://ann:secret@desk",
        "ssh://desk:99999",
        "ssh://",
        "stdio:",
        "stdio:'open",
    ],
)
def test_what_could_be_an_option_or_a_shells_word_is_not_dialled(url: str) -> None:
    with pytest.raises(UnreachableError, match="cannot dial"):
        command_of(url)


@pytest.mark.parametrize(
    "words", [["ssh", "-F", "a b", "host"], ["sh", "-c", "echo '?#%' & x"]]
)
def test_a_command_comes_back_from_its_url(words: list[str]) -> None:
    assert command_of(url_of(words)) == words


@pytest.mark.parametrize("url", ["stdio://a/bin/sh", "STDIO://a/x", " stdio://a/x"])
def test_a_pairing_text_cannot_say_what_is_run(url: str) -> None:
    secret, key = Secret(bytes(32)), PrivateKey.generate().public
    text = PairingText(agent_key=key, secret=secret, urls=(url, "ssh://desk"))
    assert parse_pairing_text(text.encode()).urls == ("ssh://desk",)


async def test_a_device_comes_through_a_program(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house)
            await check_status(through(house, device, stdio_url(house)))


async def test_whoever_is_revoked_meets_silence_there_too(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            device = await pair_device(house)
            params = admin.DeviceRevokeParams(device_id=device.id)
            await owner.call(DEVICE_REVOKE, params)
            with pytest.raises(SilentAgentError):
                await check_status(through(house, device, stdio_url(house)))


async def test_without_an_agent_the_far_end_s_own_words_say_why(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house)
        with pytest.raises(UnreachableError, match="no Agent runs here") as caught:
            await check_status(through(house, device, stdio_url(house)))
        assert not isinstance(caught.value, SilentAgentError)


async def test_a_program_that_is_not_there_cannot_be_reached(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="cannot be run"):
        await connect(url_of([str(tmp_path / "none")]))


async def test_at_a_terminal_or_without_an_agent_stdio_says_what_it_is_for(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        ran = await run_cli("stdio", environ=cli_environ(tmp_path))
    assert (ran.code, ran.out) == (3, "")
    assert "no Agent runs here" in ran.err


def is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.stdin.read()",
        "import signal; signal.signal(15, 1); print(1, flush=True); signal.pause()",
    ],
    ids=["polite", "stubborn"],
)
async def test_closing_ends_the_program_and_its_children(code: str) -> None:
    with trio.fail_after(240):
        # A shell that starts it: both are of one group.
        words = ["sh", "-c", f"{sys.executable} -c '{code}'; exit 0"]
        stream = await connect(url_of(words))
        if "pause" in code:
            assert await stream.receive_some(1) == b"1"
        with trio.CancelScope() as scope:
            scope.cancel()
            await stream.aclose()
        while is_alive(stream.pid):  # until init has reaped what the shell left
            await trio.lowlevel.checkpoint()


async def test_what_the_program_says_on_stderr_holds_nothing_up() -> None:
    code = "import sys; sys.stderr.write('x' * 10**6); print('done', flush=True)"
    with trio.fail_after(240):
        stream = await connect(url_of([sys.executable, "-c", code]))
        said = b""
        while data := await stream.receive_some():
            said += data
        await stream.aclose()
    assert said == b"done\n"


async def test_of_what_a_program_says_before_it_fails_the_end_is_kept() -> None:
    code = f"import sys; sys.stderr.write('x' * {3 * CHILD_WORDS} + 'why'); sys.exit(3)"
    with trio.fail_after(240):
        stream = await connect(url := url_of([sys.executable, "-c", code]))
        failure = await stream.failure()
        await stream.aclose()
    assert failure is not None
    assert str(failure).endswith("xwhy")
    assert len(str(failure)) - len(f"{url}: ") == CHILD_WORDS


async def test_a_program_that_a_signal_ends_is_no_silent_agent() -> None:
    with trio.fail_after(240):
        stream: ChildStream = await connect(
            url_of(["sh", "-c", "echo why >&2; exit 9"])
        )
        failure = await stream.failure()
        await stream.aclose()
    assert failure is not None
    assert str(failure).endswith(": why")


async def test_over_a_real_sshd_a_device_pairs_and_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trio.fail_after(240):
        async with (
            open_agent(tmp_path, listen=[]) as house,
            sshd_of(house, tmp_path / "ssh") as sshd,
            open_owner(house) as owner,
        ):
            monkeypatch.setenv("PATH", f"{sshd.ssh}:{os.environ['PATH']}")
            url = f"ssh://{sshd.host}{THREADGATE}"
            offer = await owner.call(PAIR_OPEN, admin.PairOpenParams())
            key = PrivateKey.generate()
            devices: list[Device] = []

            async def join() -> None:
                text = parse_pairing_text(offer.text)
                paired = await pair(
                    text,
                    identity=key,
                    name="phone",
                    client=client_info(),
                    on_check=lambda _: None,
                    via=url,
                )
                devices.append(Device(identity=key, paired=paired))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(join)
                came = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
                assert came.candidate is not None
                check = came.candidate.check
                await owner.call(
                    PAIR_DECIDE, admin.PairDecideParams(accept=True, check=check)
                )
            assert devices[0].paired.url == url
            await check_status(through(house, devices[0], url))
            command = f"stdio:{sshd.command} {THREADGATE} stdio"
            await check_status(through(house, devices[0], command))


async def test_a_key_that_may_run_stdio_alone_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trio.fail_after(240):
        async with (
            open_agent(tmp_path) as house,
            sshd_of(house, tmp_path / "ssh") as sshd,
        ):
            monkeypatch.setenv("PATH", f"{sshd.ssh}:{os.environ['PATH']}")
            device = await pair_device(house)
            sshd.force(f"{THREADGATE} stdio")
            await check_status(through(house, device, f"ssh://{sshd.host}"))


async def test_an_sshd_that_refuses_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trio.fail_after(240):
        async with (
            open_agent(tmp_path) as house,
            sshd_of(house, tmp_path / "ssh") as sshd,
        ):
            monkeypatch.setenv("PATH", f"{sshd.ssh}:{os.environ['PATH']}")
            device = await pair_device(house)
            sshd.keys.write_text("")
            with pytest.raises(UnreachableError, match="Permission denied"):
                await check_status(through(house, device, f"ssh://{sshd.host}"))


@pytest.mark.usefixtures("warm_runs")
async def test_connect_via_is_kept_and_used(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            offer = await owner.call(PAIR_OPEN, admin.PairOpenParams(unattended=True))
            phone = cli_environ(tmp_path / "phone")
            via = " ".join(command_of(stdio_url(house)))
            ran = await run_cli(
                "connect", "--via", via, environ=phone, stdin=offer.text.encode()
            )
            assert ran.code == 0, ran
            shown = await run_cli("hosts", environ=phone)
            assert "stdio:env" in shown.out
            status = await run_cli("status", environ=phone)
            assert status.out.startswith("Open")


async def test_what_is_closed_again_signals_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The number of a group that has ended may be given to another."""
    with trio.fail_after(240):
        stream = await connect("stdio:cat")
        await stream.aclose()
        signalled: list[int] = []

        def note(group: int, _number: int) -> None:
            signalled.append(group)

        monkeypatch.setattr(os, "killpg", note)
        await stream.aclose()
    assert signalled == []
