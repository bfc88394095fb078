"""The epoch that a device is told: this run of the Agent, and its rights. Sans-IO.

PROTOCOL.md section 2. A cursor is only worth something in the run whose journal it
points into, and with the rights under which its events were chosen.
"""


def epoch_of(start: str, rights: int) -> str:
    """Return the epoch of one device. `start` names the run, `rights` counts changes."""
    return f"{start}.{rights}"
