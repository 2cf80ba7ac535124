"""What surfaces do with plugins: list, switch on and off, take, update, remove; without a terminal in it."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.config.sections.plugins import Section
from hermes.config.settings import Settings
from hermes.config.write import set_key
from hermes.errors import UserError
from hermes.extensions.plugins import plugin_install
from hermes.extensions.plugins.manifest import PluginManifest, RequiredVariable
from hermes.extensions.plugins.plugin_install import FetchedPlugin
from hermes.extensions.plugins.plugin_set import PluginSet, PluginState, is_asked_for, plugins_of
from hermes.own_git import OwnGit

if TYPE_CHECKING:
    from concurrent.futures import Future

    from hermes.host.conversation import Conversation
    from hermes.seams import Supervisor

log = logging.getLogger("hermes.plugins")
_FOR_GIT = (
    *("PATH", "HOME", "LANG", "USER", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
)


class PluginCare:
    """The plugins of one home. `supervisor` starts git, where something is fetched."""

    def __init__(self, settings: Settings, supervisor: "Supervisor | None" = None, cwd: Path | None = None) -> None:
        self.settings = settings
        self.plugins: PluginSet = plugins_of(settings.home)
        self._supervisor = supervisor
        self._cwd = cwd

    def states(self) -> list[PluginState]:
        """Every plugin; those that are on are loaded, so that what is wrong with them is seen."""
        return self.plugins.states(self.settings, self._cwd)

    def state(self, name: str) -> PluginState:
        """One of them."""
        manifest = self.plugins.find(name, self.settings, self._cwd)
        return next(one for one in self.states() if one.manifest.key == manifest.key)

    def find(self, name: str) -> PluginManifest:
        return self.plugins.find(name, self.settings, self._cwd)

    def enable(self, manifest: PluginManifest, *, allow_tool_override: bool = False) -> None:
        """Switch it on, with a yes to what it declares."""
        if manifest.error:
            raise UserError(f"the plugin {manifest.key!r} cannot be switched on: {manifest.error}")
        self.plugins.consents.give(manifest)
        section = self.settings.of(Section)
        names = {manifest.key, manifest.name}
        if names.isdisjoint(section.enabled):
            self._set("enabled", [*section.enabled, manifest.key])
        if not names.isdisjoint(section.disabled):
            self._set("disabled", [one for one in section.disabled if one not in names])
        if allow_tool_override:
            set_key(self.settings.home, f"plugins.entries.{manifest.key}.allow_tool_override", "true")

    def disable(self, manifest: PluginManifest) -> None:
        """Switch it off."""
        section = self.settings.of(Section)
        names = {manifest.key, manifest.name}
        if not names.isdisjoint(section.enabled):
            self._set("enabled", [one for one in section.enabled if one not in names])
        if names.isdisjoint(section.disabled):
            self._set("disabled", [*section.disabled, manifest.key])

    def is_enabled(self, manifest: PluginManifest) -> bool:
        section = self.settings.of(Section)
        names = {manifest.key, manifest.name}
        return not names.isdisjoint(section.enabled) and names.isdisjoint(section.disabled)

    async def fetch(self, words: str) -> FetchedPlugin:
        return await plugin_install.fetch_plugin(words, self._git)

    def remove(self, manifest: PluginManifest) -> None:
        """Delete it, switch it off, and forget the yes to it."""
        plugin_install.remove(manifest, self.settings.home)
        section = self.settings.of(Section)
        names = {manifest.key, manifest.name}
        for which, listed in (("enabled", section.enabled), ("disabled", section.disabled)):
            if not names.isdisjoint(listed):
                self._set(which, [one for one in listed if one not in names])
        self.plugins.consents.take_back(manifest.key)

    def missing_variables(self, manifest: PluginManifest) -> list[RequiredVariable]:
        """What it wants of .env and the environment, and is not set."""
        return [one for one in manifest.requires_env if not self.settings.lookup(one.name)]

    def wanted_variables(self) -> list[RequiredVariable]:
        """What all plugins that are on want to have, and their tools."""
        if not is_asked_for(self.settings):
            return []
        found: dict[str, RequiredVariable] = {}
        for plugin in self.plugins.chosen(self.settings, self._cwd):
            for one in plugin.manifest.requires_env:
                found.setdefault(one.name, one)
            for tool in plugin.offers.tools if plugin.offers is not None else ():
                for name in tool.requires_env:
                    found.setdefault(name, RequiredVariable(name=name, description=f"the tool {tool.name}"))
        return list(found.values())

    def _set(self, which: str, names: Sequence[str]) -> None:
        set_key(self.settings.home, f"plugins.{which}", msgspec.json.encode(list(names)).decode())

    def _git(self, folder: Path) -> OwnGit:
        if self._supervisor is None:
            raise UserError("nothing can be started here, so no repository can be looked at")
        environ = {name: value for name in _FOR_GIT if (value := self.settings.environ.get(name))}
        return OwnGit(self._supervisor, environ, folder, fetches=True)


def _tell_lost(sent: "Future[Any]") -> None:
    """The plugin has gone on: that its words were not taken is for the log."""
    if not sent.cancelled() and (error := sent.exception()) is not None:
        log.warning("words of a plugin were not taken in: %s", error)


def accept_injections(home: Path, live: "Callable[[], Conversation]") -> None:
    """Let plugins queue words as the next input of the conversation that is open."""
    loop = asyncio.get_running_loop()

    def inject(words: str) -> bool:
        if not loop.is_running():
            return False
        asyncio.run_coroutine_threadsafe(live().submit(words), loop).add_done_callback(_tell_lost)
        return True

    plugins_of(home).injectors[:] = [inject]
