"""The definitions of a session that takes in what MCP servers have come to offer."""

from hermes.tools.registration.definitions import UNKNOWN_WINDOW, ViewRequest, offered, select
from hermes.tools.registration.groups import Groups, custom_groups
from hermes.tools.registration.tool_search import BRIDGE, divided
from hermes.tools.registry import registry
from hermes.tools.view import SessionView, definition_of

MCP_PREFIX = "mcp__"


def refreshed_tools(request: ViewRequest, stored: str) -> str:
    """The stored definitions with the tools of MCP servers as they are now; all others stay byte for byte.

    For the breaks that are allowed: a compression, and a person who asks for it.
    """
    if not any(tool.origin == "mcp" for tool in request.brought.values()) and MCP_PREFIX not in stored:
        return stored
    before = SessionView.from_json(stored, registry)
    kept = [one for one in before.everything() if not one.name.startswith(MCP_PREFIX) and one.name not in BRIDGE]
    brought = {name: tool for name, tool in request.brought.items() if tool.origin == "mcp"}
    names = select(Groups(registry, custom_groups(request.settings)), request.enabled, request.disabled, brought)
    taken = {one.name for one in kept}
    fresh = [definition_of(one["function"]) for one in offered((names & brought.keys()) - taken, brought)]
    every = sorted([*kept, *fresh], key=lambda one: one.name)
    tools = {**registry.snapshot(), **brought}
    listed, deferred = divided(every, tools, request.settings, request.window_tokens or UNKNOWN_WINDOW)
    return SessionView(listed, tools, deferred).to_json()
