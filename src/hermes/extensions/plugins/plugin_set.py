"""The plugins of one home in this process: which are on, what they offer, and what is wrong with them.

A start reads what the plugins offered the last time they were loaded, and imports none. One that is new, or whose
files, settings or variables have changed, is loaded to learn it, once. After that it is loaded when a tool of it is
called, a hook fires that it listens to, or a command of it is used.
"""

import hashlib
import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.config.sections.plugins import PluginEntry, Section
from hermes.config.settings import Settings
from hermes.errors import UserError
from hermes.extensions.plugins import joints
from hermes.extensions.plugins.consents import Consents
from hermes.extensions.plugins.find_plugins import (
    PROJECT_FOLDER,
    PROJECT_SWITCH,
    SAFE_MODE,
    PluginFinder,
    code_stamp,
    is_on,
)
from hermes.extensions.plugins.manifest import PluginManifest
from hermes.extensions.plugins.offers import CommandOffer, Offers
from hermes.extensions.plugins.plugin import Plugin, PluginBroken, env_names

log = logging.getLogger("hermes.plugins")
_sets: dict[Path, "PluginSet"] = {}  # a cache: plugins are imported once a process
_lock = threading.RLock()  # guards _sets, and the choice of a set


def plugins_of(home: Path) -> "PluginSet":
    """The set of this home."""
    with _lock:
        if home not in _sets:
            _sets[home] = PluginSet(home)
        return _sets[home]


def is_asked_for(settings: Settings) -> bool:
    """Whether any plugin is switched on; all that a start without plugins pays."""
    return "plugins" in settings.tree and bool(settings.of(Section).enabled) and not is_on(settings.environ, SAFE_MODE)


class PluginState(Struct, frozen=True, kw_only=True):
    """One plugin as lists show it."""

    manifest: PluginManifest
    status: str  # enabled, disabled, not enabled
    error: str = ""
    details: str = ""
    offers: Offers | None = None

    def as_json(self) -> dict[str, Any]:
        one = self.manifest
        facts: dict[str, Any] = {
            "name": one.name,
            "key": one.key,
            "status": self.status,
            "version": one.version,
            "description": one.description,
            "source": one.source,
            "kind": one.kind,
            "declares": one.declared(),
            "offers": self.offers.lines() if self.offers is not None else [],
            "warnings": [*one.warnings, *(self.offers.warnings if self.offers is not None else [])],
        }
        return facts | ({"error": self.error} if self.error else {})


