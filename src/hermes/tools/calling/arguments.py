"""Typed arguments: a struct is the schema a model sees and the value a handler works with."""

import inspect
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from hermes.errors import ToolError
from hermes.typed import convert
from hermes.types import JsonObject

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
