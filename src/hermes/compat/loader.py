"""Load foreign Python files under names of our own, with old imports rewritten; nothing is cached beside them.

Each has an `os` of its own, which knows the variables of .env that the file asks for; files beside it that it imports
share one per folder, with what all files of the folder ask for.
"""

import ast
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from hermes.compat.import_rewrite import rewritten
from hermes.compat.names import OLD_ROOTS
from hermes.compat.tool_os import NAME, ToolOs, names_asked_for, with_own_os
from hermes.config import paths

_PREFIX = "hermes_foreign_"
PLUGINS = "hermes_plugins"  # the package that plugins are part of, each with an `os` of its own


def load_file(path: Path) -> ModuleType:
    """Execute the file at `path` afresh and return its module.

    The module lives in `sys.modules` under a name made from its folder, so that `from .helper import x` finds the
    file's neighbours, dataclasses work, and two folders with equal file names do not meet.
    """
    package = _package_of(path.parent)
    return _load(f"{package}.{path.stem}", path, is_package=False)


def load_package(folder: Path) -> ModuleType:
    """Execute the package in `folder` (its `__init__.py`) afresh."""
    package = _package_of(folder.parent)
    return _load(f"{package}.{folder.name}", folder / "__init__.py", is_package=True)


class FixedNames(set[str]):
    """Variables that a file may read of .env; what it asks for beyond them is not added."""

    def update(self, *names: Iterable[str]) -> None:
        """Nothing: what was declared is all there is."""


def load_plugin(folder: Path, name: str, env_names: set[str]) -> ModuleType:
    """Execute the plugin in `folder` afresh as the package `hermes_plugins.<name>`, and return it.

    Relative imports, packages inside it and files beside `__file__` work; nothing else of it is importable by name.
    All its files may read `env_names` of .env.
    """
    if PLUGINS not in sys.modules:
        root = ModuleType(PLUGINS, "Plugins, a package each")
        root.__path__ = []
        sys.modules[PLUGINS] = root
    _find_neighbours()
    whole = f"{PLUGINS}.{name}"
    for known in [known for known in sys.modules if known.startswith(f"{whole}.")]:
        del sys.modules[known]
    return _load(whole, folder / "__init__.py", is_package=True, env_names=env_names)


def lend(module: ModuleType, names: Iterable[str]) -> None:
    """Let `module`, and the files beside it that register nothing themselves, read `names` of .env."""
    for known in (module.__dict__[NAME], _shared_os(module)):
        known.names.update(names)


def _shared_os(module: ModuleType) -> ToolOs:
    root, _, rest = module.__name__.partition(".")
    whole = f"{root}.{rest.partition('.')[0]}" if root == PLUGINS else root
    own: ToolOs = sys.modules[whole].__dict__[NAME]
    return own


class ForeignLoader(importlib.machinery.SourceFileLoader):
    """Compiles from the source each time: bytecode with rewritten imports must not be left for others to find."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.setdefault(NAME, _shared_os(module))
        lend(module, names_asked_for(ast.parse(self.get_data(self.path), filename=self.path)))
        super().exec_module(module)

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]  # the stub lacks the keyword
        tree = with_own_os(rewritten(ast.parse(data, filename=path)))
        return compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)


class _Neighbours(importlib.abc.MetaPathFinder):
    """Finds the files beside a foreign one, by their names of our own."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith((_PREFIX, f"{PLUGINS}.")) or path is None:
            return None
        stem = fullname.rpartition(".")[2]
        for folder in map(Path, path):
            if (folder / stem / "__init__.py").is_file():
                return _spec(fullname, folder / stem / "__init__.py", is_package=True)
            if (folder / f"{stem}.py").is_file():
                return _spec(fullname, folder / f"{stem}.py", is_package=False)
        return None


def _package_of(folder: Path) -> str:
    real = folder.resolve()
    name = _PREFIX + hashlib.sha256(str(real).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    if name not in sys.modules:
        package = ModuleType(name, f"Files of {real}")
        package.__path__ = [str(real)]
        package.__dict__[NAME] = ToolOs(paths.env_file(paths.hermes_home()), set())
        sys.modules[name] = package
    _find_neighbours()
    return name


def _find_neighbours() -> None:
    if not any(isinstance(finder, _Neighbours) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Neighbours())  # before the ordinary finder, which would take the path as it is


def _load(name: str, path: Path, *, is_package: bool, env_names: set[str] | None = None) -> ModuleType:
    spec = _spec(name, path, is_package=is_package)
    module = importlib.util.module_from_spec(spec)
    names = env_names if env_names is not None else set()
    module.__dict__[NAME] = ToolOs(paths.env_file(paths.hermes_home()), names)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        assert spec.loader is not None
        spec.loader.exec_module(module)
    except BaseException as error:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in OLD_ROOTS:
            error.add_note("this module has no counterpart here; docs/compatibility.md lists those that have one")
        raise
    return module


def _spec(name: str, path: Path, *, is_package: bool) -> importlib.machinery.ModuleSpec:
    spec = importlib.util.spec_from_file_location(
        name,
        path,
        loader=ForeignLoader(name, str(path)),
        submodule_search_locations=[str(path.parent)] if is_package else None,
    )
    assert spec is not None
    return spec
