"""`@tool`: one function is a whole tool; its name, type hints and docstring are what the model sees."""

import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, TypeVar

import msgspec

from hermes.errors import ToolError
from hermes.tools.calling.arguments import parameters_of
from hermes.tools.registry import Check, registry
from hermes.tools.traits import Traits
from hermes.typed import convert
from hermes.types import JsonObject

F = TypeVar("F", bound=Callable[..., Any])

_GIVEN = frozenset({"ctx", "task_id", "user_task", "session_id", "tool_call_id", "enabled_tools"})
_ARGUMENT = re.compile(r"^\s{2,}(\w+)(?:\s*\([^)]*\))?:\s+(.+)$")


def tool(
    *bare: object,
    toolset: str = "",
    name: str | None = None,
    check_fn: Check | None = None,
    emoji: str = "",
    max_result_size_chars: float | None = None,
    traits: Traits | None = None,
) -> Callable[[F], F]:
    """Register the function below as a tool. It stays an ordinary function.

    Parameters become the tool's arguments, with types from their hints and words from the docstring's `Args:` part
    or from `Annotated[..., Meta(description=...)]`. Parameters named `ctx`, `task_id`, `user_task`, `session_id`,
    `tool_call_id` or `enabled_tools` are filled in by the runtime. A returned string is the result as it is; any
    other value is sent as JSON.
    """
    if bare or not toolset:
        raise TypeError('write @tool(toolset="NAME") above the function: each tool belongs to a toolset')

    def register(function: F) -> F:
        tool_name = name or function.__name__
        kind, given = _arguments(function)
        try:
            parameters = parameters_of(kind)
        except TypeError as error:
            reason = str(error).splitlines()[-1]
            raise TypeError(
                f"{function.__name__}() takes something that a model cannot write: {reason}; use str, int, float, "
                "bool, list, dict, Literal, an Enum or a dataclass"
            ) from error
        description, words = _docstring(function)
        for field, text in words.items():
            if field in parameters["properties"]:
                parameters["properties"][field].setdefault("description", text)
        parameters.pop("description", None)
        registry.register(
            name=tool_name,
            toolset=toolset,
            schema={"name": tool_name, "description": description, "parameters": parameters},
            handler=_handler(function, kind, given),
            check_fn=check_fn,
            is_async=inspect.iscoroutinefunction(function),
            emoji=emoji,
            max_result_size_chars=max_result_size_chars,
            traits=traits,
        )
        return function

    return register


def _arguments(function: Callable[..., Any]) -> tuple[type[msgspec.Struct], frozenset[str]]:
    """A struct with a field per argument, and the parameters that the runtime fills in."""
    hints = typing.get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any, Any]] = []
    given: set[str] = set()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"a tool's parameters must have names; {function.__name__}() has {parameter}")
        if parameter.name in _GIVEN:
            given.add(parameter.name)
            continue
        if parameter.name not in hints:
            raise TypeError(f"the parameter {parameter.name!r} of {function.__name__}() needs a type hint")
        default = msgspec.NODEFAULT if parameter.default is parameter.empty else parameter.default
        if isinstance(default, list | dict | set) and default:
            default = msgspec.field(default_factory=partial(deepcopy, default))
        fields.append((parameter.name, hints[parameter.name], default))
    kind = msgspec.defstruct(
        function.__name__,
        [(name, hint) if default is msgspec.NODEFAULT else (name, hint, default) for name, hint, default in fields],
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    return kind, frozenset(given)


def _handler(function: Callable[..., Any], kind: type[msgspec.Struct], given: frozenset[str]) -> Callable[..., Any]:
    names = kind.__struct_fields__

    def keywords(args: Mapping[str, object], more: JsonObject) -> JsonObject:
        try:
            parsed = convert(args, kind)
        except msgspec.ValidationError as error:
            raise ToolError(f"bad arguments: {error}") from error
        return {**{name: getattr(parsed, name) for name in names}, **{key: more.get(key) for key in given}}

    if inspect.iscoroutinefunction(function):

        async def handle_async(args: Mapping[str, object], **more: Any) -> Any:
            return _as_text(await function(**keywords(args, more)))

        handle: Callable[..., Any] = handle_async
    else:

        def handle_sync(args: Mapping[str, object], **more: Any) -> Any:
            return _as_text(function(**keywords(args, more)))

        handle = handle_sync
    handle.__module__, handle.__qualname__ = function.__module__, function.__qualname__
    handle.__signature__ = _signature(given)  # type: ignore[attr-defined]  # tells dispatch which keywords to hand over
    return handle


def _signature(given: frozenset[str]) -> inspect.Signature:
    first = inspect.Parameter("args", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature(
        [first, *(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in sorted(given))]
    )


def _as_text(value: Any) -> Any:
    if isinstance(value, str | tuple) or (isinstance(value, dict) and value.get("_multimodal") is True):
        return value
    return json.dumps(msgspec.to_builtins(value, enc_hook=str), ensure_ascii=False)


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The text before `Args:`, and what it says of each argument."""
    doc = inspect.getdoc(function) or ""
    if not doc:
        raise TypeError(f"{function.__name__}() needs a docstring: it is what the model reads")
    before, _, after = doc.partition("\nArgs:\n")
    words: dict[str, str] = {}
    last = ""
    for line in after.splitlines():
        found = _ARGUMENT.match(line)
        if found:
            last = found[1]
            words[last] = found[2].strip()
        elif last and line.startswith("      ") and line.strip():
            words[last] += " " + line.strip()
        elif line.strip():
            break  # another part of the docstring, such as Returns:
    return before.strip(), words
