"""Which plugins there are: in the home, in a trusted project, and in installed packages. Nothing of them is run.

What was read is kept in the home's cache with a stamp of each file, so that a start reads one file and looks at stamps.
"""

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from hermes.config import paths
from hermes.errors import UserError
from hermes.extensions.plugins.manifest import FILES, PluginManifest, Source, read_manifest
from hermes.extensions.plugins.offers import Offers
from hermes.typed import from_json

ENTRY_POINTS = "hermes_agent.plugins"
PROJECT_FOLDER = ".hermes/plugins"
PROJECT_SWITCH = "HERMES_ENABLE_PROJECT_PLUGINS"
SAFE_MODE = "HERMES_SAFE_MODE"
_YES = frozenset({"1", "true", "yes", "on"})
_FORMAT = 1
_MOST_FILES = 500  # of one plugin that are looked at for changes
log = logging.getLogger(__name__)


class KnownPlugin(Struct, kw_only=True):
    """What the cache has of one folder or entry point."""

    stamp: str  # of its manifest
    manifest: PluginManifest
    code_stamp: str = ""  # of everything that decides what it offers; empty: that is not known
    env_digest: str = ""
    env_names: list[str] = field(default_factory=list)
    offers: Offers | None = None
    needs: list[str] = field(default_factory=list)  # what the operator was told when it was loaded


class PluginCache(Struct, kw_only=True):
    """Everything that is known of plugins without running them, by folder."""

    format: int = _FORMAT
    version: str = ""
    python: str = ""
    known: dict[str, KnownPlugin] = field(default_factory=dict)
    packages_stamp: str = ""
    packages: list[PluginManifest] = field(default_factory=list)


def is_on(environ: Mapping[str, str], name: str) -> bool:
    """Whether a switch of the environment is on."""
    return environ.get(name, "").strip().lower() in _YES


