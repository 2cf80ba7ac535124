"""What is known of the tools of configured servers without a connection: for lists, reports and names of toolsets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.errors import ToolError
from hermes.seams import ToolContext
from hermes.tools.mcp.manifest import ManifestShelf
from hermes.tools.mcp.offered_tools import McpCall, offered_tools, registration
from hermes.tools.mcp.server_config import server_configs, toolset_for
from hermes.tools.registry import Registered, registry
from hermes.types import Content


class _Unconnected:
    """For tools that are only looked at."""

    async def call(self, server: str, asked: McpCall, ctx: ToolContext) -> Content:
        raise ToolError(f"the MCP server {server!r} is not connected here")


def known_tools(home: Path, settings: Mapping[str, Any]) -> dict[str, Registered]:
    """The tools that the manifests of a home have, by name."""
    entries = settings.get("mcp_servers")
    if not entries:
        return {}
    shelf, found = ManifestShelf(home), dict[str, Registered]()
    for config in server_configs(entries, lambda _: None):
        manifest = shelf.find(config.name)
        if manifest is None:
            continue
        for tool in offered_tools(config, manifest, lambda _: None):
            if registry.get(tool.name) is None:
                found.setdefault(tool.name, registration(tool, config, _Unconnected()))
    return found


def server_toolset(name: str, settings: Mapping[str, Any]) -> str | None:
    """The toolset of the configured server that `name` means; None where there is no such server."""
    return toolset_for(name, settings.get("mcp_servers") or ())
