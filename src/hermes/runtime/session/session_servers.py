"""The MCP servers of a session: the configured ones, and those that whoever opened the session brought along.

Servers are connected when the model has begun to answer for the first time; until then, and whatever becomes of them,
what they offer is known from their manifests.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes.config.sections.top import Section as Top
from hermes.runtime.parts import Joining, Part
from hermes.types import JsonObject, StatusChanged

if TYPE_CHECKING:
    from hermes.ops import SessionRecord
    from hermes.tools.mcp.client import McpClient
    from hermes.tools.mcp.connection import LinkParts
    from hermes.tools.mcp.server_config import ServerConfig
    from hermes.tools.mcp.server_requests import Sampler
    from hermes.tools.registry import Registered


class SessionServers(Part):
    """The part of agents that have servers. The client itself is imported for the first tool."""

    limit_s = None  # whatever is waited for has a limit of its own

    def __init__(self, agent: Joining) -> None:
        self._agent = agent
        self._client: McpClient | None = None
        self._has_begun = False
        self._is_offered = False

    @property
    def generation(self) -> int:  # type: ignore[override]  # that of the servers
        return self._client.generation if self._client is not None else 0

    async def tools(self, session: "SessionRecord | None") -> Sequence["Registered"]:
        client = self.client()
        if client is None:
            return ()
        is_new = session is None or not session.tool_definitions
        if is_new and not self._is_offered and client.unseen:
            limit_s = self._agent.settings.of(Top).mcp_discovery_timeout
            names = ", ".join(client.unseen)
            late = await client.discover(limit_s) if limit_s else [names]
            self._tell(_waited(names, late, limit_s))
        self._is_offered = True
        return client.registrations()

    def answering(self) -> None:
        if not self._has_begun and self._client is not None:
            self._has_begun = True
            self._client.begin()

    def facts(self) -> list[JsonObject]:
        """Each server as it is now."""
        client = self.client()
        return client.facts() if client is not None else []

    async def reload(self) -> list[str]:
        """Read the settings anew, connect every server again, and wait for them; the sentences to tell about it."""
        from hermes.config.load import load_settings

        client = self.client()
        if client is None:
            return ["MCP is not there"]
        settings = self._agent.settings
        fresh = load_settings(settings.home, environ=settings.environ, flags=settings.flags)
        before = {one.name for one in client.offered()}
        await client.close()
        client.take(_configs(self._agent, fresh))
        client.begin()
        await client.reach_all()
        now = {one.name for one in client.offered()}
        told = [f"{one['name']}: {one['state']}{': ' + one['why'] if one['why'] else ''}" for one in client.facts()]
        return [*told, f"{len(now - before)} tools are new, {len(before - now)} are gone"]

    def client(self) -> "McpClient | None":
        """The servers; None where the package is not installed, which is told."""
        if self._client is None:
            self._client = _client(self._agent, self._tell)
        return self._client

    async def close(self, *ended: str) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    def _tell(self, text: str) -> None:
        parts = self._agent.services.parts
        (parts.tell or parts.untold.append)(StatusChanged("warning", text))


class LentServers(Part):
    """The part of a child: the servers of its parent, which are started, told of and ended there alone."""

    limit_s = None

    def __init__(self, servers: SessionServers) -> None:
        self._servers = servers

    @property
    def generation(self) -> int:  # type: ignore[override]  # that of the servers
        return self._servers.generation

    async def tools(self, session: "SessionRecord | None") -> Sequence["Registered"]:
        return await self._servers.tools(session)


def _waited(names: str, late: list[str], limit_s: float) -> str:
    if not late:
        return f"MCP servers seen for the first time: {names}"
    return (
        f"MCP servers were never seen before and were not there within {limit_s:g} s: {', '.join(late)}; what they "
        "offer comes with /reload-mcp, or in the next session"
    )


def _configs(agent: Joining, settings: Any) -> "list[ServerConfig]":
    """Those of the settings, and those of this session alone, which win."""
    from hermes.tools.mcp.server_config import entry_from_json, server_configs

    entries = dict(settings.of(Top).mcp_servers)
    brought: Mapping[str, Any] = agent.options.tools.mcp_servers or {}
    entries |= {name: entry_from_json(one) if isinstance(one, Mapping) else one for name, one in brought.items()}
    return server_configs(entries, settings.lookup)


def _client(agent: Joining, tell: Any) -> "McpClient | None":
    from hermes import __version__
    from hermes.tools.mcp.client import ClientParts, McpClient
    from hermes.tools.mcp.sdk import INSTALL, is_installed

    if not is_installed():
        tell(f"MCP servers are configured, and {INSTALL}")
        return None
    parts = ClientParts(
        home=agent.settings.home,
        scan=_scan,
        tell=tell,
        links=lambda: _links(agent, __version__),
        sampler=lambda: _sampler(agent),
        version=__version__,
    )
    return McpClient(_configs(agent, agent.settings), parts)


# What follows is imported after the first request is on its way, but for a server that says something new.


def _scan(text: str) -> object:
    from hermes.context.injection_scan import scan

    return scan(text)


def _links(agent: Joining, version: str) -> "LinkParts":
    from hermes.runtime.setup.mcp_setup import link_parts

    return link_parts(agent.settings, agent.process, agent.services, version)


def _sampler(agent: Joining) -> "Sampler":
    from hermes.runtime.setup.mcp_setup import AuxiliarySampler

    return AuxiliarySampler(agent.auxiliary)
