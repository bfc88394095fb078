"""JSON Schema definitions as Python source: TypedDicts for the checkers. Sans-IO.

They tell mypy and pyright which keys Codex documents; nothing is checked at run time.
A tagged union becomes one class a branch, named after its tag.
"""

import keyword
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

_HEAD: Final = '''"""Types of codex {version}'s app-server protocol, for the checkers. Sans-IO.

Written by `python -m generated.regenerate`; never edited. Derived from Codex's own
schema, Copyright OpenAI, Apache License 2.0 (`LICENSE.codex` beside this file).
"""

from typing import Literal, NotRequired, TypeAlias, TypedDict
'''
_PLAIN: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
}
_INDENT: Final = "    "
_OPAQUE: Final = frozenset({"ResponseItem"})  # the model's own records: never read

Schema = Mapping[str, Any]


def typed_source(version: str, schema: Schema, roots: Sequence[str]) -> str:
    """Return a module with a type for each of `roots` and all that they refer to."""
    writer = _Writer(schema["definitions"])
    for root in sorted(roots):
        writer.add(root)
    parts = [writer.done[name] for name in sorted(writer.done)]
    return _HEAD.format(version=version) + "".join(f"\n\n{part}" for part in parts)


class _Writer:
    def __init__(self, definitions: Schema) -> None:
        self._definitions = definitions
        self.done: dict[str, str] = {}

    def add(self, name: str) -> str:
        if name not in self.done:
            self.done[name] = ""  # a type may mention itself
            body = _spread(self._definitions[name])
            if _is_object(body):
                self.done[name] = self._class(name, body)
            else:
                alias = " | ".join(self._members(name, body))
                self.done[name] = f'{name}: TypeAlias = "{_single(alias)}"\n'
        return name

    def _class(self, name: str, body: Schema) -> str:
        required = set(body.get("required", ()))
        fields = {
            key: self._field(part, required=key in required)
            for key, part in _properties(body).items()
        }
        if any(keyword.iskeyword(key) or not key.isidentifier() for key in fields):
            rows = "".join(
                f'{_INDENT}"{k}": "{_single(v)}",\n' for k, v in fields.items()
            )
            return f'{name} = TypedDict("{name}", {{\n{rows}}})\n'
        rows = "".join(f"{_INDENT}{k}: {_quoted(v)}\n" for k, v in fields.items())
        return f"class {name}(TypedDict):\n{rows or _INDENT + 'pass' + chr(10)}"

    def _field(self, body: Any, *, required: bool) -> str:
        text = self._type(body)
        return text if required else f"NotRequired[{text}]"

    def _type(self, body: Any) -> str:
        if not isinstance(body, Mapping) or not body:
            return "object"  # `true` and `{}`: anything
        return " | ".join(self._members("", cast("Schema", body)))

    def _members(self, owner: str, body: Schema) -> list[str]:
        """Return the members of the union that `body` is, each once."""
        found: dict[str, None] = {}
        for member in self._walk(owner, body):
            found[member] = None
        if "object" in found:  # it contains all the others
            return ["object"]
        return sorted(found, key=lambda text: text == "None")

    def _walk(self, owner: str, body: Schema) -> list[str]:
        if isinstance(ref := body.get("$ref"), str):
            name = ref.rsplit("/", 1)[1]
            return ["object" if name in _OPAQUE else self.add(name)]
        for key in ("oneOf", "anyOf", "allOf"):
            if key in body and "properties" not in body:
                return [m for part in body[key] for m in self._walk(owner, part)]
        if "enum" in body:
            return [f"Literal[{', '.join(repr(word) for word in body['enum'])}]"]
        if _is_object(body) and _properties(body):
            return [self._branch(owner, body)]
        kinds = body.get("type", "object")
        return [self._simple(kind, body) for kind in _listed(kinds)]

    def _branch(self, owner: str, body: Schema) -> str:
        if not owner:  # an object without a name of its own, deep inside another
            return "dict[str, object]"
        name = owner + _tag(body)
        self.done[name] = self._class(name, body)
        return name

    def _simple(self, kind: str, body: Schema) -> str:
        if kind == "array":
            return f"list[{self._type(body.get('items'))}]"
        if kind == "object":
            extra = body.get("additionalProperties")
            return f"dict[str, {self._type(extra)}]"
        return _PLAIN[kind]


def _spread(body: Schema) -> Schema:
    """Give each branch of a tagged union the properties that stand beside the union."""
    branches = body.get("oneOf", ())
    if "properties" not in body or not branches:
        return body
    shared, required = body["properties"], body.get("required", [])
    return {
        "oneOf": [
            {
                **branch,
                "properties": {**shared, **branch["properties"]},
                "required": [*required, *branch.get("required", [])],
            }
            for branch in branches
        ]
    }


def _is_object(body: Schema) -> bool:
    return body.get("type") == "object"


def _properties(body: Schema) -> dict[str, Any]:
    """Return the properties, with those of untagged alternatives as optional ones."""
    found = dict(body.get("properties", {}))
    for part in body.get("anyOf", ()):
        found.update(part.get("properties", {}))
    return found


def _tag(body: Schema) -> str:
    for part in _properties(body).values():
        words: list[str] = [] if part is True else part.get("enum", [])
        if len(words) == 1:
            return _camel(words[0])
    return _camel(next(iter(_properties(body))))


def _camel(word: str) -> str:
    parts = word.replace("/", "_").replace("-", "_").split("_")
    return "".join(part[:1].upper() + part[1:] for part in parts)


def _listed(kinds: str | Sequence[str]) -> Sequence[str]:
    return [kinds] if isinstance(kinds, str) else kinds


def _single(text: str) -> str:
    return text.replace('"', "'")


def _quoted(text: str) -> str:
    return f'"{_single(text)}"'
