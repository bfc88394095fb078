"""A small MCP server on stdio for real codex to talk to: a program, without Trio.

Its tools: `look` (reads only, so nobody is asked), `fail` (likewise, and fails), `die`
(likewise, and ends the server), `danger` (destructive, so a person is asked), `ask` (asks
its user for a form), `visit` (asks its user to open a page). The arguments of a call may
name what is asked: `message`, `schema`, `url`. What the user said comes back as the
tool's text, as JSON.

It speaks newline-delimited JSON-RPC and serves one call at a time.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]

FORM: Final[Json] = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "title": "Colour", "enum": ["red", "blue"]},
        "ok": {"type": "boolean"},
    },
    "required": ["colour"],
}
URL: Final = "https://pay.example.org/checkout?order=7"
CONFIG: Final = f"""
[mcp_servers.lab]
command = {json.dumps(sys.executable)}
args = [{json.dumps(str(Path(__file__)))}]
"""
"""What makes it the server `lab` of a codex, in config.toml."""
_ANYTHING: Final[Json] = {"type": "object", "additionalProperties": True}

TOOLS: Final[list[Json]] = [
    {
        "name": "look",
        "description": "reads",
        "inputSchema": _ANYTHING,
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "fail",
        "description": "reads, and fails",
        "inputSchema": _ANYTHING,
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "die",
        "description": "reads, and ends its server",
        "inputSchema": _ANYTHING,
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "danger",
        "description": "destroys",
        "inputSchema": _ANYTHING,
        "annotations": {"readOnlyHint": False, "destructiveHint": True},
    },
    {
        "name": "ask",
        "description": "asks for a form",
        "inputSchema": _ANYTHING,
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "visit",
        "description": "asks to open a page",
        "inputSchema": _ANYTHING,
        "annotations": {"readOnlyHint": True},
    },
]


class Server:
    """One connection; requests of ours are numbered apart from the client's."""

    def __init__(self) -> None:
        self._asked = 0

    def serve(self) -> None:
        """Answer until the end of input."""
        while (message := self._read()) is not None:
            if "method" in message and "id" in message:
                self._answer(message)

    def _read(self) -> Json | None:
        line = sys.stdin.readline()
        if not line:
            return None
        read: Json = json.loads(line)
        return read

    def _write(self, message: Json) -> None:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def _answer(self, request: Json) -> None:
        match request["method"]:
            case "initialize":
                result = self._greeting(request["params"])
            case "tools/list":
                result = {"tools": TOOLS}
            case "tools/call":
                result = self._call(request["params"])
            case _:
                error = {"code": -32601, "message": "no such method"}
                self._write({"id": request["id"], "error": error})
                return
        self._write({"id": request["id"], "result": result})

    def _greeting(self, params: Mapping[str, Any]) -> Json:
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "lab", "version": "1"},
        }

    def _call(self, params: Mapping[str, Any]) -> Json:
        given: Json = params.get("arguments") or {}
        match params["name"]:
            case "fail":
                failure = [{"type": "text", "text": "no such file"}]
                return {"content": failure, "isError": True}
            case "die":
                raise SystemExit
            case "ask":
                said = self._elicit(
                    message=given.get("message", "What colour?"),
                    requestedSchema=given.get("schema", FORM),
                )
            case "visit":
                said = self._elicit(
                    mode="url",
                    message=given.get("message", "Please pay."),
                    url=given.get("url", URL),
                    elicitationId="e1",
                )
            case name:
                said = {"did": name, "with": given}
        return {"content": [{"type": "text", "text": json.dumps(said)}]}

    def _elicit(self, **params: object) -> Json:
        self._asked += 1
        number = f"ask-{self._asked}"
        self._write({"id": number, "method": "elicitation/create", "params": params})
        while (message := self._read()) is not None:
            if message.get("id") == number and "method" not in message:
                result: Json = message.get("result") or {"error": message.get("error")}
                return result
        raise SystemExit


if __name__ == "__main__":
    Server().serve()