class PluginFinder:
    """Finds the plugins of one home, and remembers them in its cache."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "plugins"
        self._file = paths.cache_dir(home) / "plugins.json"
        self._cache: PluginCache | None = None
        self._is_changed = False

    @property
    def cache(self) -> PluginCache:
        if self._cache is None:
            self._cache = self._read()
        return self._cache

    def all(self, project: Path | None = None) -> list[PluginManifest]:
        """Every plugin, by key; of two with one key the later source counts: home, project, installed packages."""
        found: dict[str, PluginManifest] = {}
        places: list[tuple[Path, Source]] = [(self.folder, "user")]
        if project is not None:
            places.append((project / PROJECT_FOLDER, "project"))
        for folder, source in places:
            for one in self._in_folder(folder, source):
                found[one.key] = one
        for one in self._packages():
            found[one.key] = one
        return [found[key] for key in sorted(found)]

    def known(self, manifest: PluginManifest) -> KnownPlugin:
        """What the cache has of a plugin that `all` has given."""
        place = manifest.path or f"entry point {manifest.key}"
        one = self.cache.known.get(place)
        if one is None or one.manifest != manifest:
            one = self.cache.known[place] = KnownPlugin(stamp=_stamp_of_manifest(manifest.path), manifest=manifest)
        return one

    def remember(self) -> None:
        """The cache has changed; it is written by `save`."""
        self._is_changed = True

    def save(self) -> None:
        """Write the cache if it has changed; one that cannot be written costs time only."""
        if not self._is_changed:
            return
        self._is_changed = False
        gone = [place for place in self.cache.known if place.startswith("/") and not Path(place).is_dir()]
        for place in gone:
            del self.cache.known[place]
        try:
            paths.made(self.home)
            paths.write_private(self._file, msgspec.json.encode(self.cache).decode())
        except (UserError, OSError, TypeError, ValueError) as error:
            log.info("the cache of plugins was not written: %s", error)

    def _in_folder(self, root: Path, source: Source) -> Iterator[PluginManifest]:
        """The plugins of a folder, and of the categories in it; deeper is not looked."""
        for folder in _folders(root):
            if found := self._manifest(folder, "", source):
                yield found
                continue
            category = folder.rpartition("/")[2]
            yield from filter(None, (self._manifest(inner, category, source) for inner in _folders(folder)))

    def _manifest(self, folder: str, category: str, source: Source) -> PluginManifest | None:
        """The plugin in a folder; None when it has no manifest."""
        stamp = _stamp_of_manifest(folder)
        if not stamp:
            return None
        stamp += f":{int(os.access(f'{folder}/__init__.py', os.F_OK))}"
        known = self.cache.known.get(folder)
        if known is not None and known.stamp == stamp and known.manifest.source == source:
            return known.manifest
        made = read_manifest(Path(folder), category=category, source=source)
        self.cache.known[folder] = KnownPlugin(stamp=stamp, manifest=made)
        self.remember()
        return made

    def _packages(self) -> Sequence[PluginManifest]:
        """Those of installed packages. It is slow, so it is done when a folder of packages has changed."""
        # Not every folder of the path: the first is often the one a person works in, which changes all the time.
        stamp = "|".join(f"{place}:{_time_of(place)}" for place in sys.path if place.endswith("-packages"))
        if self.cache.packages_stamp != stamp:
            self.cache.packages = _entry_points()
            self.cache.packages_stamp = stamp
            self.remember()
        return self.cache.packages

    def _read(self) -> PluginCache:
        version = str(vars(sys.modules["hermes"])["__version__"])
        fresh = PluginCache(version=version, python=sys.version)
        try:
            found = from_json(self._file.read_bytes(), PluginCache)
        except FileNotFoundError:
            return fresh
        except (OSError, msgspec.MsgspecError, ValueError) as error:
            log.info("the cache of plugins cannot be used and is made anew: %s", error)
            return fresh
        is_ours = (found.format, found.version, found.python) == (_FORMAT, version, sys.version)
        return found if is_ours else fresh


def code_stamp(folder: str) -> str:
    """What changes when a file of the plugin does, or is added, or goes."""
    parts: list[str] = []
    waiting = [folder]
    while waiting and len(parts) < _MOST_FILES:
        try:
            with os.scandir(waiting.pop()) as listed:  # not os.walk, which takes twice the time, at every start
                entries = sorted(listed, key=lambda one: one.name)
        except OSError:
            continue
        for one in entries:
            name = one.name
            if name.startswith(".") or name == "__pycache__":
                continue
            try:
                if name.endswith((".py", ".yaml", ".yml", ".md")):
                    info = one.stat()
                    parts.append(f"{name}:{info.st_mtime_ns}:{info.st_size}")
                elif one.is_dir(follow_symlinks=False):
                    waiting.append(one.path)
            except OSError:
                continue  # it went while it was looked at
    return "|".join(parts[:_MOST_FILES])


def _folders(root: str | Path) -> list[str]:
    try:
        with os.scandir(root) as entries:
            return sorted(one.path for one in entries if not one.name.startswith((".", "_")) and one.is_dir())
    except OSError:
        return []


def _stamp_of_manifest(folder: str) -> str:
    """Empty when the folder has no manifest."""
    for name in FILES:
        try:
            info = os.stat(f"{folder}/{name}")  # noqa: PTH116 - of every plugin, at every start
        except OSError:
            continue
        return f"{name}:{info.st_mtime_ns}:{info.st_size}"
    return ""


def _time_of(place: str) -> int:
    try:
        return os.stat(place).st_mtime_ns  # noqa: PTH116 - as above
    except OSError:
        return 0


def _entry_points() -> list[PluginManifest]:
    from importlib import metadata  # 20 ms, paid when packages have changed

    found: dict[str, PluginManifest] = {}
    try:
        points = list(metadata.entry_points(group=ENTRY_POINTS))
    except Exception as error:  # noqa: BLE001 - the metadata of any package may be broken; told in the log
        log.warning("the entry points of installed packages cannot be read: %s", error)
        return []
    for point in points:
        facts: dict[str, Any] = {}
        if point.dist is not None:
            about = point.dist.metadata
            facts = {
                "version": point.dist.version,
                "description": about["Summary"] or "",
                "author": about["Author"] or "",
            }
        found[point.name] = PluginManifest(
            name=point.name, key=point.name, source="entrypoint", module=point.value, **facts
        )
    return [found[name] for name in sorted(found)]
