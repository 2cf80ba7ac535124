"""From what a server said about its tools to what a model is offered: chosen, capped, cleaned, and never trusted."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from hermes.seams import ToolContext
from hermes.tools.mcp.manifest import ServerManifest, ToolRecord
from hermes.tools.mcp.server_config import ServerConfig
from hermes.tools.mcp.tool_names import offered_names
from hermes.tools.registry import Registered, ToolEntry
from hermes.tools.traits import Traits, touches_nothing
from hermes.types import Content, JsonObject

MAX_DESCRIPTION = 4000
MAX_SCHEMA_BYTES = 64 * 1024
MAX_TOOLS = 2000
MAX_DEPTH = 40
CHARS_PER_TOKEN = 4
WITHHELD = "(its description is withheld: it reads like orders to the model)"
UTILITIES: dict[str, tuple[str, JsonObject]] = {
    "list_resources": ("List the resources of the MCP server {server}.", {}),
    "read_resource": (
        "Read a resource of the MCP server {server}.",
        {"uri": {"type": "string", "description": "Its address, as list_resources shows it."}},
    ),
    "list_prompts": ("List the prompts that the MCP server {server} has ready.", {}),
    "get_prompt": (
        "Get a prompt of the MCP server {server}.",
        {
            "name": {"type": "string", "description": "Its name, as list_prompts shows it."},
            "arguments": {"type": "object", "description": "What it is to be filled in with."},
        },
    ),
}
# The time limit of a call is kept by the server's owner, who stops the clock while a person is asked.
ALONE = Traits(effects=None, provenance="mcp", timeout_s=None)
OVERLAPPING = Traits(effects=touches_nothing, provenance="mcp", timeout_s=None)
_REQUIRED = {"read_resource": ["uri"], "get_prompt": ["name"]}

Scan = Callable[[str], object]
"""What is wrong with a text for a model, in words; None for nothing."""


class McpCall(Struct, frozen=True, kw_only=True):
    """A call of a tool of a server, by the server's own name for it; `utility` for one of the four that are ours."""

    tool: str
    offered: str
    args: JsonObject
    utility: bool = False


class McpCaller(Protocol):
    """Who reaches a server."""

    def call(self, server: str, asked: McpCall, ctx: ToolContext) -> Coroutine[Any, Any, Content]: ...


