"""What the scripted model says: rules, actions, and the stream they make. Sans-IO.

What is said is decided by the last user message of a request:

- a `Rule` whose `match` is in the text plays its steps, one list of actions a request;
- `SCRIPT:[[action, …], …]` inside the text does the same;
- anything else is echoed.

Actions are maps with one deciding key: `msg` text · `partial` text that never ends ·
`reasoning` list of summary parts · `call` tool name with `args`, `namespace` · `patch`
apply_patch input · `item` a raw item, begun and done (a web search) · `flood` n deltas of `size` · `sleep` seconds · `hold` name (waits
until it is released) · `http` status with `body` (first in its list) · `disconnect` ·
`failed` {code, message}. `delay` (seconds) paces the words of `msg`; `halfway` (a name)
waits in the middle of them until it is released.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

Action = Mapping[str, Any]
Json = dict[str, Any]

MARK: Final = "SCRIPT:"


@dataclass(frozen=True, slots=True)
class Rule:
    """Where `match` is in the user's text, the n-th request for it in that thread plays
    `steps[n]`."""

    match: str
    steps: Sequence[Sequence[Action]]


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is said for so long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing is said until that name is released."""

    name: str


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection ends here, in the middle of the answer."""


Part = bytes | Pause | Hold | HangUp
"""What comes next: bytes of the event stream, or what happens instead."""


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
    def thread(self) -> str:
        """Whose it is, as codex names it."""
        return str(self.body.get("prompt_cache_key", ""))

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


def find_steps(text: str, rules: Sequence[Rule]) -> Sequence[Sequence[Action]] | None:
    """Return what a user's text asks for; `None`: nothing, so it is echoed."""
    if MARK in text:
        script = text[text.index(MARK) + len(MARK) :]
        return cast("list[list[Action]]", json.JSONDecoder().raw_decode(script)[0])
    return next((rule.steps for rule in rules if rule.match in text), None)


def _words(text: str, delay: float) -> Iterator[str | Pause]:
    words = text.split(" ")
    for index, word in enumerate(words):
        yield word if index == len(words) - 1 else word + " "
        if delay:
            yield Pause(delay)


def _event(kind: str, **fields: object) -> bytes:
    body = json.dumps({"type": kind, **fields})
    return f"event: {kind}\ndata: {body}\n\n".encode()


def _play_message(action: Action, item_id: str) -> Iterator[Part]:
    text = str(action.get("msg", action.get("partial", "")))
    base: Json = {"type": "message", "role": "assistant", "id": item_id}
    if "phase" in action:
        base["phase"] = action["phase"]
    yield _event("response.output_item.added", item={**base, "content": []})
    words = [*_words(text, float(action.get("delay", 0)))]
    for place, word in enumerate(words):
        if "halfway" in action and place == len(words) // 2:
            yield Hold(str(action["halfway"]))
        if isinstance(word, Pause):
            yield word
        else:
            yield _event("response.output_text.delta", item_id=item_id, delta=word)
    if "msg" in action:
        content = [{"type": "output_text", "text": text}]
        yield _event("response.output_item.done", item={**base, "content": content})


def _play_flood(action: Action, item_id: str) -> Iterator[Part]:
    chunk = "x" * int(action.get("size", 1000))
    count = int(action["flood"])
    base: Json = {"type": "message", "role": "assistant", "id": item_id}
    yield _event("response.output_item.added", item={**base, "content": []})
    delta = _event("response.output_text.delta", item_id=item_id, delta=chunk)
    for _ in range(count):
        yield delta
    content = [{"type": "output_text", "text": chunk * count}]
    yield _event("response.output_item.done", item={**base, "content": content})


def _play_reasoning(action: Action, item_id: str) -> Iterator[Part]:
    parts = cast("list[str]", action["reasoning"])
    item: Json = {"type": "reasoning", "id": item_id, "summary": []}
    yield _event("response.output_item.added", item=item)
    for index, part in enumerate(parts):
        place: Json = {"item_id": item_id, "summary_index": index}
        yield _event("response.reasoning_summary_part.added", **place)
        for word in _words(part, float(action.get("delay", 0))):
            if isinstance(word, Pause):
                yield word
            else:
                yield _event(
                    "response.reasoning_summary_text.delta", delta=word, **place
                )
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
        if (
            "namespace" in action
        ):  # of an MCP server (mcp__NAME), or of codex's own tools
            item["namespace"] = action["namespace"]
    return _event("response.output_item.done", item=item)


def play(number: int, actions: Sequence[Action]) -> Iterator[Part]:
    """Yield the answer to request `number`, part by part."""
    response_id = f"resp_{number}"
    yield _event("response.created", response={"id": response_id})
    for index, action in enumerate(actions):
        yield from _play_action(action, f"{number}_{index}")
        if "failed" in action:
            failure = {"id": response_id, "status": "failed", "error": action["failed"]}
            yield _event("response.failed", response=failure)
            return
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    yield _event("response.completed", response={"id": response_id, "usage": usage})


def _play_action(action: Action, key: str) -> Iterator[Part]:
    if "msg" in action or "partial" in action:
        yield from _play_message(action, f"msg_{key}")
    elif "flood" in action:
        yield from _play_flood(action, f"msg_{key}")
    elif "reasoning" in action:
        yield from _play_reasoning(action, f"rs_{key}")
    elif "call" in action or "patch" in action:
        yield _tool_call(action, key)
    elif "item" in action:
        item = {"id": f"it_{key}", **action["item"]}
        yield _event("response.output_item.added", item=item)
        yield _event("response.output_item.done", item=item)
    elif "sleep" in action:
        yield Pause(float(action["sleep"]))
    elif "hold" in action:
        yield Hold(str(action["hold"]))
    elif "disconnect" in action:
        yield HangUp()
