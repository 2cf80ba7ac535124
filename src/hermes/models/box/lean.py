"""The lean profile: what a very small model is sent instead of the full prompt and the full tools. Pure."""

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from hermes.seams import ModelRequest, Unit
from hermes.types import JsonObject, Message, ModelResponse, ToolCall, ToolDefinition

MAX_TOOLS = 3
MAX_OUTPUT_TOKENS = 256
MAX_STRING = 160  # characters of an argument: a grammar without a bound lets this model write on for ever
PREFERRED = ("read_file", "search_files", "terminal")
SYSTEM = (
    "You are Hermes, a small assistant on the user's machine. Answer in one or two short sentences. "
    "Call a tool only when the user asks about files or commands."
)
CALL_OPENING = "<tool_call>\n"

_SENTENCE_END = re.compile(r"(?<=[.;:])\s")


def lean_tools(tools: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
    """At most three of `tools`, the most useful ones first, each with what it must be given and no more."""
    by_name = {tool.name: tool for tool in tools}
    chosen = [by_name[name] for name in PREFERRED if name in by_name]
    chosen += [tool for tool in tools if tool.name not in PREFERRED]
    return tuple(
        ToolDefinition(tool.name, _short(tool.description, 80), _lean_schema(tool.parameters))
        for tool in chosen[:MAX_TOOLS]
    )


def lean_request(request: ModelRequest, tools: tuple[ToolDefinition, ...]) -> ModelRequest:
    """`request` with the short prompt, `tools`, and a bounded answer."""
    limit = min(request.options.max_tokens or MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS)
    return replace(request, system=SYSTEM, tools=tools, options=replace(request.options, max_tokens=limit))


def with_call_opened(request: ModelRequest) -> ModelRequest:
    """`request` with the answer begun as a call, where one is required: the grammar alone lets prose come first."""
    if request.options.tool_choice in ("auto", "none") or not request.tools:
        return request
    name, tools = request.options.tool_choice, request.tools
    if name != "required":  # the server knows no named choice, so it is offered that tool alone
        tools = tuple(tool for tool in tools if tool.name == name) or tools
    begun = Unit([Message(role="assistant", content=CALL_OPENING)])
    options = replace(request.options, tool_choice="required")
    return replace(request, tools=tools, units=(*request.units, begun), options=options)


def with_readable_calls(request: ModelRequest) -> ModelRequest:
    """`request` with empty arguments for past calls whose own cannot be parsed, which the server would refuse."""
    if all(_is_readable(unit) for unit in request.units):
        return request
    return replace(request, units=tuple(unit if _is_readable(unit) else _mended(unit) for unit in request.units))


def _is_readable(unit: Unit) -> bool:
    return all(_is_whole(call) for message in unit.messages for call in message.tool_calls)


def _mended(unit: Unit) -> Unit:
    messages = [
        replace(
            message,
            tool_calls=tuple(call if _is_whole(call) else replace(call, arguments="{}") for call in message.tool_calls),
        )
        for message in unit.messages
    ]
    return Unit(messages, unit.context)


def without_cut_call(response: ModelResponse) -> ModelResponse:
    """`response` without a last call that the end of its room cut off, where whole ones come before it.

    The grammar lets call follow call until the room is used up; a bounded first one always fits.
    """
    calls = response.message.tool_calls
    if response.finish_reason != "length" or len(calls) < 2 or _is_whole(calls[-1]):
        return response
    message = replace(response.message, tool_calls=calls[:-1], finish_reason="tool_calls")
    return replace(response, message=message, finish_reason="tool_calls")


def _is_whole(call: ToolCall) -> bool:
    try:
        return isinstance(msgspec.json.decode(call.arguments), dict)
    except (msgspec.DecodeError, RecursionError):
        return False


def _lean_schema(schema: JsonObject) -> JsonObject:
    properties: dict[str, Any] = schema.get("properties") or {}
    required = [name for name in schema.get("required") or () if name in properties]
    kept = required or list(properties)[:1]
    return {
        "type": "object",
        "properties": {name: _lean_property(properties[name]) for name in kept},
        "required": required,
    }


def _lean_property(schema: Any) -> Any:
    """Without prose, and with a bound on every string."""
    if not isinstance(schema, dict):
        return schema
    lean = {
        name: value for name, value in schema.items() if name not in ("description", "title", "default", "examples")
    }
    if lean.get("type") == "string" and "enum" not in lean:
        lean["maxLength"] = min(lean.get("maxLength", MAX_STRING), MAX_STRING)
    if isinstance(lean.get("items"), dict):
        lean |= {"items": _lean_property(lean["items"]), "maxItems": min(lean.get("maxItems", 4), 4)}
    if isinstance(lean.get("properties"), dict):
        lean["properties"] = {name: _lean_property(value) for name, value in lean["properties"].items()}
    return lean


def _short(text: str, limit: int) -> str:
    first = _SENTENCE_END.split(text.strip(), maxsplit=1)[0]
    return first if len(first) <= limit else first[: limit - 1].rsplit(" ", 1)[0] + "…"
