"""A codex app-server that plays a script on stdio: what the real one cannot be made to do.

Overload, silence, wrong shapes, answers twice or out of order, floods. Everything that
it says is checked against the generated schema and it ends with 70 where it does not
fit, so that it cannot play a codex that does not exist; `raw` lines are not checked.

`place_fake(folder, script)` writes an executable that stands where codex stands. A
script is a map:

- `version`: what it claims to be (default: the pinned one);
- `start`: steps played before the first line is read;
- `on`: method → list of plays, one a call, the last one again and again; a play is a
  list of steps. Methods without a play get `-32600 unknown variant`, except initialize.
  A key `METHOD THREAD` is for the calls that name that thread, before `METHOD` alone;
- `answers`: id of a question of ours → steps when the client answered it.

Steps are maps with one deciding key: `result` · `error` {code, message} · `notify`
method with `params` · `ask` method with `params` and `id` · `hold` (answer this call
later: `release` with `result` answers the newest held one) · `odd` a result of any shape · `raw` a line as it is ·
`flood` n times the notification `notify`/`params` · `stderr` text · `sleep` seconds ·
`exit` code · `kill` (SIGKILL to itself) · `signal` n to itself · `deaf` (ignores end of input and SIGTERM).
The text `$name` inside a value becomes the call's parameter of that name. No step that
answers means silence. What the client sends lands in `sent.jsonl` beside the script.
"""

import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import jsonschema_rs

from adapter.calls.versions import PINNED
from adapter.processes.binary import Codex

ROOT: Final = Path(__file__).parents[2]
SCHEMA: Final = ROOT / "generated" / "schema"
SCRIPT: Final = "script.json"
SENT: Final = "sent.jsonl"
MISFIT: Final = 70
FLOOD_BLOCK: Final = 1_000  # lines that are written at once

Json = dict[str, Any]
Step = Mapping[str, Any]


