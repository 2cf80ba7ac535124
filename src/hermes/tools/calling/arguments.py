"""Typed arguments: a struct is the schema a model sees and the value a handler works with.

Arguments are brought into the types a schema asks for where a model wrote the right value in the wrong type.

A value is only ever re-read, never made up: what does not fit stays as it is, and validation then refuses the call.
"""

import inspect
import json
import logging
import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from hermes.errors import ToolError
from hermes.typed import convert
from hermes.types import JsonObject

log = logging.getLogger(__name__)

_MAX_DIGITS = 400
_MAX_DEPTH = 64


def coerce_args(args: Any, parameters: Mapping[str, Any]) -> Any:
    """A copy of `args` with each known property in its schema's type; anything but an object is returned as it is."""
    if not isinstance(args, dict):
        return args
    return _object(args, parameters, parameters, 0)


def _object(value: JsonObject, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> JsonObject:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return dict(value)
    return {
        key: _value(item, properties[key], root, depth + 1) if key in properties else item
        for key, item in value.items()
    }


def _value(value: Any, schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    if value == "null" and isinstance(schema, dict) and schema.get("nullable") is True:
        return None  # said beside a reference, it would be lost with it
    schema = _resolved(schema, root)
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return value
    types = _types(schema, root)
    if isinstance(value, str):
        value = _text(value, schema, root, types)
    elif isinstance(value, float) and types == ["integer"] and value.is_integer():
        value = int(value)
    if types == ["array"] and value is not None and not isinstance(value, list):
        if isinstance(value, str) and value.lstrip().startswith("["):
            log.warning("an array argument was text that is no JSON list; it is taken as the list's one element")
        value = [value]
    narrowed = _single_branch(schema, root)
    if isinstance(value, dict):
        return _object(value, narrowed, root, depth)
    if isinstance(value, list) and isinstance(narrowed.get("items"), dict):
        return [_value(item, narrowed["items"], root, depth + 1) for item in value]
    return value


def _text(value: str, schema: Mapping[str, Any], root: Mapping[str, Any], types: list[str]) -> Any:
    if value == "null" and _nullable(schema, root, types):
        return None
    for kind in types:
        changed = _as_kind(value, kind)
        if changed is not value:
            return changed
    return value


def _as_kind(value: str, kind: str) -> Any:
    """`value` read as `kind`, or the same object when it cannot be."""
    match kind:
        case "integer" | "number":
            return _number(value, whole=kind == "integer")
        case "boolean":
            return {"true": True, "false": False}.get(value.strip().lower(), value)
        case "array" | "object":
            return _json(value, list if kind == "array" else dict)
        case _:
            return value


def _number(value: str, *, whole: bool) -> Any:
    text = value.strip()
    if not text or len(text) > _MAX_DIGITS or "_" in text:
        return value
    try:
        number = float(text)
    except ValueError:
        return value
    if not math.isfinite(number):
        return value
    if text.lstrip("+-").isdigit():
        return int(text)
    if number.is_integer():
        return int(number)
    return value if whole else number


def _json(value: str, kind: type) -> Any:
    if not value.lstrip().startswith(("[", "{")):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return found if isinstance(found, kind) else value


def _types(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type")
    if kind is None:
        branches = [branch for branch in _branches(schema, root) if branch.get("type") != "null"]
        kind = branches[0].get("type") if len(branches) == 1 else None
    if isinstance(kind, str):
        return [kind]
    return [one for one in kind if isinstance(one, str)] if isinstance(kind, list) else []


def _nullable(schema: Mapping[str, Any], root: Mapping[str, Any], types: list[str]) -> bool:
    return (
        "null" in types
        or schema.get("nullable") is True
        or any(branch.get("type") == "null" for branch in _branches(schema, root))
    )


def _branches(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list):
            found += [one for one in (_resolved(option, root) for option in options) if isinstance(one, dict)]
    return found


def _single_branch(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema itself, or its one alternative that is not null."""
    if "type" in schema or "properties" in schema:
        return schema
    branches = [branch for branch in _branches(schema, root) if branch.get("type") != "null"]
    return branches[0] if len(branches) == 1 else schema


def _resolved(schema: Any, root: Mapping[str, Any]) -> Any:
    """Follow references inside the schema; one that leads nowhere, or in a circle, is left as it is."""
    for _ in range(8):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        node: Any = root
        for part in reference[2:].split("/"):
            node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
        if node is None:
            return schema
        schema = node
    return schema


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CLOSE = 0.85
_LONGEST = 128


def repair_name(name: str, known: Iterable[str]) -> str | None:
    """The known tool that `name` means, or None. A near miss counts only when it points to exactly one tool."""
    names = known if isinstance(known, frozenset) else frozenset(known)
    if name in names:
        return name
    text = name.strip()
    if not text or len(text) > _LONGEST:
        return None
    snake = re.sub(r"[\s-]+", "_", _CAMEL.sub("_", text)).lower()
    for guess in (text, text.lower(), re.sub(r"[\s-]+", "_", text.lower()), snake):
        for candidate in (guess, guess.removesuffix("_tool")):
            if candidate in names:
                return candidate
    from difflib import get_close_matches  # most names are right

    near = get_close_matches(snake, sorted(names), n=2, cutoff=_CLOSE)
    return near[0] if len(near) == 1 else None


T = TypeVar("T")
_VALUES = frozenset({"default", "enum", "const", "examples"})  # hold values, not schemas


def parse_args(args: Mapping[str, object], kind: type[T]) -> T:
    """`args` as a `kind`; a `ToolError` that names the field when they do not fit."""
    try:
        return convert(args, kind)
    except msgspec.ValidationError as error:
        raise ToolError(f"bad arguments: {error}") from error


def schema_of(name: str, kind: type) -> JsonObject:
    """The function schema of `kind`: its docstring is the description, its fields are the parameters."""
    parameters = parameters_of(kind)
    description = parameters.pop("description", "")
    return {"name": name, "description": description, "parameters": parameters}


@lru_cache(maxsize=256)
def _raw_schema(kind: Any) -> JsonObject:
    return msgspec.json.schema(kind)


def parameters_of(kind: Any) -> JsonObject:
    """The JSON Schema of a type with all references written out, in field order, without titles."""
    schema = _raw_schema(kind)
    whole = _inline(schema, schema.get("$defs", {}), ())
    if not isinstance(whole, dict):
        raise TypeError(f"{kind!r} has no object schema")
    doc = getattr(kind, "__doc__", None)
    if doc:
        whole["description"] = inspect.cleandoc(doc)
    if whole.get("type") == "object":
        whole.setdefault("properties", {})
    return whole


def _inline(node: Any, defs: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inline(item, defs, inside) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        name = reference.rsplit("/", 1)[-1]
        if name in inside:
            raise TypeError(f"the argument type {name!r} contains itself; a model cannot be offered that")
        beside = {key: value for key, value in node.items() if key not in ("$ref", "$defs")}
        return {**_inline(defs[name], defs, (*inside, name)), **beside}
    out: JsonObject = {}
    for key, entry in node.items():
        if key in ("title", "$defs"):
            continue
        if key == "properties":
            out[key] = {name: _inline(value, defs, inside) for name, value in entry.items()}
        else:
            out[key] = entry if key in _VALUES else _inline(entry, defs, inside)
    if "enum" in out and "type" not in out and all(isinstance(value, str) for value in out["enum"]):
        out = {"type": "string", **out}  # some providers refuse an enum without a type
    return out
