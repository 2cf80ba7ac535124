"""The session's frozen view of the tools: what is offered, byte for byte the same for the session's whole life."""

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from hermes.errors import ToolError
from hermes.seams import Effects, ToolContext, ToolRules
from hermes.tools.registration.tool_search import BRIDGE, Index, unwrapped
from hermes.tools.registry import Registered, ToolRegistry
from hermes.tools.traits import BARRIER, NO_EFFECTS
from hermes.typed import from_json
from hermes.types import Content, JsonObject, ToolDefinition

if TYPE_CHECKING:
    from hermes.tools.calling.validation import Validator

log = logging.getLogger(__name__)


class SessionView:
    """`ToolView` over definitions that do not move and the registrations behind them.

    A restored view may offer a tool whose code is gone; a call to it is told so, and the prefix stays as it was.
    """

    def __init__(
        self,
        definitions: Iterable[ToolDefinition],
        entries: Mapping[str, Registered],
        deferred: Iterable[ToolDefinition] = (),
    ) -> None:
        self._definitions = tuple(definitions)
        self._deferred = tuple(deferred)  # callable, but found by search instead of being listed
        self._by_name = {definition.name: definition for definition in (*self._definitions, *self._deferred)}
        self._entries = {name: tool for name, tool in entries.items() if name in self._by_name}
        self._names = frozenset(self._by_name)
        self._offered = sorted(self._by_name)
        self._rules = {name: rules_of(tool) for name, tool in self._entries.items()}
        self._validators: dict[str, Validator] = {}
        self._index: Index | None = None
        self._barred: frozenset[str] = frozenset()

    @classmethod
    def of(cls, *tools: Registered) -> "SessionView":
        """A view of exactly these tools, availability unasked."""
        from hermes.tools.registry import offered_schema

        ordered = sorted(tools, key=lambda tool: tool.entry.name)
        return cls(
            (definition_of(offered_schema(tool.entry)) for tool in ordered), {tool.entry.name: tool for tool in ordered}
        )

    def definitions(self) -> tuple[ToolDefinition, ...]:
        return self._definitions

    def everything(self) -> tuple[ToolDefinition, ...]:
        """All that can be called, listed or found by search."""
        return (*self._definitions, *self._deferred)

    def names(self) -> frozenset[str]:
        return self._names

    def barred(self) -> frozenset[str]:
        return self._barred

    def guidance(self) -> tuple[str, ...]:
        tools = [self._entries[one.name] for one in self._definitions if one.name in self._entries]
        return tuple(tool.traits.guidance for tool in tools if tool.traits.guidance)

    def restricted(self, permitted: frozenset[str] | None) -> "SessionView":
        """The same offer, byte for byte, of which only `permitted` tools may run; None is all of them.

        A tool whose code is gone is none of them either way. The search for tools is none that a toolset could name.
        """
        barred = frozenset() if permitted is None else frozenset(self._entries) - permitted - BRIDGE
        if not barred:
            return self
        view = copy(self)
        view._barred = barred
        view._offered = sorted(self._names - barred)
        view._index = None
        return view

    def find(self, name: str) -> Registered | None:
        """The registration behind an offered name."""
        return self._entries.get(name)

    def rules(self, name: str) -> ToolRules:
        return self._rules.get(name) or ToolRules()

    def effects(self, name: str, args: JsonObject, ctx: ToolContext) -> Effects:
        tool = self._entries.get(name)
        if tool is None:
            return NO_EFFECTS if self._deferred and name in BRIDGE else BARRIER
        return effects_of(tool, args, ctx)

    def unwrap(self, name: str, args: JsonObject) -> tuple[str, JsonObject]:
        return unwrapped(name, args) if self._deferred else (name, args)

    def check(self, name: str, args: JsonObject) -> JsonObject:
        """`args` coerced to the offered schema and validated against it; `ToolError` names what does not fit."""
        if name in self._barred:
            raise _switched_off(name)
        return (self._validators.get(name) or self._validator(name)).check(args)

    def _validator(self, name: str) -> "Validator":
        from hermes.tools.calling.validation import Validator  # jsonschema-rs is imported on first use

        definition = self._by_name.get(name)
        if definition is None:
            raise ToolError(f"Unknown tool: {name}")
        tool = self._entries.get(name)
        closed = tool is not None and tool.origin == "builtin"
        self._validators[name] = made = Validator(definition.parameters, closed=closed)
        return made

    def call(self, name: str, args: JsonObject, ctx: ToolContext) -> Coroutine[Any, Any, Content]:
        if name in self._barred:  # however it came here: nested calls and the search for tools end here, too
            raise _switched_off(name)
        tool = self._entries.get(name)
        return self._searched(name, args) if tool is None else _invoke()(tool, args, ctx, self._offered)

    async def _searched(self, name: str, args: JsonObject) -> str:
        """The answer of the search for tools that are not listed; an error for every other tool without code."""
        if self._deferred and name in BRIDGE:
            if self._index is None:
                self._index = Index(one for one in self._deferred if one.name not in self._barred)
            return self._index.answer(name, args)
        if name in self._by_name:
            raise ToolError(
                f"tool {name!r} was offered when this session began but is not installed now; go on without it, "
                "and tell the user"
            )
        raise ToolError(f"Unknown tool: {name}")

    def to_json(self) -> str:
        """The definitions as canonical text; stored with the session."""
        if not self._deferred:
            return msgspec.json.encode(self._definitions).decode()
        return msgspec.json.encode(_Stored(self._definitions, self._deferred)).decode()

    @classmethod
    def from_json(
        cls, text: str, tools: ToolRegistry | Mapping[str, Registered], overlay: Mapping[str, Registered] | None = None
    ) -> "SessionView":
        """The view that `to_json` wrote, over the tools of this process."""
        stored = from_json(text, _Stored | tuple[ToolDefinition, ...])
        if not isinstance(stored, _Stored):
            stored = _Stored(stored)
        entries = tools.snapshot() if isinstance(tools, ToolRegistry) else dict(tools)
        return cls(stored.offered, {**entries, **(overlay or {})}, stored.deferred)


