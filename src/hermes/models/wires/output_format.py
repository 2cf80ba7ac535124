"""How each protocol is asked to hold an answer to a schema.

What they take is narrower than JSON Schema, so the schema is widened to that; the whole of it is checked when the
answer is there.
"""

from typing import Any

from hermes.models.endpoint import Endpoint
from hermes.schemas import DIALECTS, Dialect, Unmappable, map_parameters
from hermes.seams import ModelRequest
from hermes.types import JsonObject

NAME = "answer"
_KEYWORDS = frozenset({"type", "description", "title", "properties", "required", "items", "enum", "const", "anyOf"})


def asked_format(request: ModelRequest, endpoint: Endpoint) -> JsonObject:
    """The fields of the request's head that ask for its `output_schema`; none where this server cannot do it.

    Most servers of open models turn a schema into a grammar for all that the model writes, so that it could no longer
    call a tool: there it is asked for only where no tools are offered.
    """
    schema, support = request.options.output_schema, endpoint.quirks.output_format
    if schema is None or support == "none" or (support == "alone" and request.tools):
        return {}
    if (plain := _plain(schema)) is None:
        return {}
    match endpoint.api_mode:
        case "chat_completions":
            named = {"name": NAME, "strict": _is_strict(plain), "schema": plain}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case "codex_responses":
            strict = {"type": "json_schema", "name": NAME, "strict": _is_strict(plain), "schema": plain}
            return {"text": {"format": strict}}
        case "anthropic_messages":
            return {"output_config": {"format": {"type": "json_schema", "schema": plain}}}
        case "bedrock_converse":
            return {}  # which of its models can is not known


def _plain(schema: JsonObject) -> JsonObject | None:
    """The schema in the words that all of them know, every object closed; None for one that is no object."""
    if schema.get("type", "object") != "object":
        return None
    base = DIALECTS["openai"]
    try:
        mapped = map_parameters(schema, Dialect("output", _KEYWORDS, base.tool_name, base.property_name))
    except Unmappable:
        return None
    closed: JsonObject = _closed(mapped)
    return closed if closed.get("properties") else None


def _closed(node: Any) -> Any:
    if isinstance(node, list):
        return [_closed(one) for one in node]
    if not isinstance(node, dict):
        return node
    out = {
        key: {name: _closed(one) for name, one in value.items()}
        if key == "properties"
        else value
        if key in ("enum", "const", "required")
        else _closed(value)
        for key, value in node.items()
    }
    return {**out, "additionalProperties": False} if isinstance(out.get("properties"), dict) else out


def _is_strict(node: Any) -> bool:
    """Whether every object names all its properties as required, which is what strict means there."""
    if isinstance(node, list):
        return all(map(_is_strict, node))
    if not isinstance(node, dict):
        return True
    properties = node.get("properties")
    if node.get("type") == "object" and not isinstance(properties, dict):
        return False
    if isinstance(properties, dict) and set(node.get("required", ())) != set(properties):
        return False
    below = [*(properties or {}).values(), node.get("items"), node.get("anyOf")]
    return all(map(_is_strict, below))
