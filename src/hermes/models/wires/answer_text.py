"""What a model writes into the text of its answer: a leading `<think>` block, and calls that its server left as text.

Calls are looked for only after a probe has shown that the server does not return structured calls. What is found is
validated against the tool's schema like any other call before it runs.
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


_THOUGHT_TAGS = ("think", "thinking", "reasoning", "REASONING_SCRATCHPAD")
_OPENINGS = tuple(f"<{tag}>" for tag in _THOUGHT_TAGS)
_MOST_SPACE = 1_000  # before a block; what begins with more of it is words


class ThinkSplitter:
    """Feed it the pieces of an answer, cut anywhere; it gives back reasoning and words.

    Only a block that opens the answer counts: the same tag further on is something the model talks about.
    """

    _closing = ""  # of the block that is open
    _held = ""
    _decided = False
    is_done = False  # whether all that follows is words

    def feed(self, text: str) -> tuple[str, str]:
        """(reasoning, words) that `text` makes certain."""
        if self.is_done:
            return "", text
        found = self._parted(text)
        self.is_done = self._decided and not self._closing
        return found

    def _parted(self, text: str) -> tuple[str, str]:
        text = self._held + text
        self._held = ""
        if not self._decided:
            start = text.lstrip()
            if start and start[0] != "<":
                self._decided = True
                return "", text
            found = next((opening for opening in _OPENINGS if start.startswith(opening)), None)
            is_open = not start or any(opening.startswith(start) for opening in _OPENINGS)
            if found is None and is_open and len(text) <= _MOST_SPACE:
                self._held = text
                return "", ""
            self._decided = True
            if found is None:
                return "", text
            self._closing = f"</{found[1:]}"
            text = start[len(found) :]
        return self._inside(text)

    def rest(self) -> str:
        """What was held back, at the end of the answer; an unclosed block is reasoning and not given again."""
        held, self._held = self._held, ""
        return "" if self._closing else held

    def _inside(self, text: str) -> tuple[str, str]:
        thought, closing, after = text.partition(self._closing)
        if closing:
            self._closing = ""
            return thought, after.lstrip("\n")
        keep = next((n for n in range(len(self._closing) - 1, 0, -1) if text.endswith(self._closing[:n])), 0)
        self._held = text[len(text) - keep :] if keep else ""
        return text[: len(text) - keep], ""