def place_fake(folder: Path, script: Mapping[str, Any]) -> Codex:
    """Write the script and a program `codex` that plays it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SCRIPT).write_text(json.dumps(script))
    program = folder / "codex"
    program.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.support.fake_app_server import main\n"
        f"main({str(folder)!r})\n"
    )
    program.chmod(0o755)
    version = str(script.get("version", PINNED))
    return Codex(path=program, version=version)


def sent(folder: Path) -> list[Json]:
    """Return every message that clients of this fake have sent, in order."""
    path = folder / SENT
    lines = path.read_text().splitlines() if path.exists() else []
    return [cast("Json", json.loads(line)) for line in lines]


def thread(thread_id: str = "thr_1", **more: object) -> Json:
    """Return a thread that fits the schema."""
    return {
        "id": thread_id,
        "sessionId": thread_id,
        "preview": "a preview",
        "ephemeral": False,
        "historyMode": "paginated",
        "modelProvider": "scripted",
        "projectId": None,
        "createdAt": 1_796_000_000,
        "updatedAt": 1_796_000_001,
        "status": {"type": "idle"},
        "cwd": "/work",
        "cliVersion": PINNED,
        "source": "vscode",
        "turns": [],
        **more,
    }


def turn(turn_id: str = "turn_1", **more: object) -> Json:
    """Return a turn that fits the schema: running, without items."""
    return {
        "id": turn_id,
        "items": [],
        "itemsView": "notLoaded",
        "status": "inProgress",
        **more,
    }


def loaded(thread_id: str = "thr_1", **more: object) -> Json:
    """Return an answer to thread/start or resume."""
    return {
        "thread": thread(thread_id),
        "model": "gpt",
        "modelProvider": "scripted",
        "cwd": "/work",
        "approvalPolicy": "on-request",
        "approvalsReviewer": "user",
        "sandbox": {"type": "workspaceWrite"},
        **more,
    }


def started(turn_id: str = "turn_1", thread_id: str = "thr_1") -> Step:
    """Return the step that says turn/started."""
    params = {"threadId": thread_id, "turn": turn(turn_id)}
    return {"notify": "turn/started", "params": params}


def completed(
    turn_id: str = "turn_1", thread_id: str = "thr_1", status: str = "completed"
) -> Step:
    """Return the step that says turn/completed."""
    ended = turn(turn_id, status=status, completedAt=1_796_000_002)
    params = {"threadId": thread_id, "turn": ended}
    return {"notify": "turn/completed", "params": params}


class Shapes:
    """The generated schema, one validator a definition."""

    def __init__(self) -> None:
        self._methods: Json = json.loads((SCHEMA / "methods.json").read_text())
        whole: Json = json.loads((SCHEMA / "codex.json").read_text())
        self._definitions = whole["definitions"]
        self._known: dict[str, jsonschema_rs.Draft7Validator] = {}

    def check(self, method: str, part: str, value: object) -> None:
        """Raise ValueError where codex would not say this."""
        entry = self._methods.get(method)
        if entry is None or part not in entry:
            return  # methods that the adapter does not read at all
        name = str(entry[part])
        if name not in self._known:
            schema = {
                "$ref": f"#/definitions/{name}",
                "definitions": self._definitions,
            }
            self._known[name] = jsonschema_rs.Draft7Validator(schema)
        if (error := next(self._known[name].iter_errors(value), None)) is not None:
            raise ValueError(f"{method} {part}: {error.message}")


class FakeAppServer:
    """Plays one script to one client."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._script: Json = json.loads((folder / SCRIPT).read_text())
        self._shapes = Shapes()
        self._calls: Counter[str] = Counter()
        self._held: list[Json] = []

    def run(self) -> None:
        """Play until the end of input."""
        self._play(self._script.get("start", ()), {})
        for line in sys.stdin.buffer:
            with (self._folder / SENT).open("ab") as log:
                log.write(line)
            self._take(cast("Json", json.loads(line)))

    def _take(self, message: Json) -> None:
        method = message.get("method")
        if method is None:
            steps = self._script.get("answers", {}).get(str(message["id"]), ())
            self._play(steps, message)
        elif "id" in message:
            self._play(self._steps(str(method), message), message)

    def _steps(self, method: str, message: Json) -> Sequence[Step]:
        on = self._script.get("on", {})
        thread_id = cast("Json", message.get("params") or {}).get("threadId")
        key = f"{method} {thread_id}" if f"{method} {thread_id}" in on else method
        plays = on.get(key)
        if plays is None:
            if method == "initialize":
                return [{"result": self._greeting(message)}]
            text = f"Invalid request: unknown variant `{method}`, expected one of …"
            return [{"error": {"code": -32600, "message": text}}]
        index = min(self._calls[key], len(plays) - 1)
        self._calls[key] += 1
        return cast("Sequence[Step]", plays[index])

    def _greeting(self, message: Json) -> Json:
        client = message["params"]["clientInfo"]["name"]
        version = self._script.get("version", PINNED)
        return {
            "userAgent": f"{client}/{version} (Debian 12.0.0; x86_64) fake",
            "codexHome": os.environ.get("CODEX_HOME", str(self._folder)),
            "platformFamily": "unix",
            "platformOs": "linux",
        }

    def _play(self, steps: Sequence[Step], call: Json) -> None:
        for step in steps:
            filled = _fill(step, cast("Json", call.get("params") or {}))
            self._step(cast("Json", filled), call)

    def _step(self, step: Json, call: Json) -> None:
        if "release" in step:
            call = self._held.pop()
        if "result" in step:
            self._shapes.check(str(call["method"]), "result", step["result"])
            self._say({"id": call["id"], "result": step["result"]})
        elif "odd" in step:
            self._say({"id": call["id"], "result": step["odd"]})
        elif "error" in step:
            self._say({"id": call["id"], "error": step["error"]})
        elif "notify" in step or "ask" in step:
            self._speak(step)
        elif "hold" in step:
            self._held.append(call)
        elif "raw" in step:
            self._write(str(step["raw"]).encode() + b"\n")
        else:
            self._act(step)

    def _speak(self, step: Json) -> None:
        method = str(step.get("notify", step.get("ask")))
        self._shapes.check(method, "params", step["params"])
        message: Json = {"method": method}
        if "ask" in step:  # in the real one's order
            message |= {"id": step["id"], "params": step["params"]}
        else:
            message |= {"params": step["params"], "emittedAtMs": 1_796_000_000_000}
        line = json.dumps(message).encode() + b"\n"
        left = int(step.get("flood", 1))
        while left > 0:
            self._write(line * min(left, FLOOD_BLOCK))
            left -= FLOOD_BLOCK

    def _act(self, step: Json) -> None:
        if "stderr" in step:
            sys.stderr.write(str(step["stderr"]))
            sys.stderr.flush()
        elif "sleep" in step:
            time.sleep(float(step["sleep"]))  # noqa: TID251 - this is the script
        elif "exit" in step:
            sys.stdout.flush()
            os._exit(int(step["exit"]))
        elif "kill" in step:
            os.kill(os.getpid(), signal.SIGKILL)
        elif "signal" in step:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.signal(int(step["signal"]), signal.SIG_DFL)
            os.kill(os.getpid(), int(step["signal"]))
        elif "deaf" in step:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                signal.pause()

    def _say(self, message: Json) -> None:
        self._write(json.dumps(message).encode() + b"\n")

    def _write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _fill(value: object, params: Json) -> object:
    if isinstance(value, str) and value.startswith("$"):
        return params.get(value[1:], value)
    if isinstance(value, dict):
        fields = cast("Json", value)
        return {key: _fill(inner, params) for key, inner in fields.items()}
    if isinstance(value, list):
        return [_fill(inner, params) for inner in cast("list[object]", value)]
    return value


def main(folder: str) -> None:
    """Play; a message that codex would not say ends it with 70."""
    try:
        FakeAppServer(Path(folder)).run()
    except ValueError as exc:
        sys.stderr.write(f"fake app-server: {exc}\n")
        sys.exit(MISFIT)
