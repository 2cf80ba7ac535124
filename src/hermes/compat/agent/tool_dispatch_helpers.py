"""`agent.tool_dispatch_helpers`."""

from typing import Any


def make_tool_result_message(name: str, content: Any, tool_call_id: str) -> dict[str, Any]:
    """A tool result as a message of the chat protocol."""
    return {"role": "tool", "name": name, "tool_name": name, "content": content, "tool_call_id": tool_call_id}


__all__ = ["make_tool_result_message"]
