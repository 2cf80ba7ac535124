"""`tools.mcp_tool`: MCP servers for programs that use the registry."""

from hermes.tools.mcp import discover_mcp_tools, is_mcp_tool_parallel_safe, shutdown_mcp_servers

__all__ = ["discover_mcp_tools", "is_mcp_tool_parallel_safe", "shutdown_mcp_servers"]
