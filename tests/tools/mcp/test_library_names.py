"""The names of the contract, for programs that use the registry without an agent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.model_tools import handle_function_call
from hermes.tools.mcp import discover_mcp_tools, is_mcp_tool_parallel_safe, shutdown_mcp_servers
from hermes.tools.registry import registry
from hermes.toolsets import resolve_toolset
from tests.tools.mcp.mcp_room import bare, body, write_config


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    yield
    shutdown_mcp_servers()


def test_tools_are_registered_called_and_removed(hermes_home: Path) -> None:
    write_config(hermes_home, {"bare": bare(supports_parallel_tool_calls=True), "gone": {"command": "no-such-program"}})
    names = discover_mcp_tools()
    assert "mcp__bare__echo" in names
    assert discover_mcp_tools() == names
    assert resolve_toolset("mcp-bare") == resolve_toolset("bare") == names
    assert is_mcp_tool_parallel_safe("mcp__bare__echo")
    assert not is_mcp_tool_parallel_safe("read_file")
    assert not is_mcp_tool_parallel_safe("nothing")
    assert body(handle_function_call("mcp__bare__echo", {"text": "hello"})) == {"result": "hello"}
    shutdown_mcp_servers()
    assert registry.get("mcp__bare__echo") is None


def test_without_servers_there_is_nothing(hermes_home: Path) -> None:
    assert discover_mcp_tools() == []
