"""Write docs/api.md: every name that may be relied upon, with its parameters. A test holds the page to the code.

python scripts/api_page.py
"""

import importlib
import inspect
import typing
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
HEAD = """# The public API

What is listed here keeps its name, its place and its parameters: code written against it goes on working. Everything
else in `hermes` may move or change with any version. The names of commands, options, settings, tools and exit codes are
promised, too; `hermes --help`, [Configuration](configuration.md) and [Tools](tools.md) list them.

This page is made from the code by `scripts/api_page.py`, and a test holds it to the code; a line that changes here is a
change that a user may notice, and has a line in the changelog.
"""
ALL = ()  # every name the module exports, or defines

PUBLIC: dict[str, tuple[str, tuple[str, ...]]] = {
    "hermes": ("The agent itself: [The library](library.md); `help(AIAgent)` explains each keyword.", ALL),
    "hermes.model_tools": ("Tools without an agent: their definitions, and a call by name.", ALL),
    "hermes.toolsets": ("Groups of tools.", ALL),
    "hermes.tools.decorator": ("Write a tool as a function: [Tools](tools.md).", ("tool",)),
    "hermes.tools.traits": (
        "What a tool says about itself.",
        ("Needs", "Traits", "reads_file", "touches_nothing"),
    ),
    "hermes.tools.registry": ("Where tools register themselves.", ("ToolRegistry", "registry")),
    "hermes.tools.approval": ("What a command would do, and whether it may: [Approvals](approvals.md).", ALL),
    "hermes.tools.mcp": (
        "Tools of MCP servers, in the registry: [MCP servers](mcp.md).",
        ("discover_mcp_tools", "is_mcp_tool_parallel_safe", "shutdown_mcp_servers"),
    ),
    "hermes.tools.approval.policy": ("The rules, as a value.", ("Grant", "Policy", "PolicyRule")),
    "hermes.tools.approval.decide": ("The pure decision.", ("Context", "Verdict", "decide")),
    "hermes.runtime.parts": (
        "Capabilities that join an agent: [The way of a turn](architecture.md#adding-things).",
        ("PARTS", "Joining", "Part", "TurnFacts"),
    ),
    "hermes.runtime.guardrails": ("Model calls that several agents share.", ("IterationBudget",)),
    "hermes.host.host": ("Live sessions for surfaces: [The host](host.md).", ("Host",)),
    "hermes.host.hosted_session": ("What one is opened with.", ("SessionStart",)),
    "hermes.host.agent_settings": ("What it asks of its agent.", ("AgentSettings",)),
    "hermes.host.events": (
        "What its listeners are told beside the events of `hermes.types`.",
        ("LiveEvent", "TurnEnded"),
    ),
    "hermes.state": ("Sessions, and the store under them: [Sessions](sessions.md).", ALL),
    "hermes.context": ("How long conversations are kept within the window: [Long conversations](context.md).", ALL),
    "hermes.context.memory.provider": (
        "Who recalls earlier sessions: [Memory](memory.md#a-provider-of-your-own).",
        ("PROVIDERS", "MemoryProvider", "ProviderHome"),
    ),
    "hermes.context.checkpoints": ("Snapshots: [Files and checkpoints](files-and-checkpoints.md).", ALL),
    "hermes.config.load": ("The settings in force.", ("load_settings",)),
    "hermes.config.paths": ("Where things are kept.", ("hermes_home",)),
    "hermes.redact": ("Secrets taken out of texts.", ("Redactor",)),
    "hermes.types": ("Messages, results and events.", ALL),
    "hermes.errors": ("What is raised.", ALL),
    "hermes.seams": ("What another implementation of a part has to be.", ALL),
    "hermes.testing": ("Tests without a model: [Testing](testing.md).", ALL),
    "hermes.testing.server": ("A scripted provider over HTTP.", ALL),
    "hermes.testing.workplace": ("Contexts and environments for tests of tools.", ("FakeContext", "MemoryEnvironment")),
    "hermes.compat": ("Run what was written for Hermes Agent: [Compatibility](compatibility.md).", ALL),
}


