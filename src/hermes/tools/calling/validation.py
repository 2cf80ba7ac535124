"""Decide whether a call may run: its text must be whole JSON, an object, and fit the schema that was offered."""

import json
from collections.abc import Iterable
from itertools import islice
from typing import Any, Literal, TypeAlias

import jsonschema_rs
import msgspec

from hermes.errors import ToolError
from hermes.tools.calling.arguments import coerce_args
from hermes.tools.registry import tool_error
from hermes.types import JsonObject

Fault: TypeAlias = Literal["truncated_arguments", "malformed_arguments", "invalid_arguments", "unknown_tool"]

MAX_ARGUMENT_CHARS = 8_000_000
_SHOWN_ERRORS = 3
_SHOWN_CHARS = 300
_SHOWN_NAMES = 100
_MANY_BYTES = 64 << 10
_LITERALS = ("true", "false", "null")
_MAX_DEPTH = 64
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})  # schemas by name
_DATA = frozenset({"const", "default", "enum", "example", "examples", "required", "type"})
_SINGLE = frozenset({"$ref", "const", "anyOf", "oneOf", "allOf", "not", "if"})
_BEGUN_NUMBERS = frozenset({"-", ".", "e", "E", "e+", "e-", "E+", "E-"})  # where a reader stops in a number cut off


class CallRefused(ToolError):
    """A call that was not run; `fault` says at which step it failed."""

    def __init__(self, message: str, fault: Fault) -> None:
        super().__init__(message)
        self.fault: Fault = fault

    def as_json(self) -> str:
        return tool_error(str(self), error_type=self.fault)


def parse_arguments(text: str) -> JsonObject:
    """The object that `text` is. Truncated text, malformed text and other values are three different refusals.

    Forgiven are only faults that leave no doubt about the value: no text at all (no arguments), a byte-order mark,
    control characters written raw inside strings, and the object wrapped once more as a JSON string.
    """
    if len(text) > MAX_ARGUMENT_CHARS:
        raise CallRefused(
            f"the arguments have {len(text)} characters, more than the {MAX_ARGUMENT_CHARS} that a call may carry; "
            "nothing was run. Write large content in parts, over several calls.",
            "invalid_arguments",
        )
    text = text.lstrip("\ufeff")
    if not text.strip():
        return {}
    value = _decode(text)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _decode(value)
    if not isinstance(value, dict):
        raise CallRefused(
            f"the arguments must be a JSON object, not {_kind(value)}; nothing was run.", "malformed_arguments"
        )
    return value


