"""All there is to do about MCP servers outside a session: look at them, try them, add, change, remove, sign in."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import asdict

from hermes import __version__
from hermes.config.mcp_server import McpServer
from hermes.config.sections.top import Section as Top
from hermes.config.settings import Settings
from hermes.config.values import fit, plain
from hermes.config.write import set_path, unset_path
from hermes.context.injection_scan import scan
from hermes.errors import HermesError, MissingPart, UserError
from hermes.runtime.setup.mcp_setup import lone_link_parts
from hermes.runtime.setup.process import ProcessParts
from hermes.tools.mcp.connection import connected
from hermes.tools.mcp.manifest import ManifestShelf, ServerManifest
from hermes.tools.mcp.offered_tools import OfferedTool, offered_tools
from hermes.tools.mcp.owned_server import reason_of
from hermes.tools.mcp.sdk import INSTALL, is_installed
from hermes.tools.mcp.server_config import ServerConfig, entry_from_json, server_config, server_configs
from hermes.tools.mcp.server_requests import ServerRequests
from hermes.tools.mcp.sign_in import BrowserAnswer, SignIn, TokenFile, answer_server, redirect_uri

LOGIN_S = 300.0


class ServerTrial(NamedTuple):
    """What came of reaching a server once."""

    manifest: ServerManifest | None
    seconds: float
    error: str


class McpCare:
    """The MCP servers of a home."""

    def __init__(self, settings: Settings, folder: str = "") -> None:
        self.settings = settings
        self.shelf = ManifestShelf(settings.home)
        self._folder = folder or str(Path.cwd())

    def configs(self) -> list[ServerConfig]:
        """All that are configured, also those that are switched off."""
        return server_configs(self.settings.of(Top).mcp_servers, self.settings.lookup, with_disabled=True)

    def config(self, name: str) -> ServerConfig:
        """The one of this name; `UserError` when there is none."""
        for one in self.configs():
            if one.name == name:
                return one
        known = ", ".join(one.name for one in self.configs())
        raise UserError(f"There is no MCP server {name!r}. " + (f"There are: {known}" if known else "Add one first."))

    def new(self, name: str, entry: McpServer) -> ServerConfig:
        """A server that is not in the settings yet; `UserError` for one that could never be reached."""
        if not name or name != name.strip() or any(not char.isprintable() for char in name):
            raise UserError(f"{name!r} cannot name a server")
        made = server_config(name, entry, self.settings.lookup)
        if made.trouble:
            raise UserError(f"The server {name!r} cannot be used: {made.trouble}.")
        return made

    def tools(self, config: ServerConfig) -> list[OfferedTool]:
        """What it offers, as far as it is known."""
        manifest = self.shelf.read(config)
        return offered_tools(config, manifest, scan) if manifest is not None else []

    def facts(self, config: ServerConfig) -> dict[str, Any]:
        """A server in a row of a list."""
        manifest, tools = self.shelf.read(config), self.tools(config)
        state = "off" if not config.entry.enabled else "seen" if manifest else "never seen"
        if config.trouble:
            state = f"cannot be used: {config.trouble}"
        return {
            "name": config.name,
            "transport": "stdio" if config.is_local else config.entry.transport,
            "place": config.place,
            "enabled": config.entry.enabled,
            "state": state,
            "tools": len(tools),
            "tokens": sum(tool.tokens for tool in tools),
            "changed": manifest.changed() if manifest else [],
            "signed_in": self.is_signed_in(config) if config.entry.auth == "oauth" else None,
        }

    def details(self, config: ServerConfig) -> dict[str, Any]:
        """All that is known of a server, and every word of its tools."""
        manifest = self.shelf.read(config)
        about: dict[str, Any] = self.facts(config)
        if manifest is None:
            return about
        offered = {(tool.tool, tool.utility): tool for tool in self.tools(config)}
        about |= {
            name: getattr(manifest, name) for name in ("title", "protocol", "instructions", "seen_at", "left_out")
        }
        about["findings"] = [f"instructions: {found}"] if (found := scan(manifest.instructions)) else []
        about["tool_list"] = []
        for record in manifest.tools:
            tool = offered.pop((record.name, False), None)
            about["tool_list"].append(
                {
                    "name": record.name,
                    "offered_as": tool.name if tool else None,
                    "description": record.description,
                    "parameters": record.parameters,
                    "hints": record.annotations,
                    "tokens": tool.tokens if tool else 0,
                    "findings": list(tool.findings) if tool else [],
                    "digest": record.digest,
                    "changed": record.name in about["changed"],
                }
            )
        about["utilities"] = [tool.name for tool in offered.values()]
        return about

    # -- changing ----------------------------------------------------------------------------------------------------

    def save(self, config: ServerConfig, entry: McpServer | None = None) -> None:
        """Write a server to config.yaml; what is as by default is left out, and variables stay as they were written."""
        defaults, given = plain(McpServer()), plain(entry or config.entry)
        set_path(self.settings.home, ("mcp_servers", config.name), _without(given, defaults))

    def remove(self, config: ServerConfig) -> None:
        """Forget a server: its entry, what it offered, and its sign-in."""
        unset_path(self.settings.home, ("mcp_servers", config.name))
        self.shelf.remove(config.name)
        self.tokens(config).remove()

    def written(self, name: str) -> McpServer:
        """The entry as it stands in the file, variables unfilled."""
        found: McpServer = fit(self.settings.of(Top).mcp_servers[name], McpServer)
        return found

    def keep(self, manifest: ServerManifest, *, pins: bool) -> ServerManifest:
        """Store what a server offers; with `pins`, as what the person was shown."""
        fresh = manifest.with_pins() if pins else manifest.after(self.shelf.find(manifest.name))
        self.shelf.write(fresh)
        return fresh

    # -- reaching ----------------------------------------------------------------------------------------------------

    def run(self, work: Callable[[ProcessParts], Awaitable[Any]]) -> Any:
        """Do something that may start processes, and leave none."""
        if not is_installed():
            raise MissingPart(INSTALL)

        async def main() -> Any:
            parts = ProcessParts()
            try:
                return await work(parts)
            finally:
                await parts.close()

        return asyncio.run(main())

    def trial(self, config: ServerConfig) -> ServerTrial:
        """Start or reach a server once, as a session does, and end it again."""
        if config.trouble:
            return ServerTrial(None, 0.0, config.trouble)
        return ServerTrial(*self.run(lambda parts: self._reached(config, parts, None)))

    async def _reached(
        self, config: ServerConfig, parts: ProcessParts, person: SignIn | None
    ) -> tuple[ServerManifest | None, float, str]:
        began = monotonic()
        links = lone_link_parts(self.settings, parts, self._folder, __version__)
        requests = ServerRequests(config, lambda: self._folder, None)
        try:
            async with AsyncExitStack() as stack:
                _, manifest = await stack.enter_async_context(connected(config, links, requests, person))
        except Exception as error:  # noqa: BLE001 - the border to a server and to the SDK; it is told
            return None, monotonic() - began, reason_of(error)
        return manifest, monotonic() - began, ""

    # -- signing in --------------------------------------------------------------------------------------------------

    def tokens(self, config: ServerConfig) -> TokenFile:
        return TokenFile(self.settings.home, config)

    def is_signed_in(self, config: ServerConfig) -> bool:
        try:
            return bool(self.tokens(config).read().tokens)
        except UserError:
            return False

    def login(
        self, config: ServerConfig, show: Callable[[str], None], paste: Callable[[], Awaitable[str]] | None
    ) -> ServerTrial:
        """Sign in: `show` is given the address to open; `paste` reads what a person copied from their browser.

        What was kept stays until the server has given something new for it.
        """
        if config.is_local or config.entry.auth != "oauth":
            raise UserError(f"{config.name!r} needs no sign-in: set auth: oauth, and a url, for one that does.")
        return ServerTrial(*self.run(lambda parts: self._signed_in(config, parts, show, paste)))

    async def _signed_in(
        self,
        config: ServerConfig,
        parts: ProcessParts,
        show: Callable[[str], None],
        paste: Callable[[], Awaitable[str]] | None,
    ) -> tuple[ServerManifest | None, float, str]:
        # In a file of their own until they have worked: whatever happens before, the old ones are there.
        answer, fresh = BrowserAnswer(), TokenFile(self.settings.home, config, ".signing-in")
        fresh.remove()
        try:
            async with answer_server(config, answer) as port:

                async def open_page(url: str) -> None:
                    show(url)

                person = SignIn(
                    open_page=open_page, answer=answer.wait, redirect_uri=redirect_uri(config, port), tokens=fresh
                )
                async with asyncio.timeout(LOGIN_S), asyncio.TaskGroup() as group:
                    reader = group.create_task(_pasted(paste, answer)) if paste is not None else None
                    done = await self._reached(config, parts, person)
                    if reader is not None:
                        reader.cancel()
            if not done[2]:
                self.tokens(config).write(fresh.read())
            return done
        except TimeoutError:
            return None, LOGIN_S, f"nobody signed in within {LOGIN_S:g} s"
        finally:
            fresh.remove()


async def _pasted(paste: Callable[[], Awaitable[str]], answer: BrowserAnswer) -> None:
    while not answer.paste(await paste()):
        pass  # something else was typed


def blocks_of(text: str) -> dict[str, McpServer]:
    """The servers of a JSON text of another product: `{"mcpServers": {…}}`, `{"servers": {…}}`, or what is in it."""
    try:
        found: Any = msgspec.json.decode(text)
    except msgspec.MsgspecError as error:
        raise UserError(f"This is no JSON: {error}") from error
    for key in ("mcpServers", "mcp_servers", "servers", "mcp"):
        if isinstance(found, Mapping) and isinstance(found.get(key), Mapping):
            found = found[key]
    if not isinstance(found, Mapping) or not found:
        raise UserError('This is no block of servers: {"mcpServers": {"name": {"command": …}}} is one.')
    if "command" in found or "url" in found:
        raise UserError("This block has no name for its server; write it after `add`, or put it in mcpServers.")
    made: dict[str, McpServer] = {}
    for name, block in found.items():
        if not isinstance(block, Mapping):
            raise UserError(f"{name!r} is no server, but {type(block).__name__}.")
        try:
            made[str(name)] = entry_from_json(block)
        except HermesError as error:
            raise UserError(f"{name}: {error}") from error
    return made


def _without(given: Any, defaults: Any) -> Any:
    """`given` less what is as by default."""
    if not isinstance(given, Mapping):
        return list(given) if isinstance(given, tuple) else given
    return {
        name: _without(value, defaults.get(name) if isinstance(defaults, Mapping) else None)
        for name, value in given.items()
        if not (isinstance(defaults, Mapping) and name in defaults and value == defaults[name])
    }


def as_facts(trial: ServerTrial) -> dict[str, Any]:
    """A trial for programs."""
    manifest = trial.manifest
    return {
        "ok": manifest is not None,
        "seconds": round(trial.seconds, 3),
        "error": trial.error,
        "title": manifest.title if manifest else "",
        "protocol": manifest.protocol if manifest else "",
        "tools": [tool.name for tool in manifest.tools] if manifest else [],
        "left_out": asdict(manifest)["left_out"] if manifest else {},
    }
