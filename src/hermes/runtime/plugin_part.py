"""Plugins: those that are switched on, their tools of the project, and what is wrong with them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.runtime.parts import Joining, Part
from hermes.runtime.plugin_joints.tools import JOINT
from hermes.runtime.setup.plugin_setup import absent, prepare
from hermes.types import StatusChanged

if TYPE_CHECKING:
    from hermes.extensions.plugins.plugin import Plugin
    from hermes.ops import SessionRecord
    from hermes.runtime.context import CallContext
    from hermes.tools.registry import Registered


class PluginTurns(Part):
    """Brings the tools of project plugins into the session's view, and imports a plugin beside the loop, not on it."""

    limit_s = None  # an import takes as long as it takes; the call has a limit of its own

    def __init__(self, plugins: "Sequence[Plugin]") -> None:
        self._plugins = plugins
        self._by_tool = {
            offer.name: one
            for one in plugins
            if one.offers is not None
            for offer in one.offers.tools
            if not one.is_loaded
        }

    @classmethod
    def join(cls, agent: Joining) -> "PluginTurns | None":
        environment = agent.services.environment
        plugins = prepare(agent.settings, Path(environment.cwd) if environment.kind == "local" else None)
        agent.services.parts.untold += [StatusChanged("option", line) for line in absent(plugins)]
        return cls(plugins) if plugins else None

    async def tools(self, session: "SessionRecord | None") -> "Sequence[Registered]":
        return [tool for one in self._plugins if one.manifest.source == "project" for tool in JOINT.of(one)]

    def around(self, call: "CallContext") -> AbstractAsyncContextManager[None] | None:
        plugin = self._by_tool.get(call.asked.name)
        if plugin is None or plugin.is_loaded:
            return None
        return self._loaded(plugin, call)

    @asynccontextmanager
    async def _loaded(self, plugin: "Plugin", call: "CallContext") -> AsyncIterator[None]:
        await call.in_thread(plugin.load)
        yield