class PluginSet:
    """What one home has. `chosen` is what the settings switch on; asking twice is cheap."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.finder = PluginFinder(home)
        self.consents = Consents(home)
        self.reserved: dict[str, frozenset[str]] = {}  # names of Hermes' own commands, by kind
        self.injectors: list[Callable[[str], bool]] = []
        self._plugins: dict[str, Plugin] = {}  # by folder or entry point
        self._chosen: dict[tuple[Any, ...], list[Plugin]] = {}

    # -- choosing ----------------------------------------------------------------------------------------------------

    def chosen(self, settings: Settings, cwd: Path | None = None, *, force: bool = False) -> list[Plugin]:
        """The plugins that are switched on, ready to be used: each has its offers, or an error."""
        if not is_asked_for(settings):
            return []
        section, project = settings.of(Section), project_of(settings, cwd)
        key = (section.enabled, section.disabled, repr(section.entries), project)
        with _lock:
            if force:
                self._chosen.clear()
                self.finder = PluginFinder(self.home)
            if key not in self._chosen:
                self._chosen[key] = self._choose(settings, section, project)
            return self._chosen[key]

    def _choose(self, settings: Settings, section: Section, project: Path | None) -> list[Plugin]:
        found = self.finder.all(project)
        wanted = [one for one in found if _status(one, section) == "enabled"]
        chosen, config = [], _config_stamp(self.home)
        for manifest in wanted:
            if manifest.kind == "exclusive":
                continue  # it is loaded when `memory.provider` names it
            plugin = self.plugin(manifest, section)
            self._prepare(plugin, settings, config)
            chosen.append(plugin)
        chosen += [_missing(name, self.home) for name in _unknown(section, found)]
        self.finder.save()
        return chosen

    def plugin(self, manifest: PluginManifest, section: Section) -> Plugin:
        """The plugin of this process for a manifest; another one when its files have been replaced by others."""
        place = manifest.path or f"entry point {manifest.key}"
        known = self._plugins.get(place)
        if known is None or known.manifest != manifest:
            known = Plugin(manifest, PluginEntry(), self.home)
            known.injectors = self.injectors
            known.reserved = self._reserved
            self._plugins[place] = known
        known.entry = section.entries.get(manifest.key) or section.entries.get(manifest.name) or PluginEntry()
        return known

    def _reserved(self, kind: str) -> frozenset[str]:
        if kind not in self.reserved:
            self.reserved[kind] = joints.ground().taken(kind)
        return self.reserved[kind]

    def _prepare(self, plugin: Plugin, settings: Settings, config: str) -> None:
        """Know what it offers: from the cache, else by loading it."""
        manifest = plugin.manifest
        try:
            given = self.consents.of(manifest)
            if given is not None:
                plugin.error = plugin.error or given.objection(manifest)
            elif not manifest.error:
                self.consents.give(manifest)
        except UserError as error:
            plugin.error = plugin.error or str(error)
        if plugin.error or plugin.is_loaded:
            return
        known = self.finder.known(manifest)
        stamp = (code_stamp(manifest.path) if manifest.path else self.finder.cache.packages_stamp) + config
        digest = _digest(known.env_names, settings)
        if known.offers is not None and known.code_stamp == stamp and known.env_digest == digest:
            plugin.offers = known.offers
            if known.offers.is_empty:
                plugin.load()  # whatever it does, it does while it is imported
            return
        plugin.load()
        names = env_names(Path(manifest.path)) if manifest.path else []
        known.offers = plugin.sound_offers()
        known.code_stamp, known.env_names = stamp, sorted({*names, *(one.name for one in manifest.requires_env)})
        known.env_digest = _digest(known.env_names, settings)
        self.finder.remember()

    # -- looking -----------------------------------------------------------------------------------------------------

    def states(self, settings: Settings, cwd: Path | None = None) -> list[PluginState]:
        """Every plugin there is, on or off; those that are on are loaded, so that their faults are seen."""
        section, states = settings.of(Section), []
        on = {plugin.key: plugin for plugin in self.chosen(settings, cwd)}
        for manifest in self.finder.all(project_of(settings, cwd)):
            plugin = on.get(manifest.key)
            if plugin is not None:
                plugin.load()
            error = plugin.error if plugin is not None else manifest.error
            states.append(
                PluginState(
                    manifest=manifest,
                    status=_status(manifest, section),
                    error=error,
                    details=plugin.details if plugin is not None else "",
                    offers=plugin.offers if plugin is not None else None,
                )
            )
        listed = {one.manifest.key for one in states}
        states += [
            PluginState(manifest=one.manifest, status="enabled", error=one.error)
            for key, one in on.items()
            if key not in listed
        ]
        self.finder.save()
        return states

    def find(self, name: str, settings: Settings, cwd: Path | None = None) -> PluginManifest:
        """The plugin of this key, or else of this name; `UserError` when there is none, or several."""
        found = self.finder.all(project_of(settings, cwd))
        self.finder.save()
        exact = [one for one in found if one.key == name]
        named = exact or [one for one in found if name in (one.name, Path(one.path).name)]
        if len(named) == 1:
            return named[0]
        if named:
            raise UserError(f"several plugins are called {name!r}; say which: {', '.join(one.key for one in named)}")
        from difflib import get_close_matches  # only when something is wrong

        near = get_close_matches(name, [one.key for one in found], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "; see: hermes plugins list"
        raise UserError(f"there is no plugin {name!r}{hint}")

    def memory_plugin(self, name: str, settings: Settings) -> Plugin | None:
        """The plugin whose memory provider `memory.provider` names, loaded; None when there is none."""
        if is_on(settings.environ, SAFE_MODE):
            return None
        section = settings.of(Section)
        for manifest in self.finder.all():
            if manifest.kind == "exclusive" and name in (manifest.key, manifest.name, Path(manifest.path).name):
                plugin = self.plugin(manifest, section)
                objection = self.consents.objection(manifest)
                if objection:
                    raise PluginBroken(f"the plugin {manifest.key!r} is not loaded: {objection}")
                self.finder.save()
                return plugin.loaded()
        self.finder.save()
        return None

    # -- what plugins bring to surfaces ------------------------------------------------------------------------------

    def commands(self, settings: Settings, cwd: Path | None = None) -> dict[str, tuple[Plugin, CommandOffer]]:
        """The slash commands of plugins by name; the first plugin has it."""
        found: dict[str, tuple[Plugin, CommandOffer]] = {}
        for plugin in self.chosen(settings, cwd):
            for offer in plugin.offers.commands if plugin.offers is not None else ():
                found.setdefault(offer.name, (plugin, offer))
        return found

    def cli_commands(self, settings: Settings, cwd: Path | None = None) -> dict[str, tuple[Plugin, CommandOffer]]:
        """The commands of `hermes` that plugins bring, by name."""
        found: dict[str, tuple[Plugin, CommandOffer]] = {}
        for plugin in self.chosen(settings, cwd):
            for offer in plugin.offers.cli_commands if plugin.offers is not None else ():
                found.setdefault(offer.name, (plugin, offer))
        return found

    def skill(self, name: str, settings: Settings, cwd: Path | None = None) -> Path | None:
        """The file of the skill `<plugin>:<name>`; None when there is none."""
        owner, _, wanted = name.partition(":")
        for plugin in self.chosen(settings, cwd):
            if owner in (plugin.key, plugin.manifest.name) and plugin.offers is not None:
                for offer in plugin.offers.skills:
                    if offer.name == wanted:
                        return Path(offer.path)
        return None


def required(settings: Settings) -> list[str]:
    """The keys of plugins that must be loaded, or nothing runs."""
    return [key for key, entry in settings.of(Section).entries.items() if entry.required]


def callbacks(plugin: Plugin, kind: str, name: str) -> Iterable[Callable[..., Any]]:
    """For each registration of the plugin a function that loads it when it is first called."""
    offers = plugin.offers
    names = (offers.hooks if kind == "hooks" else offers.middleware) if offers is not None else []
    return [_Deferred(plugin, kind, name, place) for place in range(names.count(name))]


class _Deferred:
    """A hook of a plugin that may not be imported yet."""

    def __init__(self, plugin: Plugin, kind: str, name: str, place: int) -> None:
        self._plugin = plugin
        self._of = (kind, name, place)

    def resolve(self) -> Callable[..., Any]:
        """The real function; `PluginBroken` when the plugin cannot be loaded, or no longer registers it."""
        kind, name, place = self._of
        self._plugin.load()
        found = getattr(self._plugin.live, kind).get(name, ())
        if place >= len(found):
            why = self._plugin.error or f"it no longer registers {name}"
            raise PluginBroken(f"the plugin {self._plugin.key!r} is not loaded: {why}")
        callback = found[place]
        if not callable(callback):
            raise PluginBroken(f"its {name} cannot be called: it is {type(callback).__name__}")
        return callback  # type: ignore[no-any-return]  # a plugin's own

    def __call__(self, **keywords: Any) -> Any:
        callback = self.resolve()
        return callback(**_taken(callback, keywords))


def _taken(callback: Callable[..., Any], keywords: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return keywords
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return keywords
    names = {one.name for one in parameters}
    return {key: value for key, value in keywords.items() if key in names}


def project_of(settings: Settings, cwd: Path | None) -> Path | None:
    """The project at `cwd` whose plugins may be used: the nearest with some, if trusted, or if the variable says so."""
    here = cwd or Path.cwd()
    for place in (here, *here.parents):
        folder = place / PROJECT_FOLDER
        if (
            place != settings.home.parent
            and folder.is_dir()
            and folder.resolve() != (settings.home / "plugins").resolve()
        ):
            trusted = joints.ground().is_trusted(place, settings.mapping)
            return place if trusted or is_on(settings.environ, PROJECT_SWITCH) else None
    return None


def _config_stamp(home: Path) -> str:
    """A part of every plugin's stamp: what one offers may depend on its settings."""
    try:
        info = (home / "config.yaml").stat()
    except OSError:
        return ""
    return f"|config:{info.st_mtime_ns}:{info.st_size}"


def _status(manifest: PluginManifest, section: Section) -> str:
    names = {manifest.key, manifest.name}
    if not names.isdisjoint(section.disabled):
        return "disabled"
    return "enabled" if not names.isdisjoint(section.enabled) else "not enabled"


def _unknown(section: Section, found: list[PluginManifest]) -> list[str]:
    known = {name for one in found for name in (one.key, one.name)}
    return [name for name in dict.fromkeys(section.enabled) if name not in known and name not in section.disabled]


def _missing(name: str, home: Path) -> Plugin:
    manifest = PluginManifest(name=name, key=name, error="it is switched on, and is nowhere to be found")
    return Plugin(manifest, PluginEntry(), home)


def _digest(names: Iterable[str], settings: Settings) -> str:
    """Changes when one of the variables does; says nothing about them."""
    told = hashlib.sha256()
    for name in sorted(names):
        told.update(f"{name}={settings.lookup(name)!r};".encode("utf-8", "surrogateescape"))
    return told.hexdigest()[:16]
