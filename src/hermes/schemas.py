"""Map any tool schema into what a provider accepts, or say why it cannot be: one bad tool never breaks a request.

The mapping may only widen: arguments are validated against the tool's own schema before a call runs, so a keyword a
provider does not know is left out here and still holds there.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from hermes.types import JsonObject, ToolDefinition

Wire: TypeAlias = Literal["openai", "anthropic", "gemini"]

_DEPTH = 24
_NODES = 5_000
_KINDS = ("string", "number", "integer", "boolean", "array", "object", "null")


class Dialect(Struct, frozen=True):
    """The part of JSON Schema that one provider takes."""

    name: str
    keywords: frozenset[str]
    tool_name: re.Pattern[str]
    property_name: re.Pattern[str]
    nullable_flag: bool = False  # `nullable: true` instead of a null type
    string_enums_only: bool = False
    typed: bool = False  # every node needs a type
    formats: frozenset[str] | None = None  # None takes any
    max_name: int = 64


_COMMON = frozenset(
    {
        "type", "description", "properties", "required", "items", "enum", "anyOf", "minimum", "maximum", "minItems",
        "maxItems", "minLength", "maxLength", "pattern", "format", "default",
    }
)  # fmt: skip
_FULL = _COMMON | {
    "title", "additionalProperties", "const", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems",
    "minProperties", "maxProperties", "examples",
}  # fmt: skip

DIALECTS: dict[Wire, Dialect] = {
    "openai": Dialect(
        "openai", _FULL, re.compile(r"[A-Za-z0-9_-]{1,64}"), re.compile(r"[^\x00-\x1f]{1,256}", re.DOTALL)
    ),
    "anthropic": Dialect("anthropic", _FULL, re.compile(r"[A-Za-z0-9_-]{1,64}"), re.compile(r"[A-Za-z0-9_.-]{1,64}")),
    "gemini": Dialect(
        "gemini",
        _COMMON - {"default"},
        re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"),
        re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}"),
        nullable_flag=True,
        string_enums_only=True,
        typed=True,
        formats=frozenset({"enum", "date-time"}),
    ),
}


MAX_MAPPED = 32
_mapped: "dict[tuple[int, Wire], tuple[tuple[ToolDefinition, ...], WireTools]]" = {}  # by the id of what it holds


class Unmappable(ValueError):
    """A schema that no faithful form of the provider's exists for; the text says why."""


class WireTools(Struct, frozen=True):
    """Tools as one provider takes them: in the order given, names legal, and the way back from each name."""

    definitions: tuple[ToolDefinition, ...]
    original_names: Mapping[str, str]  # wire name -> ours
    quarantined: Mapping[str, str] = field(default_factory=dict)  # our name -> why it is left out

    def ours(self, wire_name: str) -> str:
        """Our name of a tool that a model called; a name we never sent is given back as it is."""
        return self.original_names.get(wire_name, wire_name)


def for_wire(definitions: Iterable[ToolDefinition], wire: Wire) -> WireTools:
    """Every definition in the provider's form. Total: what cannot be mapped is quarantined with its reason.

    Sessions with the same tools share one tuple of definitions, which is mapped once.
    """
    listed = tuple(definitions)  # the same object if it is one already
    known = _mapped.get((id(listed), wire))
    if known is not None and known[0] is listed:
        return known[1]
    if len(_mapped) >= MAX_MAPPED:
        _mapped.clear()
    made = _map_all(listed, DIALECTS[wire])
    _mapped[id(listed), wire] = (listed, made)
    return made


def _map_all(definitions: tuple[ToolDefinition, ...], dialect: Dialect) -> WireTools:
    mapped: list[ToolDefinition] = []
    originals: dict[str, str] = {}
    quarantined: dict[str, str] = {}
    taken = {one.name for one in definitions if dialect.tool_name.fullmatch(one.name)}
    for one in definitions:
        try:
            parameters = map_parameters(one.parameters, dialect)
        except Unmappable as reason:
            quarantined[one.name] = str(reason)
            continue
        name = _wire_name(one.name, dialect, taken)
        originals[name] = one.name
        mapped.append(ToolDefinition(name, _text(one.description), parameters))
    return WireTools(tuple(mapped), originals, quarantined)


