"""The servers of one agent: what they offer together, and the way of a call through the gate to its server."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from hermes.errors import ToolError
from hermes.seams import Action, ToolContext
from hermes.tools.mcp.kept_offers import kept_offers
from hermes.tools.mcp.manifest import ManifestShelf, ServerManifest, is_hint
from hermes.tools.mcp.offered_tools import McpCall, OfferedTool, Scan, registration
from hermes.tools.mcp.server_config import ServerConfig
from hermes.tools.registry import Registered, registry, tool_error
from hermes.types import Content

if TYPE_CHECKING:
    from hermes.tools.mcp.connection import LinkParts
    from hermes.tools.mcp.owned_server import OwnedServer
    from hermes.tools.mcp.server_requests import Sampler

SHOWN_ARGS = 2000
log = logging.getLogger(__name__)


class ClientParts(Struct, frozen=True, kw_only=True):
    """What the servers of an agent are made with. `tell` says something to the person; `links` and `sampler` are asked
    when the first server is to be reached."""

    home: Path
    scan: Scan
    tell: Callable[[str], None]
    links: "Callable[[], LinkParts]"
    sampler: "Callable[[], Sampler | None]" = lambda: None
    version: str = "0"


class McpClient:
    """Owns the servers of one agent. `generation` changes when what they offer does."""

    def __init__(self, configs: Sequence[ServerConfig], parts: ClientParts) -> None:
        self._parts = parts
        self.generation = 1
        self._configs: dict[str, ServerConfig] = {}
        self._servers: dict[str, OwnedServer] | None = None
        self._seen: dict[str, ServerManifest | None] = {}  # as of this generation
        self._told: set[str] = set()
        self._offers: dict[str, tuple[ServerManifest, list[OfferedTool]]] = {}  # made once for each manifest
        self.take(configs)

    def take(self, configs: Sequence[ServerConfig]) -> None:
        """Know these servers, and no others; none of the old ones may run."""
        shelf = ManifestShelf(self._parts.home)
        self._configs, self._servers = {config.name: config for config in configs}, None
        self._seen = {config.name: shelf.read(config) for config in configs}
        for config in configs:
            if config.trouble:
                self._tell(config.name, f"the MCP server {config.name!r} is not used: {config.trouble}")
        self.generation += 1

    @property
    def servers(self) -> "dict[str, OwnedServer]":
        """Their owners, made when one is first wanted: what is offered is known without, and so is a first request."""
        if self._servers is None:
            from hermes.tools.mcp.owned_server import OwnedServer  # with all that a connection takes
            from hermes.tools.mcp.server_requests import ServerRequests

            links, sampler = self._parts.links(), self._parts.sampler()
            self._servers = {
                name: OwnedServer(
                    config,
                    links,
                    ServerRequests(config, links.stdio.cwd, sampler),
                    self._seen[name],
                    self._changed,
                )
                for name, config in self._configs.items()
            }
        return self._servers

    @property
    def unseen(self) -> list[str]:
        """The servers of which nothing is known yet."""
        return [name for name, config in self._configs.items() if self._seen[name] is None and not config.trouble]

    def begin(self) -> None:
        """Have every server started or reached, in the background."""
        for server in self.servers.values():
            server.begin()

    async def discover(self, limit_s: float) -> list[str]:
        """Wait for servers that were never seen before, no longer than this; those that were late."""
        async with asyncio.TaskGroup() as group:
            for name in self.unseen:
                group.create_task(_reached(self.servers[name], limit_s))
        return self.unseen

    async def reach_all(self) -> None:
        """Wait until each is there, or has failed once."""
        async with asyncio.TaskGroup() as group:
            for server in self.servers.values():
                if server.state != "refused":
                    group.create_task(_reached(server, server.config.entry.connect_timeout + 1))

    def offered(self) -> list[OfferedTool]:
        """What all of them offer, as far as it is known."""
        found, parts = list[OfferedTool](), self._parts
        shelf = ManifestShelf(parts.home)
        for name, manifest in self._seen.items():
            if manifest is None:
                continue
            kept = self._offers.get(name)
            if kept is None or kept[0] is not manifest:
                made = kept_offers(self._configs[name], manifest, parts.scan, shelf, parts.version)
                kept = self._offers[name] = (manifest, made)
            found += kept[1]
        return found

    def registrations(self) -> list[Registered]:
        """The same for the view of a session; a name that another tool has is left out, and that is told."""
        made: list[Registered] = []
        taken: set[str] = set()
        for tool in self.offered():
            config = self._configs[tool.server]
            other = registry.get(tool.name)
            if other is not None and other.entry.toolset == config.toolset:
                continue  # `discover_mcp_tools` has put it there
            if other is not None or tool.name in taken:
                self._tell(tool.name, f"the tool {tool.name!r} of an MCP server is left out: its name is taken")
                continue
            taken.add(tool.name)
            made.append(registration(tool, config, self))
        return made

    async def call(self, server: str, asked: McpCall, ctx: ToolContext) -> Content:
        """Through the gate, by the server's name, to the server."""
        found = self.servers.get(server)
        if found is None:
            return tool_error(f"the MCP server {server!r} is no longer configured")
        if not found.is_ready:
            try:
                await found.link()  # what the server says of the tool now is what is judged and told
            except ToolError as error:
                return tool_error(str(error))
        decision = await ctx.gate.decide(_action(found, asked, ctx), ctx.scope)
        if not decision.allowed:
            return tool_error(decision.reason or "this was not allowed")
        return await found.call(asked, ctx)

    async def close(self) -> None:
        """End all servers; bounded."""
        async with asyncio.TaskGroup() as group:
            for server in (self._servers or {}).values():
                group.create_task(server.close())

    def facts(self) -> list[dict[str, Any]]:
        """Each server as it is now, for people and programs."""
        counts: dict[str, list[int]] = {}
        for tool in self.offered():
            counts.setdefault(tool.server, []).append(tool.tokens)
        return [
            {
                "name": name,
                "state": server.state,
                "why": server.why,
                "place": server.config.place,
                "tools": len(counts.get(name, ())),
                "tokens": sum(counts.get(name, ())),
            }
            for name, server in sorted(self.servers.items())
        ]

    def _changed(self, server: "OwnedServer") -> None:
        name = server.config.name
        if server.manifest is not self._seen.get(name):
            self._seen[name] = server.manifest
            self.generation += 1
        if server.state in ("down", "sign-in"):
            self._tell(name, f"the MCP server {name!r} cannot be reached: {server.why}")

    def _tell(self, key: str, text: str) -> None:
        """Once for each server, however often it fails."""
        if key not in self._told:
            self._told.add(key)
            self._parts.tell(text)


