"""Tools that are found by search instead of being listed: hundreds of them cost a few hundred tokens.

When the definitions of MCP and plugin tools would take more than a share of the model's window, a session is offered
three tools in their place: `tool_search`, `tool_describe` and `tool_call`. What they find is appended to the
conversation, so the prompt's prefix stays as it is; nothing is started to search.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from hermes.errors import ToolError
from hermes.tools.calling.arguments import parse_args, schema_of
from hermes.tools.registry import Registered, tool_result
from hermes.types import JsonObject, ToolDefinition

SEARCH, DESCRIBE, CALL = "tool_search", "tool_describe", "tool_call"
BRIDGE = frozenset({SEARCH, DESCRIBE, CALL})
DEFERRED_ORIGINS = frozenset({"mcp", "plugin", "code"})
CHARS_PER_TOKEN = 4
MOST_LISTED_TOKENS = 10_000  # however large the window is
_MAX_LIMIT = 20
_WORD = r"[a-z]+|\d+"
_CAMEL = r"(?<=[a-z0-9])(?=[A-Z])"
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ed", "es", "s")
_PLAIN_WORDS = frozenset(
    {
        "a", "an", "and", "as", "at", "be", "by", "for", "from", "i", "in", "into", "is", "it", "me", "my", "of", "on",
        "or", "that", "the", "this", "to", "with",
    }
)  # fmt: skip


class DeferredTools(Struct, frozen=True, forbid_unknown_fields=True):
    """Find further tools by what they do. They are not listed here; search before you say something cannot be done."""

    query: Annotated[str, Meta(description="What you want to do, in a few words.")]
    limit: Annotated[int, Meta(ge=1, le=_MAX_LIMIT, description="How many to show.")] = 5


class ToolDescribe(Struct, frozen=True, forbid_unknown_fields=True):
    """Show the arguments of a tool that tool_search found."""

    name: Annotated[str, Meta(description="Its name.")]


class ToolCallArgs(Struct, frozen=True, forbid_unknown_fields=True):
    """Call a tool that tool_search found."""

    name: Annotated[str, Meta(description="Its name.")]
    arguments: Annotated[dict[str, Any], Meta(description="Its arguments, as tool_describe shows them.")] = {}


def bridge_definitions() -> list[ToolDefinition]:
    """The three tools as they are offered."""
    schemas = (
        schema_of(CALL, ToolCallArgs),
        schema_of(DESCRIBE, ToolDescribe),
        schema_of(SEARCH, DeferredTools),
    )
    return [ToolDefinition(one["name"], one["description"], one["parameters"]) for one in schemas]


def divided(
    definitions: Sequence[ToolDefinition],
    tools: Mapping[str, Registered],
    settings: Mapping[str, Any],
    window_tokens: int,
) -> tuple[list[ToolDefinition], list[ToolDefinition]]:
    """What is listed and what is found by search. Built-ins and the user's own tools are always listed."""
    section = settings.get("tools")
    wish = section.get("tool_search") if isinstance(section, Mapping) else None
    wish = wish if isinstance(wish, Mapping) else {}
    enabled = wish.get("enabled", "auto")
    far = [one for one in definitions if one.name in tools and tools[one.name].origin in DEFERRED_ORIGINS]
    size_tokens = sum(len(msgspec.json.encode(one)) for one in far) / CHARS_PER_TOKEN
    limit = min(window_tokens * float(wish.get("threshold_pct", 10)) / 100, MOST_LISTED_TOKENS)
    if enabled in (False, "off", "false") or not far or (enabled == "auto" and size_tokens <= limit):
        return list(definitions), []
    names = {one.name for one in far}
    near = [one for one in definitions if one.name not in names]
    return sorted([*near, *bridge_definitions()], key=lambda one: one.name), far


def unwrapped(name: str, args: JsonObject) -> tuple[str, JsonObject]:
    """The call inside a `tool_call`; any other call as it is."""
    if name != CALL:
        return name, args
    inner = args.get("arguments") or {}
    if isinstance(inner, str):  # an object that was written once more as a text
        from hermes.tools.results.tool_result import as_object  # rare

        inner = as_object(inner)
    if not isinstance(args.get("name"), str) or not isinstance(inner, dict):
        raise ToolError("tool_call needs `name`, a string, and `arguments`, an object")
    if args["name"] in BRIDGE:
        raise ToolError(f"{args['name']} is called directly, not through tool_call")
    return str(args["name"]), inner


class Index:
    """The tools found by search, ranked by the words of their names, descriptions and arguments."""

    def __init__(self, definitions: Iterable[ToolDefinition]) -> None:
        self._definitions = {one.name: one for one in definitions}
        self._words = {name: _weighted(one) for name, one in self._definitions.items()}
        holders = Counter(word for words in self._words.values() for word in words)
        total = len(self._words)
        self._rarity = {word: math.log(1 + (total - count + 0.5) / (count + 0.5)) for word, count in holders.items()}
        self._mean = sum(sum(words.values()) for words in self._words.values()) / total if total else 1.0

    def answer(self, name: str, args: Mapping[str, object]) -> str:
        """The result of `tool_search` or `tool_describe`."""
        if name == DESCRIBE:
            wanted = self._definitions.get(parse_args(args, ToolDescribe).name)
            if wanted is None:
                raise ToolError(f"no tool {args.get('name')!r}; find it with tool_search")
            return tool_result(name=wanted.name, description=wanted.description, parameters=wanted.parameters)
        asked = parse_args(args, DeferredTools)
        found = self.search(asked.query, asked.limit)
        return tool_result(
            tools=[{"name": one.name, "description": one.description[:300]} for one in found],
            total=len(self._definitions),
        )

    def search(self, query: str, limit: int = 5) -> list[ToolDefinition]:
        """The best matches, best first; none when no word of the query is known."""
        wanted = set(_words(query)) - _PLAIN_WORDS
        scores = {name: self._score(wanted, words) for name, words in self._words.items()}
        best = sorted((name for name, score in scores.items() if score > 0), key=lambda name: (-scores[name], name))
        return [self._definitions[name] for name in best[:limit]]

    def _score(self, wanted: Iterable[str], words: Counter[str]) -> float:
        length = 0.25 + 0.75 * sum(words.values()) / self._mean
        return sum(
            self._rarity[word] * words[word] * 2.2 / (words[word] + 1.2 * length) for word in wanted if word in words
        )


def _weighted(one: ToolDefinition) -> Counter[str]:
    """A tool's words: those of its name count three times, those of its arguments once, the description's once."""
    words = Counter(_words(one.name) * 3)
    words.update(_words(one.description))
    properties = one.parameters.get("properties")
    if isinstance(properties, Mapping):
        for name, about in properties.items():
            words.update(_words(str(name)))
            if isinstance(about, Mapping) and isinstance(about.get("description"), str):
                words.update(_words(about["description"]))
    for word in _PLAIN_WORDS:
        words.pop(word, None)
    return words


def _words(text: str) -> list[str]:
    return [_stem(word) for word in re.findall(_WORD, re.sub(_CAMEL, " ", text).lower())]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word.rstrip("e") if len(word) > 4 else word
