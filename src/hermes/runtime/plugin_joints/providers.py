"""Engines, memories, models and search services of plugins: checked, and made known where settings name them."""

import copy
import logging
from typing import Any, get_args

from hermes.config.settings import Settings
from hermes.context.engine import ContextEngine
from hermes.context.memory.provider import PROVIDERS, MemoryProvider, ProviderHome
from hermes.extensions.plugins.plugin import Plugin
from hermes.extensions.plugins.plugin_set import is_asked_for, plugins_of
from hermes.models.endpoint import ApiMode
from hermes.models.providers.catalogue import ProviderEntry, add_provider, find_provider
from hermes.tools.registry import invalidate_check_fn_cache
from hermes.tools.web.providers import SEARCHES, known_services
from hermes.types import JsonObject

log = logging.getLogger("hermes.plugins")


class PluginProviders:
    """`ProviderJoint` over the tables of the capabilities."""

    def __init__(self) -> None:
        self._models: dict[str, str] = {}  # a cache: the ids that plugins have brought, and whose they are

    def is_engine(self, value: Any) -> bool:
        return isinstance(value, ContextEngine)

    def is_memory(self, value: Any) -> bool:
        return isinstance(value, MemoryProvider)

    def add_model_provider(self, plugin: Plugin, data: JsonObject) -> str:
        name = str(data.get("name") or "").strip().lower()
        if not name:
            return "a model provider is left out: it has no name"
        if find_provider(name) is not None and self._models.get(name) != plugin.key:
            return f"the model provider {name!r} is left out: there is one of that name"
        mode = str(data.get("api_mode") or "chat_completions")
        if mode not in get_args(ApiMode):
            return (
                f"the model provider {name!r} is left out: it speaks {mode!r}; there are {', '.join(get_args(ApiMode))}"
            )
        if not data.get("base_url"):
            return f"the model provider {name!r} is left out: it has no base_url"
        entry = ProviderEntry(
            id=name,
            name=str(data.get("display_name") or name),
            base_url=str(data["base_url"]),
            api_mode=mode,  # type: ignore[arg-type]  # looked at above
            env=tuple(data.get("env_vars") or ()),
            hosts=(str(data["hostname"]),) if data.get("hostname") else (),
            aliases=tuple(one for one in data.get("aliases") or () if find_provider(str(one)) is None),
            headers={str(key).lower(): str(value) for key, value in (data.get("default_headers") or {}).items()},
            signup=str(data.get("signup_url") or ""),
        )
        add_provider(entry)
        self._models[name] = plugin.key
        return ""

    def add_search(self, plugin: Plugin, name: str) -> str:
        if any(one.name == name for one in known_services()):
            return f"the search service {name!r} is left out: there is one of that name"
        SEARCHES[name] = lambda: plugin.loaded().live.web_search_providers[name]
        invalidate_check_fn_cache()  # whether there is anybody to search with was asked before
        return ""


JOINT = PluginProviders()


def add_memory_provider(name: str, settings: Settings) -> None:
    """Have a plugin's memory provider known, when `memory.provider` names it; `PluginBroken` when it is broken."""
    if not name or name in PROVIDERS.names() or not (settings.home / "plugins").is_dir():
        return
    plugin = plugins_of(settings.home).memory_plugin(name, settings)
    if plugin is not None and plugin.live.memory_provider is not None:
        made: MemoryProvider = plugin.live.memory_provider

        def make(_home: ProviderHome) -> MemoryProvider:
            return made

        PROVIDERS.add(name, make)


def context_engine(name: str, settings: Settings) -> tuple[ContextEngine | None, str]:
    """The engine that `context.engine` names, one for each agent, and else why there is none."""
    if not is_asked_for(settings):
        return None, f"there is no context engine {name!r}; no plugin is switched on"
    found = [one for one in plugins_of(settings.home).chosen(settings) if one.offers is not None]
    plugin = next((one for one in found if one.offers is not None and one.offers.context_engine == name), None)
    if plugin is None:
        names = [one.offers.context_engine for one in found if one.offers is not None and one.offers.context_engine]
        return None, f"there is no context engine {name!r}; there are: {', '.join(['compressor', 'none', *names])}"
    plugin.load()
    engine: ContextEngine | None = plugin.live.context_engine
    if engine is None:
        return None, f"the plugin {plugin.key!r}, whose context engine this is, is not loaded: {plugin.error}"
    try:
        return copy.deepcopy(engine), ""
    except Exception as error:  # noqa: BLE001 - what an engine holds is its own affair
        log.info("the context engine %r cannot be copied, and serves all agents of the process: %s", name, error)
        return engine, ""
