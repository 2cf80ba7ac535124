"""Tool files that are not ours: a home's `tools/`, and the `.hermes/tools/` of a project the user trusts."""

import ast
import importlib
import logging
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from hermes.compat.loader import lend, load_file
from hermes.config.paths import PROJECT_TOOLS
from hermes.tools.registration.discovery import BrokenFile, is_register_call, tree_registers
from hermes.tools.registration.manifest import stamp_of
from hermes.tools.registry import Registered, Rejection, ToolRegistry, registry

log = logging.getLogger(__name__)

_lock = threading.RLock()  # one file is executed by one thread at a time; guards `ToolRegistry.files` and _projects
_projects: dict[Path, ToolRegistry] = {}  # a cache: what the files of a project registered, for all its sessions


class LoadedFile(Struct):
    """What came of a folder: files in use, files with an error, files left alone, and names that were refused."""

    loaded: list[Path] = field(default_factory=list)
    broken: list[BrokenFile] = field(default_factory=list)
    unused: list[Path] = field(default_factory=list)
    idle: list[BrokenFile] = field(default_factory=list)  # would register tools, but not where that counts
    rejected: list[Rejection] = field(default_factory=list)


class FileState(Struct):
    """What is known of a foreign file as long as its stamp is the same."""

    stamp: list[int]
    registers: bool
    toolsets: frozenset[str] | None  # None: not to be read off its text
    executed: bool = False
    broken: BrokenFile | None = None
    idle: BrokenFile | None = None


def load_folder(
    folder: Path,
    origin: Literal["home", "project", "plugin"],
    tools: ToolRegistry = registry,
    wanted: Iterable[str] | None = None,
) -> LoadedFile:
    """Execute the tool files of `folder`, sorted, into `tools`. A broken one costs its own tools only.

    With `wanted`, a file whose toolsets can be read off its text and are none of these is left alone. A file that
    was executed before and has not changed is not executed again. What a changed file no longer registers, or a file
    that is gone had registered, is forgotten.
    """
    found = LoadedFile()
    asked = None if wanted is None else frozenset(wanted)
    paths = [path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]
    _forget_gone(folder, paths, tools)
    for path in paths:
        with _lock:
            state = _state_of(path, tools)
            if state.broken is None and not state.registers:
                found.idle += [state.idle] if state.idle is not None else []
                continue
            if state.broken is None and asked is not None and state.toolsets is not None and not state.toolsets & asked:
                found.unused.append(path)
                continue
            if state.broken is None and not state.executed:
                refused_before = len(tools.rejections)
                older = _registered_by(path, tools)
                state.broken = _run(path, origin, tools)
                state.executed = True
                if state.broken is None:
                    _deregister(older, tools)
                else:  # what it registered before it failed does not count
                    newer = [tool for tool in _registered_by(path, tools) if tool not in older]
                    _deregister(newer, tools)
                    for tool in older:
                        tools.add(tool)
                found.rejected += tools.rejections[refused_before:]
        if state.broken is None:
            found.loaded.append(path)
        else:
            found.broken.append(state.broken)
    return found


def _forget_gone(folder: Path, paths: Iterable[Path], tools: ToolRegistry) -> None:
    with _lock:
        for path in {known for known in tools.files if known.parent == folder} - set(paths):
            del tools.files[path]
            _deregister(_registered_by(path, tools), tools)


def _registered_by(path: Path, tools: ToolRegistry) -> list[Registered]:
    return [tool for tool in tools.snapshot().values() if tool.source == str(path)]


def _deregister(older: Iterable[Registered], tools: ToolRegistry) -> None:
    """Remove those that nothing has taken the place of."""
    for tool in older:
        if tools.get(tool.entry.name) is tool:
            tools.deregister(tool.entry.name)


def _state_of(path: Path, tools: ToolRegistry) -> FileState:
    """What is known of the file, read afresh when it has changed."""
    try:
        stamp = stamp_of(path)
    except OSError as error:
        return FileState([], registers=False, toolsets=None, broken=BrokenFile.of(path, error))
    known = tools.files.get(path)
    if isinstance(known, FileState) and known.stamp == stamp:
        return known
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
        state = FileState(stamp, registers=tree_registers(tree), toolsets=toolsets_named(tree))
        inside = next(
            (node.lineno for node in ast.walk(tree) if isinstance(node, ast.Expr) and is_register_call(node)), 0
        )
        if inside and not state.registers:
            state.idle = BrokenFile(path, inside, "a tool counts only when it is registered at the file's top level")
    except (OSError, SyntaxError, ValueError) as error:
        state = FileState(stamp, registers=False, toolsets=None, broken=BrokenFile.of(path, error))
    tools.files[path] = state
    return state


def _run(path: Path, origin: Literal["home", "project", "plugin"], tools: ToolRegistry) -> BrokenFile | None:
    importlib.invalidate_caches()
    try:
        with tools.loading(origin, str(path)):
            module = load_file(path)
        lend(module, [name for tool in _registered_by(path, tools) for name in tool.entry.requires_env])
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the border to a user's file
        log.info("tool file %s cannot be used: %s: %s", path, type(error).__name__, error)
        return BrokenFile.of(path, error)
    return None


def toolsets_named(tree: ast.Module) -> frozenset[str] | None:
    """The toolsets a file registers into, read off its text; None when they are not all plain strings."""
    names: set[str] = set()
    for node in tree.body:
        for call in _registrations(node):
            value = next((word.value for word in call.keywords if word.arg == "toolset"), None)
            if value is None and len(call.args) > 1:
                value = call.args[1]
            if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
                return None
            names.add(value.value)
    return frozenset(names) if names else None


def _registrations(node: ast.stmt) -> list[ast.Call]:
    if is_register_call(node) and isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return [node.value]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [
            one
            for one in node.decorator_list
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "tool"
        ]
    return []


def is_trusted(project: Path, settings: Mapping[str, Any]) -> bool:
    """Whether the user has said that this very folder's own code may run."""
    section = settings.get("tools")
    trusted = section.get("trusted_projects", ()) if isinstance(section, Mapping) else ()
    real = project.resolve()
    return any(Path(str(one)).expanduser().resolve() == real for one in trusted)


def project_tools(project: Path, settings: Mapping[str, Any]) -> tuple[dict[str, Registered], LoadedFile]:
    """The tools of a trusted project, for one session's view only; none when it is not trusted.

    They never reach the process's registry. A name that a tool there has already stays with that tool.
    """
    if not is_trusted(project, settings):
        return {}, LoadedFile()
    with _lock:
        own = _projects.setdefault(project.resolve(), ToolRegistry())
    found = load_folder(project / PROJECT_TOOLS, "project", own)
    tools = own.snapshot()
    for name in [name for name in tools if registry.get(name) is not None]:
        other = registry.get(name)
        assert other is not None
        found.rejected.append(Rejection(name, tools[name].entry.toolset, other.entry.toolset, tools[name].source))
        del tools[name]
    return tools, found


def left_out_files(home: Path, tools: ToolRegistry) -> list[str]:
    """A sentence for each tool file of the home that was executed and could not be used."""
    folder = home / "tools"
    broken = [file.broken for path, file in list(tools.files.items()) if file.broken and folder in path.parents]
    return [f"the tool file {one.path} is left out: line {one.line or '?'}: {one.error}" for one in broken]