def map_parameters(parameters: object, dialect: Dialect) -> JsonObject:
    """A parameter schema in the provider's form: always an object at the root; `Unmappable` when there is none."""
    if parameters is None or parameters is True:
        parameters = {}
    if not isinstance(parameters, Mapping):
        raise Unmappable(f"its parameters are {type(parameters).__name__}, not an object")
    try:
        return _Mapper(dialect, parameters).root(parameters)
    except RecursionError as error:
        raise Unmappable("its schema is nested too deeply") from error


def tidy(parameters: object) -> JsonObject:
    """A deep copy of `parameters` in the shape every reader may count on: an object with properties at the root."""
    if not isinstance(parameters, Mapping):
        return {"type": "object", "properties": {}}
    out: JsonObject = _copied(parameters)
    if out.get("type") != "object":
        out = {**out, "type": "object"}
    if not isinstance(out.get("properties"), dict):
        out = {**out, "properties": {}}
    properties = out["properties"]
    for name, node in properties.items():
        if isinstance(node, str):  # a bare type name
            properties[name] = {"type": node if node in _KINDS else "string"}
    required = out.get("required")
    if required is not None:
        named = [one for one in _names(required) if one in properties]
        out = {**out, "required": named} if named else {key: value for key, value in out.items() if key != "required"}
    return out


