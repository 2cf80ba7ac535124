"""Arguments: what is coerced, what is refused, and that no cut call ever passes."""

import json
import os
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.tools.calling.arguments import coerce_args, repair_name
from hermes.tools.calling.validation import CallRefused, Validator, parse_arguments

FULL = os.environ.get("HERMES_TEST_FULL") == "1"
ROUNDS = 10_000 if FULL else 1_000

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=6), values, max_size=4)


@settings(max_examples=ROUNDS // 10, deadline=None)
@given(args=objects, ascii_only=st.booleans(), spaced=st.booleans())
def test_a_call_cut_at_any_byte_is_never_run(args: dict[str, Any], ascii_only: bool, spaced: bool) -> None:
    text = json.dumps(args, ensure_ascii=ascii_only, indent=1 if spaced else None)
    assert parse_arguments(text) == args
    for end in range(1, len(text)):
        with pytest.raises(CallRefused) as refused:
            parse_arguments(text[:end])
        assert refused.value.fault == "truncated_arguments", text[:end]


@settings(max_examples=ROUNDS, deadline=None)
@given(text=st.text(max_size=60))
def test_any_text_is_an_object_or_one_refusal(text: str) -> None:
    try:
        outcome: object = parse_arguments(text)
    except CallRefused as refused:
        outcome = refused
    if isinstance(outcome, CallRefused):
        assert outcome.fault in ("truncated_arguments", "malformed_arguments")
        assert json.loads(outcome.as_json())["error"]
    else:
        assert isinstance(outcome, dict)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("  \n", {}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('{"a": "x\ny"}', {"a": "x\ny"}),
        (json.dumps('{"a": 1}'), {"a": 1}),
    ],
)
def test_harmless_faults_are_forgiven(text: str, value: dict[str, Any]) -> None:
    assert parse_arguments(text) == value


@pytest.mark.parametrize(
    ("schema", "given_value", "wanted"),
    [
        ({"type": "integer"}, "42", 42),
        ({"type": "integer"}, "42.0", 42),
        ({"type": "integer"}, "4.2", "4.2"),
        ({"type": "integer"}, 3.0, 3),
        ({"type": "integer"}, "9" * 5000, "9" * 5000),
        ({"type": "number"}, "3.5", 3.5),
        ({"type": "number"}, "3", 3),
        ({"type": "number"}, "inf", "inf"),
        ({"type": "number"}, "nan", "nan"),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "FALSE", False),
        ({"type": "boolean"}, "yes", "yes"),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "array"}, "one", ["one"]),
        ({"type": "array"}, 7, [7]),
        ({"type": "array"}, None, None),
        ({"type": "array"}, "[1, 2", ["[1, 2"]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "object"}, "[1]", "[1]"),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["integer", "string"]}, "42", 42),
        ({"type": "string", "nullable": True}, "null", None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "null", None),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", 5),
        ({"type": "string"}, "42", "42"),
        ({}, "42", "42"),
        ({"type": "array", "items": {"type": "integer"}}, '["1", "2"]', [1, 2]),
        ({"type": "array", "items": {"type": "object"}}, ['{"a": 1}'], [{"a": 1}]),
        ({"type": "object", "properties": {"n": {"type": "array"}}}, '{"n": "[1]"}', {"n": [1]}),
        ({"$ref": "#/$defs/N"}, "8", 8),
        ({"$ref": "#/$defs/Loop"}, "8", "8"),
    ],
)
def test_coercion_follows_the_table(schema: dict[str, Any], given_value: Any, wanted: Any) -> None:
    parameters = {
        "type": "object",
        "properties": {"x": schema},
        "$defs": {"N": {"type": "integer"}, "Loop": {"$ref": "#/$defs/Loop"}},
    }
    found = coerce_args({"x": given_value, "other": "1"}, parameters)
    assert found == {"x": wanted, "other": "1"}
    assert type(found["x"]) is type(wanted)