async def _reached(server: "OwnedServer", limit_s: float) -> None:
    try:
        async with asyncio.timeout(limit_s):
            await server.link()
    except (TimeoutError, ToolError) as error:
        log.debug("MCP server %r was not there in time: %s", server.config.name, error)


def _action(server: "OwnedServer", asked: McpCall, ctx: ToolContext) -> Action:
    """What the gate decides on. A server's word that a tool destroys is a reason to ask; its word that it does not is
    no reason for anything."""
    name, details = server.config.name, dict[str, Any](server=server.config.name, mcp_tool=asked.tool)
    text = f"{name} {asked.tool}"
    record = None if asked.utility else server.record(asked.tool)
    if record is not None and is_hint(record.annotations, "destructiveHint"):
        from hermes.tools.approval.effects_model import (
            PLUGIN_RULE,  # the gate's own modules, which a start does without
        )

        why = f"{asked.tool} of the MCP server {name!r}, which says that it may destroy something"
        details |= {"rule": f"{PLUGIN_RULE}mcp {name}", "why": why}
        text = f"{text} {msgspec.json.encode(asked.args).decode()[:SHOWN_ARGS]}"
    return Action(
        kind="tool",
        tool=asked.offered,
        text=text,
        cwd=ctx.environment.cwd,
        backend="local",
        route="mcp" if ctx.route == "foreground" else ctx.route,
        session_id=ctx.session_id,
        task_id=ctx.task_id,
        details=details,
    )
