"""What can go wrong inside the Agent itself. Sans-IO.

What a client is told is a `Refusal` (transport.errors); these say what our log and the
person at the workstation need.
"""


class AgentError(Exception):
    """Base of the family."""


class ConfigError(AgentError):
    """The owner's settings cannot be used. `str()` names file, line, field and cure."""

    def __init__(self, path: str, line: int | None, field: str, reason: str) -> None:
        super().__init__(path, line, field, reason)
        self.path = path
        self.line = line
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}, line {self.line}"
        what = f"{self.field}: {self.reason}" if self.field else self.reason
        return f"{place}: {what}"


class StorageError(AgentError):
    """The state folder could not be written or read (full, read-only, damaged).

    `str()` names the file, where one is given, and the reason.
    """

    def __str__(self) -> str:
        return ": ".join(map(str, self.args))


class ProcessTableError(AgentError):
    """Nothing can be told of any process now (no descriptor, no memory is left)."""


class AuditUnavailableError(StorageError):
    """An entry could not be made durable: what it stands for must not happen."""


class StoreUnavailableError(StorageError):
    """The ledger of request keys could not be written or read."""


class StoreFullError(StoreUnavailableError):
    """The ledger has no room for one more row, and none may be forgotten yet.

    `of_one`: it is the device's own share, not what all devices have together. `wait_ms`:
    when the first row is past its time; `None`: acts that run hold them all.
    """

    def __init__(self, limit: int, *, of_one: bool, wait_ms: int | None) -> None:
        super().__init__(f"{limit} rows")
        self.limit = limit
        self.of_one = of_one
        self.wait_ms = wait_ms
