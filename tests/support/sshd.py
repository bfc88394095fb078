"""A real sshd on loopback: own host key, own port, own authorized keys, own config.

Nothing of the machine's own ssh is read or changed. Where there is no sshd, tests that
need one are skipped and say so.
"""

import getpass
import os
import shlex
import shutil
import socket
import stat
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio

from transport.background import open_background

SSHD: Final = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
TOOLS: Final = SSHD and shutil.which("ssh") and shutil.which("ssh-keygen")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sshd:
    """A running sshd. `ssh`: a folder for PATH whose `ssh` knows the way there."""

    port: int
    config: Path
    ssh: Path
    keys: Path

    @property
    def command(self) -> str:
        """The beginning of a command line that runs something there."""
        return f"ssh -F {shlex.quote(str(self.config))} there"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def force(self, command: str) -> None:
        """From now on the key may run this and nothing else."""
        public = (self.config.parent / "user.pub").read_text()
        self.keys.write_text(f'restrict,command="{command}" {public}')


def _key(path: Path) -> None:
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(words, check=True)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@asynccontextmanager
async def open_sshd(folder: Path, environ: Mapping[str, str]) -> AsyncGenerator[Sshd]:
    """Run an sshd for the length of the block; commands there get `environ` besides."""
    if not TOOLS:
        pytest.skip("sshd, ssh or ssh-keygen is not here: apt install openssh-server")
    assert SSHD is not None
    folder.mkdir(mode=0o700)
    for name in ("host", "user"):
        _key(folder / name)
    keys = folder / "authorized_keys"
    keys.write_text((folder / "user.pub").read_text())
    keys.chmod(0o600)
    port = _free_port()
    setenv = " ".join(shlex.quote(f"{name}={value}") for name, value in environ.items())
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder / 'host'}\n"
        f"AuthorizedKeysFile {keys}\nStrictModes no\nUsePAM no\nPidFile none\n"
        f"PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        f"SetEnv {setenv}\n"
    )
    public = " ".join((folder / "host.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {public}\n")
    config = folder / "ssh_config"
    config.write_text(
        f"Host there\n  HostName 127.0.0.1\n  Port {port}\n"
        f"Host *\n  User {getpass.getuser()}\n  IdentityFile {folder / 'user'}\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {folder / 'known_hosts'}\n"
        "  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n  BatchMode yes\n"
    )
    ssh = folder / "bin" / "ssh"
    ssh.parent.mkdir()
    real = shutil.which("ssh")
    ssh.write_text(f'#!/bin/sh\nexec {real} -F {shlex.quote(str(config))} "$@"\n')
    ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # as its service does
    run = partial(
        trio.run_process,
        [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    async with open_background(run) as process:
        await _wait_listening(process)
        yield Sshd(port=port, config=config, ssh=ssh.parent, keys=keys)
        process.terminate()
        await process.wait()


async def _wait_listening(process: trio.Process) -> None:
    assert process.stderr is not None
    said = b""
    while b"Server listening" not in said:
        data = await process.stderr.receive_some()
        said += data
        assert data, f"sshd has ended: {said.decode(errors='replace')}"
