"""Tool calls that a model wrote as text, for local servers that do not turn them into calls themselves.

Used only after a probe has shown that the server does not return structured calls. What is found here is validated
against the tool's schema like any other call before it runs.
"""

import re
from collections.abc import Iterator

import msgspec

_any_json = msgspec.json.Decoder()

# Each finds the span of one call or list of calls, with the JSON or its parts as groups.
_TAGGED = r"(?s)<(tool_call|function_call|tools?)>\s*(.*?)\s*</\1>"
_NAMED = r"(?s)<function=([\w.-]+)>\s*(.*?)\s*</function>"
_PARAMETER = r"(?s)<parameter=([\w.-]+)>\s*(.*?)\s*</parameter>"
_MISTRAL = r"(?s)\[TOOL_CALLS\]\s*(\[.*\])\s*$"
_LLAMA = r"(?s)<\|python_tag\|>\s*(\{.*\})\s*(?:<\|eom_id\|>|<\|eot_id\|>)?\s*$"
_FENCED = r"(?s)```(?:json|tool_call|tool_code)?\s*\n(\{.*?\}|\[.*?\])\s*\n```"
_BARE = r"(?s)\s*(\{.*\}|\[\s*\{.*\}\s*\])\s*"


def parse_text_calls(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The words left over, and the calls as (name, arguments as JSON text). Without any call, `text` as it is."""
    for pattern, group in ((_TAGGED, 2), (_MISTRAL, 1), (_LLAMA, 1)):
        calls, rest = _taken(pattern, group, text)
        if calls:
            return rest, calls
    named = [(found[1], _parameters(found[2])) for found in re.finditer(_NAMED, text)]
    if named:
        return re.sub(_NAMED, "", text).strip(), named
    calls, rest = _taken(_FENCED, 1, text)
    if calls:
        return rest, calls
    whole = re.fullmatch(_BARE, text)
    calls = list(_calls(whole[1])) if whole else []
    return ("", calls) if calls else (text, [])


def _taken(pattern: str, group: int, text: str) -> tuple[list[tuple[str, str]], str]:
    calls: list[tuple[str, str]] = []
    for found in re.finditer(pattern, text):
        named = re.search(_NAMED, found[group])
        if named:
            calls.append((named[1], _parameters(named[2])))
        else:
            calls += _calls(found[group])
    return calls, re.sub(pattern, "", text).strip() if calls else text


def _calls(text: str) -> Iterator[tuple[str, str]]:
    """Calls in a JSON object or list; anything that does not clearly name a tool and its arguments is none."""
    try:
        found = _any_json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return
    for one in found if isinstance(found, list) else [found]:
        inner = one.get("function") if isinstance(one, dict) and isinstance(one.get("function"), dict) else one
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            continue
        arguments = inner.get("arguments", inner.get("parameters"))
        if isinstance(arguments, dict):
            yield inner["name"], msgspec.json.encode(arguments).decode()
        elif isinstance(arguments, str):
            yield inner["name"], arguments


def _parameters(text: str) -> str:
    """The arguments inside `<function=…>`: a JSON object, or one element per parameter."""
    parameters = {found[1]: _value(found[2]) for found in re.finditer(_PARAMETER, text)}
    if parameters or not text.strip():
        return msgspec.json.encode(parameters).decode()
    return text


def _value(text: str) -> object:
    """A parameter's value: numbers, booleans, lists and objects as such, all else as the text it is."""
    try:
        found: object = _any_json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
    return text if isinstance(found, str) else found
