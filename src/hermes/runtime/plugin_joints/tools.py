"""Tools of plugins: known in the registry by their recorded offers, imported when they are called or checked.

Those of a project's plugins live in a registry of their own, which only the sessions of that project see.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hermes.extensions.plugins.offers import ToolOffer
from hermes.extensions.plugins.plugin import Plugin, PluginBroken, loading
from hermes.tools.registry import Registered, ToolEntry, ToolRegistry, registry
from hermes.tools.traits import Origin


class PluginTools:
    """`ToolJoint` over the registry."""

    def __init__(self) -> None:
        self._apart: dict[str, ToolRegistry] = {}  # a cache: of project plugins, by folder

    def add(self, plugin: Plugin, offer: ToolOffer) -> str:
        target, name = self.registry_of(plugin), offer.name
        old = registry.get(name) or target.get(name)
        if old is not None and old.source != plugin.source:
            if not offer.override:
                return (
                    f"the tool {name!r} is left out: the name belongs to toolset {old.entry.toolset!r} "
                    f"({old.source or old.origin})"
                )
            refuse_override(plugin, name)
        if old is not None and old.source == plugin.source and not old.lazy and loading.get() is plugin:
            return ""  # registered by the code of the plugin itself
        target.add(self._registered(plugin, offer), override=offer.override)
        return ""

    @contextmanager
    def capture(self, plugin: Plugin) -> Iterator[None]:
        may_override = plugin.entry.allow_tool_override
        origin: Origin = "project" if plugin.manifest.source == "project" else "plugin"
        with self.registry_of(plugin).loading(origin, plugin.source, may_override=may_override):
            yield

    def captured(self, plugin: Plugin) -> Sequence[ToolOffer]:
        found = self.of(plugin)
        return [_offer(one) for one in found if not isinstance(one.entry.handler, PluginHandler)]

    def forget(self, plugin: Plugin) -> None:
        target = self.registry_of(plugin)
        for tool in self.of(plugin):
            if target.get(tool.entry.name) is tool:
                target.deregister(tool.entry.name)

    def of(self, plugin: Plugin) -> list[Registered]:
        """Its tools, wherever they live."""
        return [one for one in self.registry_of(plugin).snapshot().values() if one.source == plugin.source]

    def registry_of(self, plugin: Plugin) -> ToolRegistry:
        if plugin.manifest.source != "project":
            return registry
        return self._apart.setdefault(plugin.manifest.path, ToolRegistry())

    @staticmethod
    def _registered(plugin: Plugin, offer: ToolOffer) -> Registered:
        entry = ToolEntry(
            offer.name,
            offer.toolset,
            offer.schema,
            PluginHandler(plugin, offer.name),
            _check(plugin, offer.name) if offer.has_check else None,
            list(offer.requires_env),
            offer.is_async,
            offer.description,
            offer.emoji,
        )
        origin: Origin = "project" if plugin.manifest.source == "project" else "plugin"
        return Registered(entry, origin=origin, source=plugin.source, lazy=True)


class PluginHandler:
    """The handler of a tool whose plugin may not be imported yet."""

    def __init__(self, plugin: Plugin, name: str) -> None:
        self.plugin = plugin
        self._name = name
        self.__module__ = "hermes_plugins"

    def load(self) -> Callable[..., Any]:
        """The real one."""
        self.plugin.load()
        found = self.plugin.live.handlers.get(self._name)
        if found is None:
            known = JOINT.registry_of(self.plugin).get(self._name)
            if known is not None and not isinstance(known.entry.handler, PluginHandler):
                found = known.entry.handler
        if found is None:
            why = self.plugin.error or f"it no longer registers the tool {self._name!r}"
            raise PluginBroken(f"the plugin {self.plugin.key!r} is not loaded: {why}")
        return found

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.load()(*args, **keywords)

    def __repr__(self) -> str:
        return f"<{self._name} of plugin {self.plugin.key}>"


def refuse_override(plugin: Plugin, name: str) -> None:
    """`PermissionError` unless the operator lets the plugin replace tools."""
    if not plugin.entry.allow_tool_override:
        raise PermissionError(
            f"the tool {name!r} is there already; plugins.entries.{plugin.key}.allow_tool_override: true in "
            "config.yaml lets this plugin replace it"
        )


def _check(plugin: Plugin, name: str) -> Callable[[], object]:
    def check() -> object:
        plugin.load()
        found = plugin.live.checks.get(name)
        return found() if found is not None else not plugin.error

    return check


def _offer(tool: Registered) -> ToolOffer:
    entry = tool.entry
    return ToolOffer(
        name=entry.name,
        toolset=entry.toolset,
        schema={**entry.schema, "name": entry.schema.get("name") or entry.name},
        description=entry.description,
        emoji=entry.emoji,
        requires_env=list(entry.requires_env),
        is_async=entry.is_async,
        has_check=entry.check_fn is not None,
    )


JOINT = PluginTools()
