"""A scripted model: a small Responses API on loopback. Trio shell.

With it the real codex binary runs whole turns without an account: the demo
and the tests use it. What it says, and how a script is written: `scripted_answers`.
"""

import base64
import json
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, assert_never, cast

import h11
import trio

from clients.cli.scripted_answers import (
    Action,
    HangUp,
    Hold,
    Json,
    ModelRequest,
    Pause,
    Rule,
    find_steps,
    play,
)
from transport.background import open_background

__all__ = ["Rule", "ScriptedModel", "codex_config", "open_model", "serve_model"]

MAX_REQUEST: Final = 64 * 1024 * 1024  # a whole thread with images comes in one request
_SSE: Final = [("content-type", "text/event-stream"), ("connection", "close")]


@dataclass(slots=True)
class ScriptedModel:
    """The model's memory and its switches. `requests`: all that codex asked, in order.

    `picture`: what is drawn for a codex that is asked for one (it does so only with a
    login of ChatGPT's kind; `other` answers the rest that such a one asks).
    """

    rules: Sequence[Rule] = ()
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    picture: bytes = b""
    port: int = 0
    _played: Counter[tuple[str, str, int]] = field(
        default_factory=Counter[tuple[str, str, int]]
    )
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

    def other(self, target: bytes) -> Json:
        """Answer what is no request to the model itself."""
        if not target.endswith(b"/images/generations"):
            return {}
        drawn = base64.b64encode(self.picture).decode()
        return {"created": 0, "data": [{"b64_json": drawn}]}

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
        steps = find_steps(text, self.rules)
        if steps is None:
            return request.number, [{"msg": f"You said: {text[-200:]}"}]
        key = (request.thread, text, len(users))
        step = self._played[key]
        self._played[key] += 1
        done: Sequence[Action] = [{"msg": "done"}]
        return request.number, steps[step] if step < len(steps) else done


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
    if not request.target.endswith(b"/responses"):
        await _answer(connection, stream, 200, model.other(request.target))
        return
    number, actions = model.plan(cast("Json", json.loads(raw or b"{}")))
    if actions and "http" in actions[0]:
        body = cast("Json", actions[0].get("body", {"error": {"message": "scripted"}}))
        await _answer(connection, stream, int(actions[0]["http"]), body)
        return
    head = connection.send(h11.Response(status_code=200, headers=_SSE)) or b""
    await stream.send_all(head)
    for part in play(number, actions):
        if isinstance(part, HangUp):
            return
        await _perform(model, part, connection, stream)
    await stream.send_all(connection.send(h11.EndOfMessage()) or b"")


async def _perform(
    model: ScriptedModel,
    part: bytes | Pause | Hold,
    connection: h11.Connection,
    stream: trio.SocketStream,
) -> None:
    match part:
        case bytes():
            await stream.send_all(connection.send(h11.Data(data=part)) or b"")
        case Pause(seconds):
            await trio.sleep(seconds)
        case Hold(name):
            await model.hold(name)
        case _:
            assert_never(part)


async def _handle(model: ScriptedModel, stream: trio.SocketStream) -> None:
    async with stream:
        try:
            await _serve_one(model, stream)
        except (trio.BrokenResourceError, h11.RemoteProtocolError):
            return  # codex hung up: an interrupt


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


def codex_config(
    base_url: str, *, extra: str = "", features: Sequence[str] = ()
) -> str:
    """Return the text of a `config.toml` that makes codex ask this model.

    `extra` goes to the top of it (top-level keys, then tables); `features` are switched
    on. Retries are off, so that a scripted failure is seen as scripted; plugins too,
    whose list codex would fetch from GitHub at each start.
    """
    switched = "".join(f"{name} = true\n" for name in features)
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
{switched}"""
