"""The tools of configured servers in the registry, for programs that use that without an agent."""

import asyncio
import atexit
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hermes.config.load import load_settings
from hermes.config.paths import logs_dir
from hermes.config.sections.top import Section as Top
from hermes.confinement.outside import outside
from hermes.confinement.policy import AnyConfinement
from hermes.seams import ToolContext
from hermes.tools.calling.loops import run_sync
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.mcp.client import ClientParts, McpClient
from hermes.tools.mcp.connection import LinkParts
from hermes.tools.mcp.offered_tools import McpCall, registration
from hermes.tools.mcp.sdk import is_installed
from hermes.tools.mcp.server_config import SAFE_MODE, server_configs
from hermes.tools.mcp.stdio_pipe import StdioPlace
from hermes.tools.registry import registry
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from hermes.types import Content

Result = TypeVar("Result")

_lock = threading.Lock()  # guards _running
_running: list["RegisteredServers"] = []  # the one of this process; a list, so that it can be put aside


class RegisteredServers:
    """Servers on one of the tools' own loops, whose tools are in the registry."""

    def __init__(self, client: McpClient, supervisor: ProcessSupervisor) -> None:
        self.client = client
        self.supervisor = supervisor
        self.names: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None  # where they live: that of who reached them first

    async def call(self, server: str, asked: McpCall, ctx: ToolContext) -> Content:
        """A call from any loop."""
        return await self.at_home(self.client.call(server, asked, ctx))

    async def at_home(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run `work` on the loop that the servers live on, whichever this is."""
        here = asyncio.get_running_loop()
        self._loop = self._loop or here
        if self._loop is here:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def register(self) -> None:
        """Have what the servers offer now in the registry, and nothing else of theirs."""
        offered = {tool.name: tool for tool in self.client.offered()}
        for name in self.names - offered.keys():
            registry.deregister(name)
        self.names &= offered.keys()
        for name, tool in offered.items():
            config = self.client.servers[tool.server].config
            if registry.add(registration(tool, config, self)):
                self.names.add(name)
                if registry.get_toolset_alias_target(config.name) is None:
                    registry.register_toolset_alias(config.name, config.toolset)


def discover() -> list[str]:
    """See `hermes.tools.mcp.discover_mcp_tools`."""
    settings = load_settings()
    if not is_installed() or settings.environ.get(SAFE_MODE, "") not in ("", "0"):
        return []
    with _lock:
        if not _running:
            configs = server_configs(settings.of(Top).mcp_servers, settings.lookup)
            if not configs:
                return []
            supervisor = ProcessSupervisor()
            parts = _parts(settings.home, settings.environ, supervisor)
            _running.append(RegisteredServers(McpClient(configs, parts), supervisor))
            atexit.register(shutdown)
        servers = _running[0]
    run_sync(servers.at_home(servers.client.reach_all()), None)
    servers.register()
    return sorted(servers.names)


def shutdown() -> None:
    """See `hermes.tools.mcp.shutdown_mcp_servers`."""
    with _lock:
        found = [_running.pop()] if _running else []
    for servers in found:
        run_sync(servers.at_home(servers.client.close()), None)
        servers.supervisor.close_now()
        for name in servers.names:
            registry.deregister(name)


def _parts(home: Path, environ: Any, supervisor: ProcessSupervisor) -> ClientParts:
    pool = DaemonPool()
    in_thread: Callable[..., Awaitable[Any]] = pool.run

    async def confinement() -> AnyConfinement:
        return outside("mcp server of a library")

    stdio = StdioPlace(
        supervisor=lambda: supervisor,
        confinement=confinement,
        environ=environ,
        cwd=lambda: str(Path.cwd()),
        owner="mcp",
        stderr_log=logs_dir(home) / "mcp-stderr.log",
    )
    links = LinkParts(home=home, stdio=stdio, in_thread=in_thread)
    return ClientParts(home=home, links=lambda: links, scan=lambda _: None, tell=lambda _: None)