class OfferedTool(Struct, frozen=True, kw_only=True):
    """A tool as it is offered, with the way back to its server."""

    server: str
    tool: str  # the server's own name
    name: str  # as models see it
    description: str
    parameters: JsonObject
    utility: bool = False
    findings: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """What offering it costs, about."""
        shown = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return -(-len(msgspec.json.encode(shown)) // CHARS_PER_TOKEN)


def is_chosen(config: ServerConfig, tool: str) -> bool:
    """Whether the settings want this tool."""
    choice = config.entry.tools
    return tool in choice.include if choice.include else tool not in choice.exclude


def offered_tools(config: ServerConfig, manifest: ServerManifest, scan: Scan) -> list[OfferedTool]:
    """What is offered of a server: its chosen tools, and utilities for what else it has."""
    chosen = [tool for tool in manifest.tools if is_chosen(config, tool.name)][:MAX_TOOLS]
    utilities = [] if not manifest.has_resources or not config.entry.tools.resources else ["list_resources"]
    utilities += ["read_resource"] if utilities else []
    if manifest.has_prompts and config.entry.tools.prompts:
        utilities += ["list_prompts", "get_prompt"]
    # All words of a server at once: where nothing is found in them, no tool has to be looked through by itself.
    if not scan("\n".join(words for tool in chosen for words in (tool.description, _words_of(tool.parameters)))):
        scan = _nothing_found
    names = offered_names(config.name, [tool.name for tool in chosen])
    taken = set(names.values())
    made = [_offered(config.name, tool, names[tool.name], scan) for tool in chosen]
    for utility in utilities:
        name = offered_names(config.name, [utility])[utility]
        if name not in taken:  # a tool of the server's own wins
            words, properties = UTILITIES[utility]
            parameters: JsonObject = {"type": "object", "properties": properties}
            if utility in _REQUIRED:
                parameters["required"] = _REQUIRED[utility]
            made.append(
                OfferedTool(
                    server=config.name,
                    tool=utility,
                    name=name,
                    description=words.format(server=config.name),
                    parameters=parameters,
                    utility=True,
                )
            )
    return made


def _nothing_found(_: str) -> None:
    return None


def _offered(server: str, tool: ToolRecord, name: str, scan: Scan) -> OfferedTool:
    parameters = normal_schema(tool.parameters)
    found = [f"description: {finding}" if (finding := scan(tool.description)) else ""]
    spoken = "" if scan is _nothing_found else _words_of(parameters)
    found += [f"parameters: {finding}" if (finding := scan(spoken)) else ""]
    description = WITHHELD if found[0] else tool.description[:MAX_DESCRIPTION]
    if found[1]:
        parameters = without_words(parameters)
    return OfferedTool(
        server=server,
        tool=tool.name,
        name=name,
        description=description or f"{tool.name} of the MCP server {server}.",
        parameters=parameters,
        findings=tuple(filter(None, found)),
    )


def registration(offered: OfferedTool, config: ServerConfig, caller: McpCaller) -> Registered:
    """The entry of a registry for it; its calls go to `caller`."""

    def handler(args: JsonObject, *, ctx: ToolContext, **_: object) -> Awaitable[Content]:
        asked = McpCall(tool=offered.tool, offered=offered.name, args=args, utility=offered.utility)
        return caller.call(offered.server, asked, ctx)

    schema = {"name": offered.name, "description": offered.description, "parameters": offered.parameters}
    traits = OVERLAPPING if config.entry.supports_parallel_tool_calls else ALONE
    entry = ToolEntry(offered.name, config.toolset, schema, handler, is_async=True)
    return Registered(entry, traits, "mcp", f"MCP server {config.name}")


def fault_of(record: ToolRecord) -> str:
    """Why a tool cannot be offered; empty when it can."""
    if not record.name.strip():
        return "it has no name"
    if len(record.name) > 512:
        return f"its name has {len(record.name)} characters"
    try:
        size = len(msgspec.json.encode(record.parameters))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        return f"its schema is no JSON ({type(error).__name__})"
    return f"its schema has {size} bytes, more than {MAX_SCHEMA_BYTES}" if size > MAX_SCHEMA_BYTES else ""


def normal_schema(schema: JsonObject) -> JsonObject:
    """The schema in the usual words: `$defs`, an object at the root, and no null among alternatives."""
    made = _normal(schema, 0)
    return made if isinstance(made, dict) and made.get("type") == "object" else {**(made or {}), "type": "object"}


def _normal(node: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        return {}
    if isinstance(node, list):
        return [_normal(one, depth + 1) for one in node]
    if not isinstance(node, dict):
        return node
    made: JsonObject = {}
    for name, value in node.items():
        if name == "$ref" and isinstance(value, str):
            made[name] = value.replace("#/definitions/", "#/$defs/")
        elif name in ("anyOf", "oneOf") and isinstance(value, list):
            kept = [one for one in value if not (isinstance(one, dict) and one.get("type") == "null")]
            made[name] = _normal(kept or value, depth + 1)
        else:
            made["$defs" if name == "definitions" and isinstance(value, dict) else name] = _normal(value, depth + 1)
    return made


def without_words(node: Any) -> Any:
    """A schema without its descriptions, titles and examples."""
    if isinstance(node, list):
        return [without_words(one) for one in node]
    if not isinstance(node, dict):
        return node
    spoken = ("description", "title", "examples", "$comment", "default")
    return {
        name: without_words(value)
        for name, value in node.items()
        if not (name in spoken and not isinstance(value, dict))
    }


def _words_of(node: Any) -> str:
    """All that a schema says in words, one text after another."""
    if isinstance(node, str):
        return node
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return "\n".join(filter(None, map(_words_of, parts)))