def public_names(module: str) -> list[str]:
    """The names of a module that are promised."""
    listed = PUBLIC[module][1]
    if listed:
        return sorted(listed)
    loaded = importlib.import_module(module)
    if hasattr(loaded, "__all__"):
        return sorted(loaded.__all__)
    kept = {name: value for name, value in vars(loaded).items() if not isinstance(value, typing.TypeVar)}
    own = {name for name, value in kept.items() if getattr(value, "__module__", "") == module}
    aliases = {name for name, kind in getattr(loaded, "__annotations__", {}).items() if "TypeAlias" in str(kind)}
    return sorted(name for name in own | aliases if not name.startswith("_"))


def page() -> str:
    """The whole of docs/api.md."""
    parts = [HEAD]
    for module, (told, _) in PUBLIC.items():
        parts.append(f"\n## `{module}`\n\n{told}\n\n| name | what it is |\n|---|---|\n")
        loaded = importlib.import_module(module)
        for name in public_names(module):
            parts += [f"| {left} | {right} |\n" for left, right in _rows(name, getattr(loaded, name))]
    return "".join(parts)


def _rows(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if inspect.isclass(value):
        yield f"`{name}{_parameters(value)}`", _sentence(value)
        for attribute in sorted(_members(value)):
            found = inspect.getattr_static(value, attribute)
            bound = getattr(value, attribute)
            shown = "" if isinstance(found, property) or not callable(bound) else _parameters(bound, found)
            yield f"`{name}.{attribute}{shown}`", _sentence(found.fget if isinstance(found, property) else bound)
    elif inspect.isfunction(value):
        yield f"`{name}{_parameters(value)}`", _sentence(value)
    else:
        kind = type(value)
        is_plain = kind.__module__ in ("builtins", "typing", "types", "collections")
        yield f"`{name}`", "" if is_plain else f"a `{kind.__name__}`"


def _members(value: type) -> set[str]:
    """Methods and properties that the class or one of ours above it defines."""
    if issubclass(value, BaseException):
        return set()
    ours = [each for each in value.__mro__ if each.__module__.startswith("hermes")]
    return {
        name
        for each in ours
        for name, found in vars(each).items()
        if not name.startswith("_")
        and (inspect.isfunction(found) or isinstance(found, property | classmethod | staticmethod))
    }


def _parameters(value: Any, found: Any = None) -> str:
    if inspect.isclass(value) and issubclass(value, Enum):
        return f": {', '.join(value.__members__)}"
    if inspect.isclass(value) and (typing.is_typeddict(value) or getattr(value, "_is_protocol", False)):
        return ""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return ""
    except NameError:  # a struct whose types are imported for the type checker alone
        return f"(*, {', '.join(value.__struct_fields__)})"
    given = list(signature.parameters.values())
    if inspect.isfunction(found):  # in a class: what it is called on is not given
        given = given[1:]
    shown: list[str] = []
    is_named = False
    for one in given:
        if one.kind is one.KEYWORD_ONLY and not is_named:
            is_named = True
            if not any(each.startswith("*") for each in shown):
                shown.append("*")
        mark = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        default = "" if one.default is one.empty else f"={_default(one.default)}"
        shown.append(f"{mark}{one.name}{default}")
    return f"({', '.join(shown)})"


def _default(value: Any) -> str:
    is_plain = value is None or isinstance(value, bool | int | float | str) or value == ()
    return repr(value).replace("|", "\\|") if is_plain else "…"


def _sentence(value: Any) -> str:
    """The first line of the docstring."""
    doc = getattr(value, "__doc__", None) or ""
    return doc.strip().split("\n\n", 1)[0].replace("\n", " ").replace("|", "\\|").strip() if doc else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
