"""The files that systemd and launchd are given, word for word."""

import plistlib

from clients.cli.service_files import Service, is_ours, plist_text, unit_text

SERVICE = Service(
    argv=["/opt/a b/threadgate", "serve", "--tcp", "[::1]:7130", "--codex", "/x/100%"],
    environ={"CODEX_HOME": '/home/ann/$co "d\\ex'},
)

UNIT = """\
# Written by `threadgate service install`, which may replace it.
[Unit]
Description=threadgate Agent

[Service]
ExecStart="/opt/a b/threadgate" "serve" "--tcp" "[::1]:7130" "--codex" "/x/100%%"
Environment="CODEX_HOME=/home/ann/$co \\"d\\\\ex"
Restart=on-failure
RestartSec=5
KillMode=mixed
TimeoutStopSec=90

[Install]
WantedBy=default.target
"""


def test_a_unit_has_every_word_as_systemd_reads_it_back() -> None:
    assert unit_text(SERVICE) == UNIT
    assert unit_text(Service(argv=["/x/$HOME"])).count('"/x/$$HOME"') == 1


def test_a_launchd_agent_has_every_word_as_it_is() -> None:
    odd = Service(argv=["/x/<&>", "serve"], environ={"A": "]]>&"})
    told = plistlib.loads(plist_text(odd, log="/l/a&b.log").encode())
    assert told == {
        "Label": "threadgate",
        "ProgramArguments": ["/x/<&>", "serve"],
        "EnvironmentVariables": {"A": "]]>&"},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 5,
        "ExitTimeOut": 90,
        "StandardErrorPath": "/l/a&b.log",
    }


def test_only_what_says_so_in_its_first_lines_is_ours() -> None:
    assert is_ours(unit_text(SERVICE))
    assert is_ours(plist_text(SERVICE, log="/l"))
    assert not is_ours("[Unit]\n" * 5 + UNIT)
    assert not is_ours("")
