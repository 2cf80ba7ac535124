"""Make the plugins that are switched on known to the process, and their hooks to a session's bus."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hermes.config.sections import context as context_section
from hermes.config.settings import Settings
from hermes.extensions.plugins.plugin import Plugin
from hermes.extensions.plugins.plugin_set import callbacks, is_asked_for, plugins_of, required
from hermes.runtime.plugin_joints.tools import JOINT as TOOLS
from hermes.tools.hooks import Hooks
from hermes.types import StatusChanged

if TYPE_CHECKING:
    from hermes.runtime.options import AgentOptions

log = logging.getLogger("hermes.plugins")
_known: dict[Path, dict[str, Plugin]] = {}  # a cache: by home, the plugins whose tools are in the registry


def prepare(settings: Settings, cwd: Path | None = None) -> list[Plugin]:
    """The plugins that are switched on; their tools and providers are known afterwards. Asking twice costs a look."""
    chosen = plugins_of(settings.home).chosen(settings, cwd)
    known = _known.setdefault(settings.home, {})
    for plugin in chosen:
        if known.get(plugin.key) is not plugin:
            known[plugin.key] = plugin
            _introduce(plugin)
    keys = {plugin.key for plugin in chosen}
    for key in [key for key, plugin in known.items() if key not in keys and plugin.manifest.source != "project"]:
        TOOLS.forget(known.pop(key))
    return chosen


def _introduce(plugin: Plugin) -> None:
    """Have its recorded tools and providers known without importing it. What it brought before it failed stays."""
    offers = plugin.offers
    if offers is None or plugin.is_loaded:
        return
    for offer in offers.tools:
        try:
            why = TOOLS.add(plugin, offer)
        except PermissionError as error:
            why = str(error)
            plugin.error = plugin.error or why
        if why:
            log.warning("plugin %r: %s", plugin.key, why)
    if offers.model_providers or offers.web_search_providers:
        from hermes.runtime.plugin_joints.providers import JOINT as PROVIDERS

        for data in offers.model_providers:
            PROVIDERS.add_model_provider(plugin, data)
        for name in offers.web_search_providers:
            PROVIDERS.add_search(plugin, name)


def join_hooks(bus: Hooks, settings: Settings, plugins: list[Plugin]) -> None:
    """Have the hooks of plugins called by `bus`, in the order of their keys; one is imported when its hook fires."""
    for plugin in plugins:
        if plugin.offers is None:
            continue
        if not (plugin.offers.hooks or plugin.offers.middleware):
            continue
        from hermes.hook_points import HOOKS  # for who has hooks

        limit = plugin.entry.hook_timeout
        for name in dict.fromkeys(plugin.offers.hooks):
            kind = HOOKS[name].kind if name in HOOKS else "observer"
            for callback in callbacks(plugin, "hooks", name):
                bus.add(name, callback, owner=plugin.key, kind=kind, timeout_s=limit)
        for name in dict.fromkeys(plugin.offers.middleware):
            for callback in callbacks(plugin, "middleware", name):
                bus.add_middleware(name, callback, owner=plugin.key, timeout_s=limit)
    there = {name for one in plugins if not one.error for name in (one.key, one.manifest.name)}
    for key in required(settings):
        if key not in there:
            bus.require("pre_tool_call", key)


def absent(plugins: list[Plugin]) -> list[str]:
    """A line for each plugin that is switched on and cannot be used; told once a process."""
    told = []
    for plugin in plugins:
        if plugin.error and not plugin.is_shown:
            plugin.is_shown = True
            told.append(f"the plugin {plugin.key!r} is not loaded: {plugin.error}")
    return told


def prepare_outside() -> None:
    """The same for calls that belong to no agent: the hooks of the process are those of the home in use."""
    from hermes.config.load import load_settings
    from hermes.tools.calling.outside_agent import outside

    settings = load_settings()
    plugins = prepare(settings) if is_asked_for(settings) else []
    mark = (str(settings.home), tuple(id(plugin) for plugin in plugins), tuple(required(settings)))
    if outside.hooks_of[:1] == (mark,):
        return
    for owner in outside.hooks_of[1:]:
        outside.hooks.remove(owner)
    outside.hooks_of = (mark, *{*(plugin.key for plugin in plugins), *required(settings)})
    join_hooks(outside.hooks, settings, plugins)


def prepare_agent(options: "AgentOptions", settings: Settings) -> "tuple[AgentOptions, list[StatusChanged]]":
    """The options with the engine that `context.engine` names, where that is a plugin's; plugins are known then."""
    prepare(settings, Path(options.tools.cwd) if options.tools.cwd else None)
    name = settings.of(context_section.Section).engine
    if name in ("compressor", "none") or options.session.context_engine is not None:
        return options, []
    from hermes.runtime.plugin_joints.providers import context_engine  # for who has one

    engine, why = context_engine(name, settings)
    if engine is None:
        return options, [StatusChanged("option", f"{why}; the compressor stands in")]
    return replace(options, session=replace(options.session, context_engine=engine)), []