def _copied(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {str(key): _copied(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_copied(value) for value in node]
    return node


class _Mapper:
    """One schema on its way into a dialect."""

    def __init__(self, dialect: Dialect, root: Mapping[str, Any]) -> None:
        self._dialect = dialect
        self._root = root
        self._nodes = 0

    def root(self, schema: Mapping[str, Any]) -> JsonObject:
        merged = self._flat_root(self._resolved(schema, ()), ("#", str(schema.get("$ref"))))
        kind = merged.get("type", "object")
        if kind != "object" and not (isinstance(kind, list) and "object" in kind):
            raise Unmappable(f"its parameters are of type {kind!r}; arguments are always an object")
        merged.pop("nullable", None)
        return self._node({**merged, "type": "object"}, 0, ())

    def _flat_root(self, schema: Mapping[str, Any], inside: tuple[str, ...]) -> JsonObject:
        """The root without alternatives: all their properties, and only what every one of them requires.

        `inside` are the references it was reached through; one that leads back adds nothing.
        """
        self._count()
        out = {
            key: value
            for key, value in schema.items()
            if key not in ("anyOf", "oneOf", "allOf", "not", "enum", "const")
        }
        for branch in _list(schema.get("allOf")):
            reference = branch.get("$ref") if isinstance(branch, Mapping) else None
            if reference in inside or len(inside) > _DEPTH:
                continue
            out = _joined(out, self._flat_root(self._resolved(branch, inside), (*inside, str(reference or ""))))
        for key in ("anyOf", "oneOf"):
            branches = [self._resolved(branch, inside) for branch in _list(schema.get(key))]
            shared: set[str] | None = None
            for branch in branches:
                properties = branch.get("properties")
                if isinstance(properties, Mapping):
                    out["properties"] = {**properties, **_mapping(out.get("properties"))}
                names = set(_names(branch.get("required")))
                shared = names if shared is None else shared & names
            if shared:
                out["required"] = [*dict.fromkeys([*_names(out.get("required")), *sorted(shared)])]
        return out

    def _count(self) -> None:
        self._nodes += 1
        if self._nodes > _NODES:
            raise Unmappable(f"its schema has more than {_NODES} parts once its references are written out")

    def _node(self, schema: Any, depth: int, inside: tuple[str, ...]) -> JsonObject:
        self._count()
        if isinstance(schema, bool) or depth > _DEPTH:
            schema = {}
        if isinstance(schema, str):
            schema = {"type": schema if schema in _KINDS else "string"}
        if not isinstance(schema, Mapping):
            raise Unmappable(f"a part of its schema is {type(schema).__name__}, not an object")
        reference = schema.get("$ref")
        schema = self._resolved(schema, inside)
        if isinstance(reference, str):
            inside = (*inside, reference)
        for branch in _list(schema.get("allOf")):
            if depth <= _DEPTH:
                schema = _joined(schema, self._resolved(branch, inside))
        out: JsonObject = {}
        kinds, nullable = _kinds(schema)
        alternatives, null_branch = self._alternatives(schema, depth, inside)
        nullable = nullable or null_branch
        if "properties" in schema:  # alternatives beside them only say what is required when
            alternatives = []
        self._set_type(out, kinds, nullable, alternatives)
        self._copy_plain(schema, out)
        self._enum(schema, out)
        if kinds == ["object"] and not alternatives:
            self._object(schema, out, depth, inside)
        if kinds == ["array"] and not alternatives:
            items = schema.get("items")
            out["items"] = self._node({} if isinstance(items, list) or items is None else items, depth + 1, inside)
        return out

    def _set_type(self, out: JsonObject, kinds: list[str], nullable: bool, alternatives: list[JsonObject]) -> None:
        if alternatives:
            out["anyOf"] = alternatives
            if nullable and self._dialect.nullable_flag:
                out["nullable"] = True
            elif nullable and {"type": "null"} not in alternatives:
                out["anyOf"] = [*alternatives, {"type": "null"}]
            return
        if len(kinds) > 1:
            out["anyOf"] = [self._node({"type": kind}, _DEPTH, ()) for kind in kinds]
        elif kinds:
            out["type"] = kinds[0]
        elif self._dialect.typed:
            out["type"] = "string"
        if nullable and self._dialect.nullable_flag:
            out["nullable"] = True
        elif nullable and len(kinds) > 1:
            out["anyOf"] = [*out["anyOf"], {"type": "null"}]
        elif nullable and kinds:
            out["type"] = [kinds[0], "null"]
        elif nullable:
            out["type"] = "null"

    def _alternatives(
        self, schema: Mapping[str, Any], depth: int, inside: tuple[str, ...]
    ) -> tuple[list[JsonObject], bool]:
        branches = [*_list(schema.get("anyOf")), *_list(schema.get("oneOf"))]
        null = False
        mapped: list[JsonObject] = []
        for branch in branches:
            if branch is False:
                continue
            resolved = self._resolved(branch, inside) if isinstance(branch, Mapping) else branch
            if isinstance(resolved, Mapping) and resolved.get("type") == "null":
                null = True
                continue
            one = self._node(branch, depth + 1, inside)
            mapped.append(one)
        return _distinct(mapped), null

    def _copy_plain(self, schema: Mapping[str, Any], out: JsonObject) -> None:
        for key, check in _PLAIN.items():
            value = schema.get(key)
            if key in self._dialect.keywords and value is not None and check(value):
                out[key] = _text(value) if isinstance(value, str) else value
        kind = schema.get("format")
        formats = self._dialect.formats
        if isinstance(kind, str) and "format" in self._dialect.keywords and (formats is None or kind in formats):
            out["format"] = kind
        if "default" in schema and "default" in self._dialect.keywords:
            out["default"] = schema["default"]

    def _enum(self, schema: Mapping[str, Any], out: JsonObject) -> None:
        values = _values(schema)
        if not values or "anyOf" in out:
            return
        if self._dialect.string_enums_only:
            if all(isinstance(value, str) and value for value in values) and out.get("type") == "string":
                out["enum"] = list(dict.fromkeys(values))
            return
        out["enum"] = _distinct(values)

    def _object(self, schema: Mapping[str, Any], out: JsonObject, depth: int, inside: tuple[str, ...]) -> None:
        properties: JsonObject = {}
        for name, node in _mapping(schema.get("properties")).items():
            if not self._dialect.property_name.fullmatch(str(name)):
                raise Unmappable(f"{self._dialect.name} takes no argument named {str(name)[:80]!r}")
            if node is not False:  # a property that may never be given
                properties[str(name)] = self._node(node, depth + 1, inside)
        out["properties"] = properties
        required = [one for one in dict.fromkeys(_names(schema.get("required"))) if one in properties]
        if required:
            out["required"] = required
        extra = schema.get("additionalProperties")
        if "patternProperties" in schema:
            extra = None  # names it allows would be refused
        if "additionalProperties" in self._dialect.keywords and extra is not None:
            out["additionalProperties"] = extra if isinstance(extra, bool) else self._node(extra, depth + 1, inside)

    def _resolved(self, schema: Any, inside: tuple[str, ...]) -> Mapping[str, Any]:
        """Follow a reference; one that leads out, nowhere or back into itself stands for any value."""
        if not isinstance(schema, Mapping):
            return {}
        seen = list(inside)
        found: Mapping[str, Any] = schema
        while isinstance(found.get("$ref"), str):
            reference = str(found["$ref"])
            beside = {key: value for key, value in found.items() if key in ("description", "title", "default")}
            target = None if reference in seen else _pointed(self._root, reference)
            seen.append(reference)
            if not isinstance(target, Mapping):
                return beside
            found = {**target, **beside}
        return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_pattern(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        re.compile(value)
    except re.error:
        return False
    return True


_PLAIN: dict[str, Callable[[Any], bool]] = {
    "title": lambda value: isinstance(value, str),
    "description": lambda value: isinstance(value, str),
    "minimum": _is_number,
    "maximum": _is_number,
    "exclusiveMinimum": _is_number,
    "exclusiveMaximum": _is_number,
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "minItems": _is_count,
    "maxItems": _is_count,
    "minLength": _is_count,
    "maxLength": _is_count,
    "minProperties": _is_count,
    "maxProperties": _is_count,
    "uniqueItems": lambda value: isinstance(value, bool),
    "pattern": _is_pattern,
    "examples": lambda value: isinstance(value, list),
}


def _kinds(schema: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The types of a node without null, and whether null is one."""
    kind = schema.get("type")
    listed = [kind] if isinstance(kind, str) else _list(kind)
    known = [one for one in dict.fromkeys(str(one) for one in listed) if one in _KINDS]
    if not known and "properties" in schema:
        known = ["object"]
    if not known and "items" in schema:
        known = ["array"]
    if not known and (values := _values(schema)) and all(isinstance(value, str) for value in values):
        known = ["string"]
    return [one for one in known if one != "null"], "null" in known or schema.get("nullable") is True


def _values(schema: Mapping[str, Any]) -> list[Any]:
    """The only values a node allows; none when it names none."""
    return [schema["const"]] if "const" in schema else _list(schema.get("enum"))


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> JsonObject:
    """Both schemas at once, as far as the subset can say it; where they differ the first holds."""
    out = {**other, **{key: value for key, value in one.items() if key != "allOf"}}
    if "properties" in one or "properties" in other:
        out["properties"] = {**_mapping(other.get("properties")), **_mapping(one.get("properties"))}
    required = [*_names(one.get("required")), *_names(other.get("required"))]
    if required:
        out["required"] = [*dict.fromkeys(required)]
    return out


def _pointed(root: Mapping[str, Any], reference: str) -> Any:
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    node: Any = root
    for part in reference[2:].split("/"):
        node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
    return node


def _distinct(values: list[Any]) -> list[Any]:
    """Each value once; true and 1 are two."""
    return list({json.dumps(value, sort_keys=True, default=str): value for value in values}.values())


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _names(value: object) -> list[str]:
    return [one for one in _list(value) if isinstance(one, str)]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode()


def _wire_name(name: str, dialect: Dialect, taken: set[str]) -> str:
    """A legal name that belongs to this tool alone, the same in every process."""
    if dialect.tool_name.fullmatch(name):
        return name
    mark = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[: dialect.max_name - 10] or "tool"
    if not plain[0].isalpha() and plain[0] != "_":
        plain = f"t_{plain}"[: dialect.max_name - 10]
    wanted = f"{plain}_{mark}"
    while wanted in taken:
        mark = hashlib.sha256(mark.encode()).hexdigest()[:8]
        wanted = f"{plain}_{mark}"
    taken.add(wanted)
    return wanted
