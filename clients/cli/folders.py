"""Where this program keeps its own things. Blocking I/O.

`THREADGATE_STATE_DIR` moves all of it: the Agent's state, and below `client/` what this
machine needs as a device (its key, the book of hosts).
"""

import os
from pathlib import Path

import platformdirs

STATE_DIR = "THREADGATE_STATE_DIR"


def state_folder() -> Path:
    """Return the folder of the program's state (not made here)."""
    named = os.environ.get(STATE_DIR)
    return Path(named) if named else platformdirs.user_state_path("threadgate")


def device_key_file() -> Path:
    """Return the file of this device's private key."""
    return state_folder() / "client" / "device.key"


def host_book_file() -> Path:
    """Return the file of the hosts that this device is paired with."""
    return state_folder() / "client" / "hosts.json"
