"""What the built-in tools offer, known without importing them.

The first run imports every built-in file that registers a tool and writes down what it registered, keyed by the
file's path, mtime, size and inode, our version and Python's. Later runs read that and import a file when its tool is
first called. A file that changed is imported again; a manifest that cannot be read or written costs time only.
"""

import importlib
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType
from typing import Any

import msgspec
from msgspec import Struct

from hermes.config import paths
from hermes.tools.registration.discovery import BUILTIN_DIR, BUILTIN_PACKAGE, BrokenFile, registers_tools
from hermes.tools.registry import Registered, ToolEntry, ToolRegistry, registry
from hermes.tools.traits import Needs, Traits
from hermes.typed import from_json
from hermes.types import JsonObject

log = logging.getLogger(__name__)

_FORMAT = 4
_lock = threading.RLock()  # guards _loaded; a file that is imported may ask for tools itself
_loaded: list[list[BrokenFile]] = []  # a cache: filled once per process


class ManifestRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One built-in tool, as data."""

    name: str
    toolset: str
    schema: JsonObject
    description: str
    emoji: str
    requires_env: list[str]
    is_async: bool
    max_result_size_chars: float | str | None
    needs: dict[str, list[str]] | None
    flags: JsonObject
    lazy: list[str]  # what only the module itself can answer: check, dynamic, effects
    refine: list[str] | None = None  # module and name: asked for every list of definitions, so best kept in a light one
    check: list[str] | None = None  # the same, for a check that lives outside the tool's own file


class FileRecord(Struct, frozen=True):
    """A built-in file and the tools it registers; none for a helper."""

    stamp: list[int]
    tools: list[ManifestRecord]


class Manifest(Struct, frozen=True):
    """All of them."""

    format: int
    version: str
    python: str
    folder: str
    files: dict[str, FileRecord]


def ensure_builtins(cache: Path | None = None) -> list[BrokenFile]:
    """Have every built-in tool in the registry, imported or not; return the files that are broken."""
    with _lock:
        if not _loaded:
            _loaded.append([])
            _loaded[0] += load_builtins(registry, cache if cache is not None else _cache_file())
            registry.is_filled = True
        return list(_loaded[0])


def load_builtins(tools: ToolRegistry, cache: Path, folder: Path = BUILTIN_DIR) -> list[BrokenFile]:
    """Fill `tools` from the manifest at `cache`, importing only files it does not know as they are now."""
    known = _read(cache, folder)
    files: dict[str, FileRecord] = {}
    broken: list[BrokenFile] = []
    for path in sorted(folder.glob("*.py")):
        stamp = stamp_of(path)
        old = known.get(path.name)
        if old is not None and old.stamp == stamp:
            files[path.name] = old
            _add_lazily(tools, path, old.tools)
            continue
        if path.name == "__init__.py" or not registers_tools(path):
            files[path.name] = FileRecord(stamp, [])
            continue
        module = f"{BUILTIN_PACKAGE}.{path.stem}"
        try:
            importlib.import_module(module)
        except Exception as error:  # the border to one tool's code: a broken file costs that tool only
            log.warning("built-in tool file %s cannot be imported", path.name, exc_info=True)
            broken.append(BrokenFile.of(path, error))
            continue
        files[path.name] = FileRecord(stamp, [_record(one) for one in _of_module(tools, module)])
    if files != known:
        _write(cache, folder, files)
    return broken


def stamp_of(path: Path) -> list[int]:
    """What changes when a file does."""
    info = path.stat()
    return [info.st_mtime_ns, info.st_size, info.st_ino]


class Lazy:
    """A function of a built-in module, imported when it is first called."""

    def __init__(self, module: str, tool: str, pick: Callable[[Registered], Any]) -> None:
        self._module = module
        self._tool = tool
        self._pick = pick
        self.__module__ = module

    def load(self) -> Any:
        """The real function."""
        importlib.import_module(self._module)
        real = registry.get(self._tool)
        if real is None or real.lazy:
            raise ImportError(f"{self._module} no longer registers the tool {self._tool!r}")
        return self._pick(real)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.load()(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self._tool} of {self._module}, not imported yet>"


class _Elsewhere:
    """A module-level function of ours by its address, imported when it is first called."""

    is_quick = True  # as a check

    def __init__(self, module: str, name: str) -> None:
        self.address = [module, name]

    def __call__(self, *args: Any) -> Any:
        module, name = self.address
        return getattr(importlib.import_module(module), name)(*args)


def _address(function: Any) -> list[str] | None:
    if function is None:
        return None
    if isinstance(function, _Elsewhere):
        return function.address
    found = [str(function.__module__), str(function.__qualname__)]
    if "." in found[1] or "<" in found[1]:
        raise TypeError(f"a built-in's refine must be a function of a module, not {found[1]}")
    return found


def _add_lazily(tools: ToolRegistry, path: Path, records: Iterable[ManifestRecord]) -> None:
    module = f"{BUILTIN_PACKAGE}.{path.stem}"
    for record in records:
        if tools.get(record.name) is None:
            tools.add(_registered(record, module))


def _registered(record: ManifestRecord, module: str) -> Registered:
    needs = Needs(**{key: tuple(value) for key, value in record.needs.items()}) if record.needs is not None else None

    def lazily(what: str, pick: Callable[[Registered], Any]) -> Lazy | None:
        return Lazy(module, record.name, pick) if what in record.lazy else None

    effects = lazily("effects", lambda tool: tool.traits.effects)
    entry = ToolEntry(
        record.name,
        record.toolset,
        record.schema,
        Lazy(module, record.name, lambda tool: tool.entry.handler),
        _Elsewhere(*record.check) if record.check else lazily("check", lambda tool: tool.entry.check_fn) or needs,
        record.requires_env,
        record.is_async,
        record.description,
        record.emoji,
        _number(record.max_result_size_chars),
        lazily("dynamic", lambda tool: tool.entry.dynamic_schema_overrides),
    )
    traits = Traits(
        effects=effects,
        needs=needs,
        refine=_Elsewhere(*record.refine) if record.refine else None,
        **record.flags,
    )
    return Registered(entry, traits, "builtin", module, lazy=True)


_FLAGS = ("interactive", "agent_loop", "read_only", "edits", "provenance", "timeout_s", "spill", "guidance")


def _record(tool: Registered) -> ManifestRecord:
    entry, traits = tool.entry, tool.traits
    check = _light_check(entry.check_fn)
    lazy = {
        "check": check is None and entry.check_fn is not None and not isinstance(entry.check_fn, Needs),
        "dynamic": entry.dynamic_schema_overrides is not None,
        "effects": traits.effects is not None,
    }
    size = entry.max_result_size_chars
    return ManifestRecord(
        name=entry.name,
        toolset=entry.toolset,
        schema=entry.schema,
        description=entry.description,
        emoji=entry.emoji,
        requires_env=entry.requires_env,
        is_async=entry.is_async,
        max_result_size_chars="inf" if size == float("inf") else size,
        needs=_needs_data(traits.needs),
        flags={flag: getattr(traits, flag) for flag in _FLAGS},
        lazy=[what for what, needed in lazy.items() if needed],
        refine=_address(traits.refine),
        check=check,
    )


def _light_check(check: Any) -> list[str] | None:
    """The address of a check that can be asked without importing the tool."""
    if isinstance(check, _Elsewhere):
        return check.address
    if not isinstance(check, FunctionType) or check.__module__.startswith(f"{BUILTIN_PACKAGE}."):
        return None
    return None if check.__qualname__ != check.__name__ else [check.__module__, check.__name__]


def _needs_data(needs: Needs | None) -> dict[str, list[str]] | None:
    if needs is None:
        return None
    return {name: list(getattr(needs, name)) for name in ("env", "any_env", "binaries", "any_binary", "modules")}


def _number(value: float | str | None) -> float | None:
    return float("inf") if value == "inf" else value if not isinstance(value, str) else None


def _of_module(tools: ToolRegistry, module: str) -> list[Registered]:
    return [one for one in tools.snapshot().values() if one.source == module and not one.lazy]


def _read(cache: Path, folder: Path) -> dict[str, FileRecord]:
    try:
        manifest = from_json(cache.read_bytes(), Manifest)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, ValueError) as error:
        log.info("the manifest of built-in tools cannot be used and is made anew: %s", error)
        return {}
    current = (_FORMAT, _version(), sys.version, str(folder))
    return manifest.files if (manifest.format, manifest.version, manifest.python, manifest.folder) == current else {}


def _write(cache: Path, folder: Path, files: dict[str, FileRecord]) -> None:
    manifest = Manifest(_FORMAT, _version(), sys.version, str(folder), files)
    temporary = cache.with_name(f".{cache.name}.{os.getpid()}")
    try:
        text = json.dumps(msgspec.to_builtins(manifest), ensure_ascii=False)
        paths.make_private(cache.parent)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(cache)
    except (OSError, TypeError, ValueError) as error:
        log.info("the manifest of built-in tools was not written; the next start imports them again: %s", error)


def _version() -> str:
    # Read off the module, not imported: the package's top also names the agent, which lies above us.
    return str(vars(sys.modules["hermes"])["__version__"])


def _cache_file() -> Path:
    return paths.cache_dir(paths.hermes_home()) / "tools.json"
