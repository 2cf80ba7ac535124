"""One plugin: known by its manifest and its recorded offers, and loaded when something of it is needed."""

import hashlib
import importlib
import inspect
import logging
import re
import threading
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from weakref import WeakValueDictionary

from hermes.config.sections.plugins import PluginEntry
from hermes.errors import UserError
from hermes.extensions.plugins import joints
from hermes.extensions.plugins.manifest import PluginManifest
from hermes.extensions.plugins.offers import LiveOffers, Offers

_ENV_NAME = r"""(?:getenv|environ(?:\.get)?|get_env_value)\s*[\[(]\s*["']([A-Za-z_][A-Za-z0-9_]*)["']"""
_lock = threading.RLock()  # a plugin is loaded by one thread at a time; it may load what it needs of others
_by_module: WeakValueDictionary[str, "Plugin"] = WeakValueDictionary()  # a cache: whose code a module is
loading: ContextVar["Plugin | None"] = ContextVar("hermes_plugin_loading", default=None)
log = logging.getLogger("hermes.plugins")


class PluginBroken(UserError):
    """A plugin cannot be loaded; the text is one line."""


class Plugin:
    """A plugin of this process. `load` imports it and calls its `register`, once."""

    def __init__(self, manifest: PluginManifest, entry: PluginEntry, home: Path) -> None:
        self.manifest = manifest
        self.entry = entry
        self.home = home
        self.offers: Offers | None = None  # as recorded, in this process or an earlier one
        self.recorded = Offers()  # of the `register` that runs, or ran here
        self.live = LiveOffers()
        self.is_loaded = False
        self.error = manifest.error  # one line; the plugin is absent
        self.details = ""  # the traceback of it
        self.is_shown = False  # whether the error was told to a person
        self.injectors: list[Callable[[str], bool]] = []
        self.reserved: Callable[[str], frozenset[str]] = lambda _kind: frozenset()

    @property
    def key(self) -> str:
        return self.manifest.key

    @property
    def source(self) -> str:
        """What its tools are known by in the registry."""
        return f"plugin {self.key}"

    def inject(self, words: str) -> bool:
        return any(inject(words) for inject in self.injectors)

    def taken_commands(self, kind: str) -> frozenset[str]:
        """Names of commands and helper tasks that belong to Hermes or another plugin."""
        return self.reserved(kind)

    def loaded(self) -> "Plugin":
        """The plugin itself, imported by now; `PluginBroken` when it cannot be."""
        if not self.is_loaded:
            self.load()
        if self.error:
            raise PluginBroken(f"the plugin {self.key!r} is not loaded: {self.error}")
        return self

    def load(self) -> None:
        """Import it and call `register`; what goes wrong is in `error`, and what it registered before that stays."""
        with _lock:
            if self.is_loaded or self.error:
                return
            self.is_loaded = True
            token = loading.set(self)
            try:
                with joints.ground().quiet(self.key), joints.tools().capture(self):
                    self._register(self._module())
            except KeyboardInterrupt:
                self.is_loaded = False
                raise
            except BaseException as error:
                self.error = one_line(error)
                self.details = _traceback(error)
                log.warning("plugin %r is not loaded: %s", self.key, self.error, exc_info=error)
            finally:
                loading.reset(token)
            self.recorded.tools += [
                one
                for one in joints.tools().captured(self)
                if one.name not in {known.name for known in self.recorded.tools}
            ]
            self.offers = self.recorded

    def sound_offers(self) -> Offers | None:
        """What it offers, when it was loaded without a fault."""
        return None if self.error else self.offers

    def _module(self) -> ModuleType:
        manifest = self.manifest
        if manifest.module:
            return importlib.import_module(manifest.module.partition(":")[0])
        from hermes.compat.loader import FixedNames, load_plugin  # paid by the first plugin that is loaded

        folder = Path(manifest.path)
        importlib.invalidate_caches()
        _by_module[module_name(manifest)] = self
        wanted = {one.name for one in manifest.requires_env} | set(env_names(folder))
        if manifest.needs is not None and "*" not in manifest.needs.env:
            wanted = FixedNames(manifest.needs.env)
        return load_plugin(folder, module_name(manifest), wanted)

    def _register(self, module: ModuleType) -> None:
        register = getattr(module, "register", None)
        if register is None:
            raise PluginBroken("it defines no register(ctx)")
        if not callable(register):
            raise PluginBroken(f"its register is no function, but {type(register).__name__}")
        from hermes.extensions.plugins.plugin_context import PluginContext  # as above

        answer = register(PluginContext(self))
        if inspect.iscoroutine(answer):
            answer.close()
            raise PluginBroken("its register is a coroutine; it must be a plain function")


def plugin_of_module(name: str) -> Plugin | None:
    """The plugin that a module is part of; None for any other module."""
    root, _, rest = name.partition(".")
    return _by_module.get(rest.partition(".")[0]) if root == "hermes_plugins" else None


def module_name(manifest: PluginManifest) -> str:
    """Its name below `hermes_plugins`."""
    plain = re.sub(r"\W", "_", manifest.key.replace("/", "__").replace("-", "_"))
    if manifest.source == "user":
        return plain
    return f"{plain}_{hashlib.sha256(manifest.path.encode()).hexdigest()[:8]}"  # of a project: another may have its key


def one_line(error: BaseException) -> str:
    """What went wrong, for a person."""
    words = " ".join(str(error).split())
    notes = " ".join(getattr(error, "__notes__", ()))
    if isinstance(error, PluginBroken):
        return words
    if isinstance(error, ModuleNotFoundError) and error.name:
        root = error.name.partition(".")[0]
        return (notes and f"{words}: {notes}") or f"it needs the Python package {root!r}, which is not installed"
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} ({Path(error.filename or '').name}, line {error.lineno})"
    return f"{type(error).__name__}: {words}"[:500] if words else type(error).__name__


def env_names(folder: Path) -> list[str]:
    """The variables that the plugin's text asks for, as far as it says them plainly."""
    found: set[str] = set()
    plainly = re.compile(_ENV_NAME)  # here: a start with known plugins reads no text
    for file in sorted(folder.rglob("*.py"))[:200]:
        if not file.is_file():
            continue  # a pipe would be waited for
        try:
            found.update(plainly.findall(file.read_text(encoding="utf-8", errors="replace")))
        except OSError:
            continue
    return sorted(found)


def _traceback(error: BaseException) -> str:
    import traceback  # for who has a broken plugin

    return "".join(traceback.format_exception(error))
