"""Names of MCP tools as models see them: legal for every provider, unlike each other, and with a way back."""

import hashlib
import re
from collections.abc import Iterable

MAX_NAME = 64
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")
_HASH_CHARS = 8


def offered_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """For each name that the server has for a tool, the one that is offered: `mcp__server__tool`.

    What is too long is cut, and what would be another's gets a mark of its own; neither depends on the order of tools.
    """
    tools = list(dict.fromkeys(tools))
    plain = {tool: f"mcp__{_plain(server)}__{_plain(tool)}" for tool in tools}
    holders: dict[str, list[str]] = {}
    for tool, name in plain.items():
        holders.setdefault(name, []).append(tool)
    made: dict[str, str] = {}
    for name, alike in holders.items():
        # One that is written as it is offered keeps the name, else the first in order does.
        first = next((tool for tool in alike if _plain(tool) == tool), min(alike))
        for tool in alike:
            is_exact = tool == first and len(name) <= MAX_NAME
            made[tool] = name if is_exact else _marked(name, f"{server}\0{tool}")
    return made


def _plain(text: str) -> str:
    return _ILLEGAL.sub("_", text) or "_"


def _marked(name: str, of: str) -> str:
    mark = hashlib.sha256(of.encode("utf-8", "replace")).hexdigest()[:_HASH_CHARS]
    return f"{name[: MAX_NAME - _HASH_CHARS - 1]}_{mark}"
