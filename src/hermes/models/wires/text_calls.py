"""Tool calls that a model wrote as text, for local servers that do not turn them into calls themselves.

Used only after a probe has shown that the server does not return structured calls. What is found here is validated
against the tool's schema like any other call before it runs.
"""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from hermes.models.wires.answer_values import arguments_text, is_deep

_any_json = msgspec.json.Decoder()

# A block is found by its two ends, which are searched for as plain text: a pattern that tries every opening against all
# that follows takes hours for an answer that is nothing but openings.
_TAGS = ("tool_call", "function_call", "tools", "tool")
_NAMED = re.compile(r"<function=([\w.-]{1,256})>")
_PARAMETER = re.compile(r"<parameter=([\w.-]{1,256})>")
_FENCE = re.compile(r"```(?:json|tool_call|tool_code)?[ \t]*\n")
_MISTRAL = "[TOOL_CALLS]"
_LLAMA = "<|python_tag|>"
_LLAMA_ENDS = ("<|eom_id|>", "<|eot_id|>")

Found: TypeAlias = tuple[str, list[tuple[str, str]]]  # the words around the calls, and the calls


def parse_text_calls(text: str) -> Found:
    """The words left over, and the calls as (name, arguments as JSON text). Without any call, `text` as it is."""
    for find in (_tagged, _marked, _named, _fenced):
        words, calls = find(text)
        if calls:
            return words.strip(), calls
    calls = list(_calls(text.strip()))
    return ("", calls) if calls else (text, [])


def _tagged(text: str) -> Found:
    calls: list[tuple[str, str]] = []
    for tag in _TAGS:
        text, blocks = _blocks(text, re.compile(f"<{tag}>"), f"</{tag}>")
        for _, inside in blocks:
            calls += _named(inside)[1][:1] or _calls(inside.strip())
    return text, calls


def _named(text: str) -> Found:
    words, blocks = _blocks(text, _NAMED, "</function>")
    return words, [(opening[1], _parameters(inside)) for opening, inside in blocks]


def _marked(text: str) -> Found:
    """A list after a mark, up to the end of the answer."""
    for mark in (_MISTRAL, _LLAMA):
        words, found, rest = text.partition(mark)
        for end in _LLAMA_ENDS:
            rest = rest.strip().removesuffix(end)
        if found and (calls := list(_calls(rest.strip()))):
            return words, calls
    return text, []


def _fenced(text: str) -> Found:
    words, blocks = _blocks(text, _FENCE, "\n```", lambda inside: any(_calls(inside)))
    return words, [call for _, inside in blocks for call in _calls(inside)]


def _blocks(
    text: str, opening: re.Pattern[str], closing: str, is_wanted: Callable[[str], bool] = lambda _: True
) -> tuple[str, list[tuple[re.Match[str], str]]]:
    """What stands outside of the blocks, and each block with its opening. An opening that is not closed is text."""
    outside: list[str] = []
    blocks: list[tuple[re.Match[str], str]] = []
    at = 0
    while (found := opening.search(text, at)) is not None and (end := text.find(closing, found.end())) >= 0:
        inside = text[found.end() : end]
        wanted = is_wanted(inside)
        if wanted:
            blocks.append((found, inside))
        outside.append(text[at : found.start() if wanted else end + len(closing)])
        at = end + len(closing)
    return "".join((*outside, text[at:])), blocks


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
        if isinstance(arguments, dict | str):
            yield inner["name"], arguments_text(arguments)


def _parameters(text: str) -> str:
    """The arguments inside `<function=…>`: a JSON object, or one element per parameter."""
    _, blocks = _blocks(text, _PARAMETER, "</parameter>")
    parameters = {opening[1]: _value(inside.strip()) for opening, inside in blocks}
    if parameters or not text.strip():
        return msgspec.json.encode(parameters).decode()
    return text.strip()


def _value(text: str) -> object:
    """A parameter's value: numbers, booleans, lists and objects as such, all else as the text it is."""
    try:
        found: object = _any_json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
    return text if isinstance(found, str) or is_deep(found) else found
