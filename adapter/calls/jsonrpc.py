"""Peer state over JSON lines: what Codex's app-server speaks on stdio. Sans-IO.

One JSON object a line, no `jsonrpc` key. Answers come out of order, some never; a late
or unknown one is nothing to us. An answer that is longer than `ANSWER_BYTES` is not
kept: whoever asked asks for less. What a turn does cannot be asked for in parts, so other
lines may have `LINE_BYTES`; of a longer one its beginning tells what it was (`Unread`).
Bytes that make no message come out as `Garbled`: one bad line must not end a process that
runs a turn.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard, cast

from adapter.limits import ANSWER_BYTES, LINE_BYTES, REQUESTS_IN_FLIGHT

Json = Mapping[str, Any]
RequestId = int | str

NEWLINE: Final = b"\n"
SHOWN: Final = 200  # bytes of a garbled line that are kept
_CODE: Final = 2**63  # a code has 64 bits at most, or is none
HEAD: Final = 512  # bytes of a line that is not kept, by which it is told what it was
# As Codex writes them, and in no other order: what stands behind `params` is not seen.
_ANSWER: Final = re.compile(rb'\s*\{"id":(\d{1,18}),"result":')
_SAID: Final = re.compile(
    rb'\s*\{"method":"([\w/.-]{1,128})"(?:,"id":(-?\d{1,18}|"[\w:.-]{1,128}"))?'
    rb',"params":\{(?:"kind":"\w{1,32}",)?(?:"threadId":"([\w-]{1,128})")?'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The result of a request of ours."""

    request_id: int
    method: str
    result: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The definite error of a request of ours."""

    request_id: int
    method: str
    code: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLong:
    """The result of a request of ours was longer than we keep: it is thrown away."""

    request_id: int
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """A notification."""

    method: str
    params: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request of Codex. Its id must go back with the same JSON type (0 is an id)."""

    request_id: RequestId
    method: str
    params: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbled:
    """A line that is no message. `head`: how it begins."""

    reason: str
    head: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A message of Codex that was longer than we keep. `request_id`: it is a question,
    which waits for an answer. `thread_id`: where its beginning names one."""

    request_id: RequestId | None
    method: str
    thread_id: str | None


PeerEvent = Answered | Failed | TooLong | Notified | Asked | Unread | Garbled


class TooManyInFlightError(Exception):
    """All slots are taken: nothing was made."""


def encode(message: Json) -> bytes:
    """Return the line. Valid UTF-8 always: other bytes on stdin would end Codex."""
    text = json.dumps(
        message, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return text.encode() + NEWLINE


class JsonRpc:
    """One side of one connection. Not for concurrent use."""

    def __init__(self, *, max_in_flight: int = REQUESTS_IN_FLIGHT) -> None:
        self._max_in_flight = max_in_flight
        self._buffer = bytearray()
        self._scanned = 0
        self._skipping = False  # to the end of a line
        self._next_id = 1
        self._in_flight: dict[int, str] = {}
        self.ended = False
        self.ignored = 0  # late, doubled and unknown answers so far

    @property
    def in_flight(self) -> int:
        """Requests of ours without an answer."""
        return len(self._in_flight)

    @property
    def held(self) -> int:
        """Bytes of a line whose end has not come."""
        return len(self._buffer)

    def request(
        self, method: str, params: Json, *, spare: bool = False
    ) -> tuple[int, bytes]:
        """Take a slot; return the id and the line to write. `spare`: beyond the bound.

        Raises: TooManyInFlightError; ValueError where `params` are no JSON. Both leave
        no slot taken.
        """
        if len(self._in_flight) >= self._max_in_flight and not spare:
            raise TooManyInFlightError
        request_id = self._next_id
        line = encode({"id": request_id, "method": method, "params": params})
        self._next_id += 1
        self._in_flight[request_id] = method
        return request_id, line

    def forget(self, request_id: int) -> None:
        """Free the slot: the deadline passed, or it was never written."""
        self._in_flight.pop(request_id, None)

    def notification(self, method: str) -> bytes:
        """Return the line of a notification without params."""
        return encode({"method": method})

    def result(self, request_id: RequestId, result: Json) -> bytes:
        """Return the line that answers a request of Codex."""
        return encode({"id": request_id, "result": result})

    def error(self, request_id: RequestId, code: int, message: str) -> bytes:
        """Return the line that refuses a request of Codex."""
        return encode({"id": request_id, "error": {"code": code, "message": message}})

    def receive_data(self, data: bytes | bytearray) -> None:
        """Take in what was read; `b""` is the end of the stream."""
        if not data:
            self.ended = True
        self._buffer += data

    def next_event(self) -> PeerEvent | None:
        """Return the next event, or `None` when there is none (yet).

        A last line without its newline is cut off by the end: it is garbled.
        """
        while (line := self._next_line()) is not None:
            if (event := self._parse(line)) is not None:
                return event
        if len(self._buffer) > ANSWER_BYTES and (event := self._too_long()):
            return event
        if len(self._buffer) > LINE_BYTES:
            return self._endless()
        if self.ended and self._buffer:
            rest, self._buffer = bytes(self._buffer), bytearray()
            if rest.strip():
                return Garbled(reason="cut off by the end", head=rest[:SHOWN])
        return None

    def _next_line(self) -> bytearray | None:
        while True:
            end = self._buffer.find(NEWLINE, self._scanned)
            if end < 0:
                if self._skipping:
                    self._buffer.clear()
                self._scanned = len(self._buffer)
                return None
            line = self._buffer[:end]
            del self._buffer[: end + 1]
            self._scanned = 0
            if not self._skipping:
                return line
            self._skipping = False

    def _too_long(self) -> TooLong | None:
        """Give up an answer that does not end; nobody's, too: nobody would read it."""
        found = _ANSWER.match(bytes(self._buffer[:SHOWN]))
        if found is None:
            return None
        request_id = int(found[1])
        self._skip_line()
        method = self._in_flight.pop(request_id, None)
        if method is None:
            self.ignored += 1
            return None
        return TooLong(request_id=request_id, method=method)

    def _endless(self) -> Unread | Garbled:
        """Give up any other line that does not end: an app-server is not our memory."""
        head = bytes(self._buffer[:HEAD])
        self._skip_line()
        if (found := _SAID.match(head)) is None:
            reason = f"longer than {LINE_BYTES} bytes"
            return Garbled(reason=reason, head=head[:SHOWN])
        method, request_id, thread_id = found.groups()
        return Unread(
            request_id=None if request_id is None else json.loads(request_id),
            method=method.decode(),
            thread_id=None if thread_id is None else thread_id.decode(),
        )

    def _skip_line(self) -> None:
        self._skipping = True
        self._buffer.clear()
        self._scanned = 0

    def _parse(self, line: bytearray) -> PeerEvent | None:
        if not line.strip():
            return None
        try:
            message: object = json.loads(line)
        except (ValueError, RecursionError) as exc:
            return Garbled(reason=f"no JSON: {exc}"[:SHOWN], head=bytes(line[:SHOWN]))
        if not isinstance(message, dict):
            return Garbled(reason="not an object", head=bytes(line[:SHOWN]))
        return self._classify(cast("dict[str, Any]", message), line)

    def _classify(self, message: dict[str, Any], line: bytearray) -> PeerEvent | None:
        method = message.get("method")
        if method is not None:
            return _said(method, message) or Garbled(
                reason="neither request nor notification", head=bytes(line[:SHOWN])
            )
        if "result" in message or "error" in message:
            return self._answered(message)
        return Garbled(reason="no method, result or error", head=bytes(line[:SHOWN]))

    def _answered(self, message: dict[str, Any]) -> PeerEvent | None:
        request_id = message.get("id")
        if not _is_int(request_id) or request_id not in self._in_flight:
            self.ignored += 1
            return None
        method = self._in_flight.pop(request_id)
        error = message.get("error")
        if error is None:
            return Answered(
                request_id=request_id, method=method, result=message.get("result")
            )
        code, text = _read_error(error)
        return Failed(request_id=request_id, method=method, code=code, message=text)


def _read_error(error: object) -> tuple[int, str]:
    if not isinstance(error, dict):
        return 0, str(error)[:SHOWN]
    fields = cast("dict[str, object]", error)
    code = fields.get("code")
    if not _is_int(code) or abs(code) >= _CODE:
        code = 0
    return code, str(fields.get("message", ""))


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _said(method: object, message: dict[str, Any]) -> PeerEvent | None:
    params = message.get("params")
    if not isinstance(method, str) or not isinstance(params, dict | None):
        return None
    known = cast("Json", params or {})
    if "id" not in message:
        return Notified(method=method, params=known)
    request_id = message["id"]
    if _is_int(request_id) or isinstance(request_id, str):
        return Asked(request_id=request_id, method=method, params=known)
    return None
