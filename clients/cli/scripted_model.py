"""A scripted model: a small Responses API on loopback that plays what it was told.

Trio shell. With it the real codex binary runs whole turns without an account: the demo
and the tests use it. What it says is decided by the last user message of a request:

- a `Rule` whose `match` is in the text plays its steps, one list of actions a request;
- `SCRIPT:[[action, …], …]` inside the text does the same;
- anything else is echoed.

Actions are maps with one deciding key: `msg` text · `partial` text that never ends ·
`reasoning` list of summary parts · `call` tool name with `args` · `patch` apply_patch
input · `flood` n deltas of `size` · `sleep` seconds · `hold` name (waits for
`ScriptedModel.release`) · `http` status with `body` (first in its list) · `disconnect` ·
`failed` {code, message}. `delay` (seconds) paces the words of `msg`.
"""

import json
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, cast

import h11
import trio

from transport.background import open_background

Action = Mapping[str, Any]
Json = dict[str, Any]

MARK: Final = "SCRIPT:"
MAX_REQUEST: Final = 64 * 1024 * 1024  # a whole thread with images comes in one request
_SSE: Final = [("content-type", "text/event-stream"), ("connection", "close")]


@dataclass(frozen=True, slots=True)
class Rule:
    """Where `match` is in the user's text, the n-th request plays `steps[n]`."""

    match: str
    steps: Sequence[Sequence[Action]]