def _decode(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return _decode_slowly(text)


def _decode_slowly(text: str) -> Any:
    """Forgive raw control characters; say what is wrong with anything else."""
    try:
        value = json.loads(text, strict=False, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode()  # lone surrogates cannot be stored or sent
    except json.JSONDecodeError as error:
        if _is_cut(text, error):
            raise CallRefused(
                f"the arguments were cut off after {len(text)} characters: the JSON is incomplete, so nothing was "
                "run. Send the whole call again. If the content is large, write it in parts: the first part with "
                "one call, the rest with further calls that append or patch.",
                "truncated_arguments",
            ) from error
        raise CallRefused(
            f"the arguments are not valid JSON: {error.msg} at character {error.pos}; nothing was run. "
            "Send the call again with the JSON corrected.",
            "malformed_arguments",
        ) from error
    except (ValueError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"[:_SHOWN_CHARS]
        raise CallRefused(
            f"the arguments are not usable JSON ({reason}); nothing was run.", "malformed_arguments"
        ) from error
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Whether all that is wrong with `text` is that it ends too early."""
    rest = text[error.pos :].strip()
    if error.msg.startswith("Unterminated string") or not rest:
        return True
    if error.msg.startswith("Invalid \\"):
        return len(rest) < len("\\u0000")
    return rest in _BEGUN_NUMBERS or any(literal.startswith(rest) for literal in _LITERALS)


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "a number"


class Validator:
    """Arguments against one offered schema. `closed` refuses properties the schema does not name."""

    def __init__(self, parameters: JsonObject, *, closed: bool) -> None:
        self._parameters = parameters
        schema = parameters
        if closed and "additionalProperties" not in parameters:
            schema = {**parameters, "additionalProperties": False}
        self._validator = _compiled(schema)
        properties = parameters.get("properties")
        self._known = sorted(properties) if isinstance(properties, dict) else []
        self._plain = _plain_types(properties) if isinstance(properties, dict) else {}
        self._defaults = _defaults(parameters)

    def check(self, args: JsonObject) -> JsonObject:
        """The coerced arguments; `CallRefused` names each place that does not fit, up to three."""
        if self._defaults:
            args = {**self._defaults, **args}
        as_wanted = not args or all(type(value) is self._plain.get(name) for name, value in args.items())
        coerced: JsonObject = args if as_wanted else coerce_args(args, self._parameters)
        found = misfits(self._validator, coerced, _SHOWN_ERRORS)
        if not found:
            return coerced
        shown = "; ".join(found)
        hint = f" Known fields: {', '.join(self._known)}." if self._known else " The tool takes no arguments."
        raise CallRefused(f"the arguments do not fit the schema: {shown}; nothing was run.{hint}", "invalid_arguments")


def _defaults(parameters: JsonObject) -> JsonObject:
    """What the schema itself says of properties that it also calls required: to leave them out is no doubt."""
    properties, required = parameters.get("properties"), parameters.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return {}
    found = {name: properties[name].get("default") for name in required if isinstance(properties.get(name), dict)}
    return {name: value for name, value in found.items() if isinstance(value, str | int | float)}


def _plain_types(properties: JsonObject) -> dict[str, type]:
    """The properties whose values of this very type need no second look before they are validated."""
    kinds = {"integer": int, "boolean": bool, "number": float}
    found: dict[str, type] = {}
    for name, schema in properties.items():
        kind = schema.get("type") if isinstance(schema, dict) else None
        if kind == "string" and schema.get("nullable") is not True:
            found[name] = str
        elif isinstance(kind, str) and kind in kinds:
            found[name] = kinds[kind]
    return found


def _with_nulls(schema: Any, depth: int = 0) -> Any:
    """`schema` with each `nullable: true` below its root spelt as JSON Schema does, where that word is none."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return schema
    spelt = {key: _below(key, value, depth + 1) for key, value in schema.items()}
    if schema.get("nullable") is not True or not depth:
        return spelt
    if not _SINGLE.isdisjoint(spelt):  # each of these would refuse null by itself
        return {"anyOf": [{"type": "null"}, spelt]}
    if isinstance(kind := spelt.get("type"), str | list):
        spelt["type"] = [*([kind] if isinstance(kind, str) else kind), "null"]
        spelt["type"] = list(dict.fromkeys(spelt["type"]))
    if isinstance(allowed := spelt.get("enum"), list) and None not in allowed:
        spelt["enum"] = [*allowed, None]
    return spelt


def _below(key: str, value: Any, depth: int) -> Any:
    """What stands under a keyword: a schema, several of them, or data, which is left as it is."""
    if key in _NAMED and isinstance(value, dict):
        return {name: _with_nulls(one, depth) for name, one in value.items()}
    if key in _DATA:
        return value
    return [_with_nulls(one, depth) for one in value] if isinstance(value, list) else _with_nulls(value, depth)


def _compiled(schema: JsonObject) -> Any:
    try:
        return compile_schema(schema)
    except ValueError as error:
        raise CallRefused(
            f"the tool's own schema is not valid JSON Schema ({error}), so it cannot be called", "invalid_arguments"
        ) from error


def compile_schema(schema: JsonObject) -> Any:
    """A validator of the schema's own draft, or of an older one that its keywords fit; `ValueError` for neither."""
    schema = _with_nulls(schema)
    reason = ""
    for make in (jsonschema_rs.validator_for, jsonschema_rs.Draft7Validator, jsonschema_rs.Draft4Validator):
        try:
            return make(schema, validate_formats=False, retriever=_no_network)
        except (ValueError, TypeError, jsonschema_rs.ValidationError) as error:
            reason = reason or str(error).splitlines()[0][:_SHOWN_CHARS]
    raise ValueError(reason)


def _no_network(uri: str) -> Any:
    raise ValueError(f"the schema refers to {uri!r}, outside itself")


def misfits(validator: Any, value: Any, most: int) -> list[str]:
    """What does not fit, a sentence each; nothing when all of it does.

    Every fault is found before the first is handed out, some microseconds each: of a large value there is only one.
    """
    try:
        if validator.is_valid(value):
            return []
        if len(msgspec.json.encode(value)) <= _MANY_BYTES:
            return list(dict.fromkeys(error_sentence(error) for error in islice(validator.iter_errors(value), most)))
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return [error_sentence(error)]
    except (ValueError, RecursionError) as error:
        return [f"it is nested too deeply to be checked ({error})"]
    return ["it does not fit"]  # though no fault was found


def error_sentence(error: jsonschema_rs.ValidationError) -> str:
    """Where something does not fit, and why."""
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    text = error.message.splitlines()[0]
    if len(text) > _SHOWN_CHARS:
        text = text[: _SHOWN_CHARS // 2] + " … " + text[-_SHOWN_CHARS // 2 :]
    return f"{place.lstrip('.')}: {text}" if place else text


def refuse_unknown(name: str, known: Iterable[str]) -> CallRefused:
    """The refusal for a name that no offered tool has."""
    if not name.strip():
        return CallRefused("a call needs the name of a tool; nothing was run.", "unknown_tool")
    listed = sorted(known)
    names = ", ".join(listed[:_SHOWN_NAMES]) or "none"
    if len(listed) > _SHOWN_NAMES:
        names += f" and {len(listed) - _SHOWN_NAMES} more"
    return CallRefused(f"Unknown tool: {name}. It does not exist; the tools are: {names}", "unknown_tool")
