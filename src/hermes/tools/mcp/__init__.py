"""MCP: tools of servers that come and go, behind a list that does not.

`runtime/parts/mcp.py` joins them to an agent. A program that only wants the tools in the registry calls
`discover_mcp_tools()`. The SDK is imported by whoever opens the first connection, and by nobody before.
"""


def discover_mcp_tools() -> list[str]:
    """Connect the configured servers and register their tools; all MCP tools that are registered now, by name.

    A second call starts nothing that runs, and tries again what failed. Without the `mcp` package: none.
    """
    from hermes.tools.mcp.registered_servers import discover  # paid by who calls it

    return discover()


def shutdown_mcp_servers() -> None:
    """End the servers that `discover_mcp_tools` started, and remove their tools."""
    from hermes.tools.mcp.registered_servers import shutdown

    shutdown()


def is_mcp_tool_parallel_safe(tool_name: str) -> bool:
    """Whether calls of this registered tool may overlap; False for any other name."""
    from hermes.tools.registry import registry
    from hermes.tools.traits import touches_nothing

    tool = registry.get(tool_name)
    return tool is not None and tool.origin == "mcp" and tool.traits.effects is touches_nothing
