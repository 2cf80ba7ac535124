"""Any schema becomes one the provider takes, or is quarantined with a reason: fuzzed, with validators of our own."""

import json
import os
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.schemas import DIALECTS, Dialect, Unmappable, for_wire, map_parameters, tidy
from hermes.types import ToolDefinition

FULL = os.environ.get("HERMES_TEST_FULL") == "1"
ROUNDS = 10_000 if FULL else 300

junk = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYWORDS = [
    "type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref", "$defs",
    "additionalProperties", "patternProperties", "minimum", "maxLength", "pattern", "format", "default", "nullable",
    "description", "title", "if", "then", "prefixItems", "exclusiveMinimum", "uniqueItems", "dependentRequired",
]  # fmt: skip
TYPES = st.sampled_from(["string", "number", "integer", "boolean", "array", "object", "null", "date", "any"])
NAMES = st.sampled_from(["a", "b_c", "d-e", "f.g", "h i", "ü", "x" * 80, ""])


def wild(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas that mix sense and nonsense."""
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, max_size=3) | junk,
            "properties": st.dictionaries(NAMES, inner, max_size=3) | junk,
            "required": st.lists(NAMES, max_size=2) | junk,
            "items": inner | st.lists(inner, max_size=2) | junk,
            "anyOf": st.lists(inner, max_size=3) | junk,
            "oneOf": st.lists(inner, max_size=3),
            "allOf": st.lists(inner, max_size=2),
            "not": inner,
            "enum": st.lists(junk, max_size=3) | junk,
            "const": junk,
            "$ref": st.sampled_from(["#", "#/$defs/A", "#/$defs/B", "#/properties/a", "http://x/y", "#/no/where"])
            | junk,
            "$defs": st.dictionaries(st.sampled_from(["A", "B"]), inner, max_size=2),
            "additionalProperties": inner | st.booleans() | junk,
            "patternProperties": st.dictionaries(st.just("^x"), inner, max_size=1),
            "minimum": junk,
            "maxLength": junk,
            "pattern": st.sampled_from(["^a+$", "(", "\\d"]) | junk,
            "format": st.sampled_from(["date-time", "uri", "enum"]) | junk,
            "default": junk,
            "nullable": st.booleans() | junk,
            "description": st.text(max_size=5) | junk,
            "title": junk,
        },
    )


schemas = st.recursive(st.just({}) | st.booleans() | st.builds(lambda kind: {"type": kind}, TYPES), wild, max_leaves=8)


def check(node: Any, dialect: Dialect, *, root: bool = False) -> None:
    """What the dialect says of a node, written down a second time."""
    assert isinstance(node, dict)
    allowed = dialect.keywords | ({"nullable"} if dialect.nullable_flag else set())
    assert node.keys() <= allowed, node.keys() - allowed
    kind = node.get("type")
    if root:
        assert kind == "object"
        assert not {"anyOf", "oneOf", "allOf", "enum", "not", "nullable"} & node.keys()
        assert "properties" in node
    if dialect.typed:
        assert "anyOf" in node or kind in {"string", "number", "integer", "boolean", "array", "object"}
    if kind in ("array", ["array", "null"]):
        check(node["items"], dialect)
    for name, value in node.get("properties", {}).items():
        assert dialect.property_name.fullmatch(name)
        check(value, dialect)
    assert set(node.get("required", ())) <= set(node.get("properties", {}))
    for branch in node.get("anyOf", ()):
        check(branch, dialect)
    if "anyOf" in node:
        assert node["anyOf"]
    if dialect.string_enums_only and "enum" in node:
        assert kind == "string"
        assert all(isinstance(value, str) and value for value in node["enum"])
    if isinstance(node.get("additionalProperties"), dict):
        check(node["additionalProperties"], dialect)


@settings(max_examples=ROUNDS, deadline=None, suppress_health_check=list(HealthCheck))
@given(schema=schemas | junk)
def test_any_schema_maps_into_every_dialect_or_says_why_not(schema: Any) -> None:
    for dialect in DIALECTS.values():
        check_mapping(schema, dialect)
    assert tidy(schema)["type"] == "object"


def check_mapping(schema: Any, dialect: Dialect) -> None:
    try:
        mapped = map_parameters(schema, dialect)
    except Unmappable as reason:
        assert str(reason)  # noqa: PT017 - the reason is the outcome
        return
    check(mapped, dialect, root=True)
    json.dumps(mapped)
    if not dialect.nullable_flag:
        jsonschema_rs.meta.validate({**mapped, "$schema": "https://json-schema.org/draft/2020-12/schema"})
    assert map_parameters(mapped, dialect) == mapped


simple = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "enum": ["a", "b"]},
            {"type": "integer", "minimum": 1},
            {"type": ["number", "null"]},
            {"type": "boolean"},
            {"type": "string", "nullable": True},
            {"enum": [1, True, "1"]},
            {"const": True},
        ]
    ),
    lambda inner: (
        st.builds(lambda item: {"type": "array", "items": item}, inner)
        | st.builds(lambda one, two: {"anyOf": [one, two]}, inner, inner)
        | st.builds(lambda one, two: {"allOf": [one, two]}, inner, inner)
        | st.builds(
            lambda fields, required, closed: {
                "type": "object",
                "properties": fields,
                "required": required,
                "additionalProperties": closed,
            },
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.lists(st.sampled_from("abc"), max_size=1, unique=True),
            st.booleans(),
        )
    ),
    max_leaves=6,
)
values = st.recursive(
    st.sampled_from(["a", "b", "zz", 0, 1, 2.5, True, False, None, "1"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abcx"), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=ROUNDS, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    fields=st.dictionaries(st.sampled_from("abc"), simple, max_size=3),
    value=values,
    kind=st.sampled_from(["openai", "anthropic"]),
)
def test_the_mapping_never_refuses_what_the_tool_itself_would_take(fields: Any, value: Any, kind: Any) -> None:
    schema = {"type": "object", "properties": fields}
    mapped = map_parameters(schema, DIALECTS[kind])
    args = dict.fromkeys(fields, value)
    if jsonschema_rs.is_valid(schema, args):
        assert jsonschema_rs.is_valid(mapped, args), (schema, mapped, args)


@settings(max_examples=ROUNDS // 5, deadline=None)
@given(names=st.lists(st.text(max_size=90), unique=True, max_size=8), wire=st.sampled_from(sorted(DIALECTS)))
def test_names_are_legal_unique_and_lead_back(names: list[str], wire: Any) -> None:
    tools = for_wire([ToolDefinition(name, "d", {}) for name in names], wire)
    sent = [one.name for one in tools.definitions]
    assert len(set(sent)) == len(names)
    assert all(DIALECTS[wire].tool_name.fullmatch(name) for name in sent)
    assert [tools.ours(name) for name in sent] == names
    again = for_wire([ToolDefinition(name, "d", {}) for name in names], wire)
    assert again == tools


def test_a_bad_tool_is_quarantined_and_the_others_stay() -> None:
    tools = for_wire(
        [
            ToolDefinition("good", "d", {"type": "object", "properties": {"a": {"type": "string"}}}),
            ToolDefinition("odd", "d", {"type": "object", "properties": {"a b": {"type": "string"}}}),
            ToolDefinition("list", "d", {"type": "array"}),
        ],
        "anthropic",
    )
    assert [one.name for one in tools.definitions] == ["good"]
    assert "'a b'" in tools.quarantined["odd"]
    assert "always an object" in tools.quarantined["list"]


def test_nonsense_among_required_names_is_left_out() -> None:
    schema: dict[str, Any] = {"properties": {"a": {}}, "required": [[], "a", None], "oneOf": [{"required": [{}, "a"]}]}
    for dialect in DIALECTS.values():
        assert map_parameters(schema, dialect)["required"] == ["a"]
    assert tidy(schema)["required"] == ["a"]


def test_references_that_multiply_are_quarantined_not_expanded() -> None:
    defs = {
        f"n{i}": {
            "type": "object",
            "properties": {"a": {"$ref": f"#/$defs/n{i + 1}"}, "b": {"$ref": f"#/$defs/n{i + 1}"}},
        }
        for i in range(20)
    }
    defs["n20"] = {"type": "string"}
    tools = for_wire(
        [ToolDefinition("t", "d", {"type": "object", "properties": {"x": {"$ref": "#/$defs/n0"}}, "$defs": defs})],
        "openai",
    )
    assert "more than" in tools.quarantined["t"]


def test_a_recursive_type_is_cut_where_it_begins_again() -> None:
    tree = {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "$defs": {
            "Node": {"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}}}
        },
    }
    mapped = map_parameters(tree, DIALECTS["openai"])
    assert mapped["properties"]["root"]["properties"] == {"name": {"type": "string"}, "next": {}}


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$ref": "#"}]},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {
            "$ref": "#/$defs/A",
            "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "type": "object"}},
        },
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"allOf": [{"$ref": "#/$defs/A"}]}}},
        {"$ref": "#"},
    ],
    ids=str,
)
def test_references_in_a_circle_end(schema: Any) -> None:
    for dialect in DIALECTS.values():
        check_mapping(schema, dialect)


def test_tidy_gives_an_object_at_the_root_and_copies() -> None:
    assert tidy(None) == {"type": "object", "properties": {}}
    source = {"properties": {"a": "integer", "b": {"enum": [1]}}, "required": ["a", "gone"]}
    out = tidy(source)
    assert out == {"properties": {"a": {"type": "integer"}, "b": {"enum": [1]}}, "required": ["a"], "type": "object"}
    assert out["properties"]["b"] is not source["properties"]["b"]  # type: ignore[index]  # it is a mapping