@cache  # the statement costs as much as a hundred others, also when all is imported
def _invoke() -> Callable[[Registered, JsonObject, ToolContext, list[str]], Coroutine[Any, Any, Content]]:
    from hermes.tools.calling.dispatch import invoke  # a view that is only shown needs no pipeline

    return invoke


def _switched_off(name: str) -> ToolError:
    return ToolError(
        f"{name} is switched off: the toolsets of this run leave it out, so nothing was run. Go on without it, and "
        "tell the user if the task needs it"
    )


class _Stored(Struct, frozen=True):
    """A view whose tools are not all listed, as it is stored."""

    offered: tuple[ToolDefinition, ...]
    deferred: tuple[ToolDefinition, ...] = ()


def definition_of(schema: JsonObject) -> ToolDefinition:
    """A function schema as the vocabulary's struct; a missing parameter object means no parameters."""
    parameters = schema.get("parameters")
    if not isinstance(parameters, dict):
        parameters = {"type": "object", "properties": {}}
    return ToolDefinition(str(schema["name"]), str(schema.get("description") or ""), parameters)


def effects_of(tool: Registered, args: JsonObject, ctx: ToolContext) -> Effects:
    """What a call reads and writes, as the tool declares it; a barrier when it does not."""
    if tool.traits.effects is None or tool.traits.interactive:
        return BARRIER
    try:
        return tool.traits.effects(args, ctx)
    except Exception:  # the border to a tool author's code; unknown effects run alone
        log.warning("the declared effects of tool %r failed; the call runs alone", tool.entry.name, exc_info=True)
        return BARRIER


def rules_of(tool: Registered) -> ToolRules:
    """The rules that follow from a registration."""
    traits = tool.traits
    limit = tool.entry.max_result_size_chars
    return ToolRules(
        toolset=tool.entry.toolset,
        interactive=traits.interactive,
        agent_loop=traits.agent_loop,
        read_only=traits.read_only,
        edits=traits.edits,
        provenance=traits.provenance or ("mcp" if tool.entry.toolset.startswith("mcp-") else ""),
        timeout_s=None if traits.interactive else traits.timeout_s,
        max_result_chars=limit if limit is not None else 100_000,
        spill=traits.spill,
    )
