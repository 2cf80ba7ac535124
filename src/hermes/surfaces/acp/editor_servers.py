"""The MCP servers that an editor hands to a session, in the words of `mcp_servers` of the settings."""

import logging
from collections.abc import Sequence

from hermes.types import JsonObject

log = logging.getLogger(__name__)


def servers_of(given: Sequence[JsonObject]) -> JsonObject | None:
    """By name; None where there are none. One that names neither a program nor an address is left out and logged."""
    found: JsonObject = {}
    for each in given:
        name = str(each.get("name") or "")
        if name and isinstance(url := each.get("url"), str) and url:
            kind = {"transport": "sse"} if each.get("type") == "sse" else {}
            found[name] = {"url": url, "headers": _pairs(each.get("headers")), **kind}
        elif name and isinstance(command := each.get("command"), str) and command:
            args = [str(word) for word in each.get("args") or ()]
            found[name] = {"command": command, "args": args, "env": _pairs(each.get("env"))}
        else:
            log.warning("an MCP server of the editor is left out: %r names neither a program nor an address", name)
    return found or None


def _pairs(given: object) -> dict[str, str]:
    """`[{"name": …, "value": …}]` as a table."""
    rows = given if isinstance(given, list) else []
    return {str(row.get("name")): str(row.get("value") or "") for row in rows if isinstance(row, dict)}
