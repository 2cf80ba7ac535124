"""How each protocol asks for an answer that fits a schema, in the bytes that are sent."""

import json
from typing import Any

import pytest

from hermes.models.endpoint import ApiMode, Endpoint, Quirks
from hermes.models.providers.catalogue import providers
from hermes.models.wires.transport import make_model
from hermes.seams import ModelRequest, RequestOptions, Unit
from hermes.testing.fakes import CannedHttp
from hermes.types import JsonObject, Message, ToolDefinition

TOOLS = (ToolDefinition("look", "Look.", {"type": "object", "properties": {}}),)
STRICT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SENT = {**STRICT, "additionalProperties": False}
LOOSE = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}, "m": {"type": "string"}}}


def head(mode: ApiMode, schema: Any, **more: Any) -> JsonObject:
    """The request as it is sent, decoded."""
    quirks = Quirks(output_format=more.pop("support", "beside_tools"))
    endpoint = Endpoint(base_url="http://127.0.0.1:1", model="claude-opus-4-7", api_mode=mode, quirks=quirks)
    request = ModelRequest(
        system="Be brief.",
        tools=more.pop("tools", TOOLS),
        units=[Unit([Message(role="user", content="Hi")])],
        options=RequestOptions(output_schema=schema, **more),
    )
    found: JsonObject = json.loads(make_model(endpoint, CannedHttp()).body(request))
    return found


def test_each_protocol_has_its_own_field() -> None:
    named = {"name": "answer", "strict": True, "schema": SENT}
    assert head("chat_completions", STRICT)["response_format"] == {"type": "json_schema", "json_schema": named}
    assert head("codex_responses", STRICT)["text"] == {"format": {"type": "json_schema", **named}}
    assert head("anthropic_messages", STRICT)["output_config"] == {"format": {"type": "json_schema", "schema": SENT}}


@pytest.mark.parametrize("mode", ["chat_completions", "codex_responses", "anthropic_messages", "bedrock_converse"])
def test_without_a_schema_nothing_is_asked(mode: ApiMode) -> None:
    assert not {"response_format", "text", "output_config", "outputConfig"} & set(head(mode, None))


def test_the_effort_of_thoughts_stays_beside_the_format() -> None:
    config = head("anthropic_messages", STRICT, reasoning={"effort": "high"})["output_config"]
    assert set(config) == {"effort", "format"}


def test_a_schema_with_optional_fields_is_not_called_strict() -> None:
    named = head("chat_completions", LOOSE)["response_format"]["json_schema"]
    assert (named["strict"], named["schema"]["properties"]["n"]) == (False, {"type": "integer"})


def test_references_are_written_out() -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": STRICT}, "required": ["x"]}
    assert head("chat_completions", schema)["response_format"]["json_schema"]["schema"] == {
        "type": "object",
        "properties": {"x": SENT},
        "required": ["x"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": "object"}, {"type": "string", "enum": ["a"]}])
def test_what_no_provider_takes_is_left_to_the_words(schema: JsonObject) -> None:
    assert "response_format" not in head("chat_completions", schema)


def test_beside_tools_only_who_can_is_asked() -> None:
    assert "response_format" not in head("chat_completions", STRICT, support="alone")
    assert "response_format" in head("chat_completions", STRICT, support="alone", tools=())
    assert "response_format" not in head("chat_completions", STRICT, support="none", tools=())


def test_the_providers_that_can_are_known() -> None:
    able = {name for name, entry in providers().items() if entry.quirks.output_format == "beside_tools"}
    assert able == {"anthropic", "openai", "xai"}