@settings(max_examples=ROUNDS // 5, deadline=None)
@given(args=objects, schema=values)
def test_coercion_is_total_whatever_the_schema(args: dict[str, Any], schema: Any) -> None:
    parameters = {"properties": dict.fromkeys(args, schema)}
    coerced = coerce_args(args, parameters)
    assert coerced.keys() == args.keys()
    assert coerce_args(coerced, parameters).keys() == args.keys()


def test_extra_fields_follow_the_schema_unless_the_tool_is_ours() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert Validator(schema, closed=False).check({"a": 1, "b": 2}) == {"a": 1, "b": 2}
    with pytest.raises(CallRefused, match="'b' was unexpected"):
        Validator(schema, closed=True).check({"a": 1, "b": 2})


def test_a_required_field_with_a_default_may_be_left_out() -> None:
    mode = {"type": "string", "enum": ["replace", "patch"], "default": "replace"}
    schema = {"type": "object", "properties": {"mode": mode, "path": {"type": "string"}}, "required": ["mode", "path"]}
    validator = Validator(schema, closed=True)
    assert validator.check({"path": "a"}) == {"mode": "replace", "path": "a"}
    assert validator.check({"path": "a", "mode": "patch"})["mode"] == "patch"
    with pytest.raises(CallRefused, match='"path" is a required property'):
        validator.check({})


def test_an_old_draft_is_understood_and_a_broken_schema_says_so() -> None:
    old = {"type": "object", "properties": {"a": {"type": "number", "minimum": 3, "exclusiveMinimum": True}}}
    with pytest.raises(CallRefused):
        Validator(old, closed=False).check({"a": 3})
    with pytest.raises(CallRefused, match="own schema is not valid"):
        Validator({"type": "objekt"}, closed=False)
    with pytest.raises(CallRefused, match="outside itself"):
        Validator({"$ref": "http://127.0.0.1:9/schema.json"}, closed=False)


def test_names_are_repaired_only_when_one_tool_is_meant() -> None:
    known = {"read_file", "write_file", "web_search"}
    assert repair_name("WebSearch", known) == "web_search"
    assert repair_name("web search", known) == "web_search"
    assert repair_name("rite_file", {"write_file", "rite_files"}) is None
    assert repair_name("", known) is None
    assert repair_name("x" * 10_000, known) is None
    chance = random.Random(5)
    for _ in range(200):
        junk = "".join(chance.choices("qzjxkv", k=8))
        assert repair_name(junk, known) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "nullable": True},
        {"type": "integer", "nullable": True, "minimum": 3},
        {"type": ["string", "integer"], "nullable": True},
        {"type": "string", "enum": ["a", "b"], "nullable": True},
        {"const": "a", "nullable": True},
        {"$ref": "#/$defs/name", "nullable": True},
        {"oneOf": [{"type": "string"}, {"type": "integer"}], "nullable": True},
        {"type": "object", "properties": {"x": {"type": "string"}}, "nullable": True},
        {"type": "array", "items": {"type": "string"}, "nullable": True},
    ],
)
@pytest.mark.parametrize("value", [None, "null"])
def test_a_nullable_property_takes_null_and_the_word_for_it(schema: dict[str, Any], value: str | None) -> None:
    parameters = {"type": "object", "properties": {"default": schema}, "$defs": {"name": {"type": "string"}}}
    assert Validator(parameters, closed=True).check({"default": value}) == {"default": None}


def test_null_is_still_refused_where_nothing_allows_it() -> None:
    parameters = {
        "type": "object",
        "properties": {
            "nullable": {"type": "boolean"},
            "inner": {"type": "object", "properties": {"kind": {"type": "string"}}, "default": {"nullable": True}},
        },
        "nullable": True,
    }
    validator = Validator(parameters, closed=True)
    for args in ({"nullable": None}, {"inner": None}, {"inner": {"kind": None}}):
        with pytest.raises(CallRefused):
            validator.check(args)


def test_a_nullable_item_of_a_list_takes_null() -> None:
    items = {"type": "array", "items": {"type": "integer", "nullable": True}}
    validator = Validator({"type": "object", "properties": {"of": items}}, closed=True)
    assert validator.check({"of": [1, None, "null", "2"]}) == {"of": [1, None, None, 2]}
    with pytest.raises(CallRefused, match=r"of\[0\]"):
        validator.check({"of": ["x"]})