def _content_text(item: Json) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = cast("list[Json]", content or [])
    return "\n".join(str(part.get("text", "")) for part in parts)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request that codex made: its number from 1, and its body."""

    number: int
    body: Json

    @property
    def texts(self) -> list[str]:
        """What users and the model said in it, in order."""
        messages = [i for i in self._input() if i.get("type", "message") == "message"]
        return [_content_text(item) for item in messages]

    @property
    def user_texts(self) -> list[str]:
        """The user messages in it, in order (codex's own context among them)."""
        return [_content_text(i) for i in self._input() if i.get("role") == "user"]

    def _input(self) -> list[Json]:
        items = self.body.get("input")
        return cast("list[Json]", items) if isinstance(items, list) else []


class _DisconnectError(Exception):
    """The script ends the connection here."""


@dataclass(slots=True)
class ScriptedModel:
    """The model's memory and its switches. `requests`: all that codex asked, in order."""

    rules: Sequence[Rule] = ()
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    port: int = 0
    _played: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    _released: defaultdict[str, trio.Event] = field(
        default_factory=lambda: defaultdict(trio.Event)
    )
    _reached: defaultdict[str, trio.Event] = field(
        default_factory=lambda: defaultdict(trio.Event)
    )

    @property
    def base_url(self) -> str:
        """What goes into `base_url` of codex's provider."""
        return f"http://127.0.0.1:{self.port}/v1"

    def release(self, name: str) -> None:
        """Let every `hold` of that name go on."""
        self._released[name].set()

    async def wait_held(self, name: str) -> None:
        """Return when a `hold` of that name was reached."""
        await self._reached[name].wait()

    async def hold(self, name: str) -> None:
        """Wait inside an answer until `release(name)`."""
        self._reached[name].set()
        await self._released[name].wait()

    def plan(self, body: Json) -> tuple[int, Sequence[Action]]:
        """Note a request; return its number and what to play."""
        request = ModelRequest(len(self.requests) + 1, body)
        self.requests.append(request)
        users = request.user_texts
        text = users[-1] if users else ""
        steps = self._steps(text)
        if steps is None:
            return request.number, [{"msg": f"You said: {text[-200:]}"}]
        key = (text, len(users))
        step = self._played[key]
        self._played[key] += 1
        done: Sequence[Action] = [{"msg": "done"}]
        return request.number, steps[step] if step < len(steps) else done

    def _steps(self, text: str) -> Sequence[Sequence[Action]] | None:
        if MARK in text:
            script = text[text.index(MARK) + len(MARK) :]
            return cast("list[list[Action]]", json.JSONDecoder().raw_decode(script)[0])
        return next((r.steps for r in self.rules if r.match in text), None)


async def _words(text: str, delay: float) -> AsyncIterator[str]:
    words = text.split(" ")
    for index, word in enumerate(words):
        yield word if index == len(words) - 1 else word + " "
        if delay:
            await trio.sleep(delay)


def _event(kind: str, **fields: object) -> bytes:
    body = json.dumps({"type": kind, **fields})
    return f"event: {kind}\ndata: {body}\n\n".encode()


async def _play_message(action: Action, item_id: str) -> AsyncIterator[bytes]:
    text = str(action.get("msg", action.get("partial", "")))
    base: Json = {"type": "message", "role": "assistant", "id": item_id}
    if "phase" in action:
        base["phase"] = action["phase"]
    yield _event("response.output_item.added", item={**base, "content": []})
    async for word in _words(text, float(action.get("delay", 0))):
        yield _event("response.output_text.delta", item_id=item_id, delta=word)
    if "msg" in action:
        content = [{"type": "output_text", "text": text}]
        yield _event("response.output_item.done", item={**base, "content": content})


async def _play_flood(  # noqa: ASYNC124 - played like the others
    action: Action, item_id: str
) -> AsyncIterator[bytes]:
    chunk = "x" * int(action.get("size", 1000))
    count = int(action["flood"])
    base: Json = {"type": "message", "role": "assistant", "id": item_id}
    yield _event("response.output_item.added", item={**base, "content": []})
    delta = _event("response.output_text.delta", item_id=item_id, delta=chunk)
    for _ in range(count):
        yield delta
    content = [{"type": "output_text", "text": chunk * count}]
    yield _event("response.output_item.done", item={**base, "content": content})


async def _play_reasoning(action: Action, item_id: str) -> AsyncIterator[bytes]:
    parts = cast("list[str]", action["reasoning"])
    item: Json = {"type": "reasoning", "id": item_id, "summary": []}
    yield _event("response.output_item.added", item=item)
    for index, part in enumerate(parts):
        place: Json = {"item_id": item_id, "summary_index": index}
        yield _event("response.reasoning_summary_part.added", **place)
        async for word in _words(part, float(action.get("delay", 0))):
            yield _event("response.reasoning_summary_text.delta", delta=word, **place)
    summary = [{"type": "summary_text", "text": part} for part in parts]
    done = {**item, "summary": summary, "encrypted_content": "sealed"}
    yield _event("response.output_item.done", item=done)


def _tool_call(action: Action, key: str) -> bytes:
    if "patch" in action:
        item: Json = {
            "type": "custom_tool_call",
            "id": f"ctc_{key}",
            "call_id": f"call_{key}",
            "name": "apply_patch",
            "input": action["patch"],
        }
    else:
        item = {
            "type": "function_call",
            "id": f"fc_{key}",
            "call_id": f"call_{key}",
            "name": action["call"],
            "arguments": json.dumps(action.get("args", {})),
        }
    return _event("response.output_item.done", item=item)


async def _play(
    model: ScriptedModel, number: int, actions: Sequence[Action]
) -> AsyncIterator[bytes]:
    response_id = f"resp_{number}"
    yield _event("response.created", response={"id": response_id})
    for index, action in enumerate(actions):
        key = f"{number}_{index}"
        if "msg" in action or "partial" in action:
            async for part in _play_message(action, f"msg_{key}"):
                yield part
        elif "flood" in action:
            async for part in _play_flood(action, f"msg_{key}"):
                yield part
        elif "reasoning" in action:
            async for part in _play_reasoning(action, f"rs_{key}"):
                yield part
        elif "call" in action or "patch" in action:
            yield _tool_call(action, key)
        elif "sleep" in action:
            await trio.sleep(float(action["sleep"]))
        elif "hold" in action:
            await model.hold(str(action["hold"]))
        elif "disconnect" in action:
            raise _DisconnectError
        elif "failed" in action:
            failure = {"id": response_id, "status": "failed", "error": action["failed"]}
            yield _event("response.failed", response=failure)
            return
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    yield _event("response.completed", response={"id": response_id, "usage": usage})


async def _read_request(
    connection: h11.Connection, stream: trio.SocketStream
) -> tuple[h11.Request, bytes] | None:
    request: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(bytes(await stream.receive_some()))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > MAX_REQUEST:
                return None
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            return request, bytes(body)
        else:
            return None


async def _answer(
    connection: h11.Connection, stream: trio.SocketStream, status: int, body: Json
) -> None:
    data = json.dumps(body).encode()
    headers = [("content-type", "application/json"), ("connection", "close")]
    headers.append(("content-length", str(len(data))))
    head = h11.Response(status_code=status, headers=headers)
    out = connection.send(head) or b""
    out += connection.send(h11.Data(data=data)) or b""
    out += connection.send(h11.EndOfMessage()) or b""
    await stream.send_all(out)


async def _serve_one(model: ScriptedModel, stream: trio.SocketStream) -> None:
    connection = h11.Connection(h11.SERVER)
    read = await _read_request(connection, stream)
    if read is None:
        return
    request, raw = read
    if request.method != b"POST":
        await _answer(connection, stream, 200, {"models": [], "data": []})
        return
    number, actions = model.plan(cast("Json", json.loads(raw or b"{}")))
    if actions and "http" in actions[0]:
        body = cast("Json", actions[0].get("body", {"error": {"message": "scripted"}}))
        await _answer(connection, stream, int(actions[0]["http"]), body)
        return
    head = connection.send(h11.Response(status_code=200, headers=_SSE)) or b""
    await stream.send_all(head)
    async for part in _play(model, number, actions):
        await stream.send_all(connection.send(h11.Data(data=part)) or b"")
    await stream.send_all(connection.send(h11.EndOfMessage()) or b"")


async def _handle(model: ScriptedModel, stream: trio.SocketStream) -> None:
    async with stream:
        try:
            await _serve_one(model, stream)
        except (trio.BrokenResourceError, h11.RemoteProtocolError, _DisconnectError):
            return  # codex hung up (an interrupt), or the script said so


async def serve_model(
    model: ScriptedModel,
    *,
    port: int = 0,
    task_status: trio.TaskStatus[ScriptedModel],
) -> None:
    """Serve on 127.0.0.1 until cancelled; `started` passes the model with its port."""
    listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
    model.port = int(listeners[0].socket.getsockname()[1])
    task_status.started(model)
    await trio.serve_listeners(partial(_handle, model), listeners)


@asynccontextmanager
async def open_model(rules: Sequence[Rule] = ()) -> AsyncGenerator[ScriptedModel]:
    """Run a scripted model beside the block."""
    model = ScriptedModel(rules=rules)

    async def serve(*, task_status: trio.TaskStatus[ScriptedModel]) -> None:
        await serve_model(model, task_status=task_status)

    async with open_background(serve) as served:
        yield served


def codex_config(base_url: str, *, extra: str = "") -> str:
    """Return the text of a `config.toml` that makes codex ask this model.

    `extra` goes to the top of it (top-level keys). Retries are off, so that a scripted
    failure is seen as scripted; plugins too, whose list codex would fetch from GitHub at
    each start.
    """
    return f"""\
model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
{extra}
[model_providers.scripted]
name = "scripted"
base_url = "{base_url}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[features]
plugins = false
"""
