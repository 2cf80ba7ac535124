"""Registration tables: a capability adds itself by adding a file, so two pieces of work never edit the same one."""

import importlib
import os
import sys
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class Table(Generic[Entry]):
    """Entries by name: one module of `package` each, holding the entry as `attribute`; loaded when asked for.

    `add` is for entries that do not live in the package, such as a plugin's.
    """

    def __init__(self, package: str, attribute: str) -> None:
        self._package = package
        self._attribute = attribute
        self._added: dict[str, Entry] = {}
        self._modules: dict[str, ModuleType] = {}

    def names(self) -> list[str]:
        """Every entry's name, sorted, without importing any."""
        return sorted({*self._files, *self._added})

    def summary(self, name: str) -> str:
        """The first line of the entry's docstring, read without importing its module."""
        file = self._files.get(name)
        if file is None:
            return ((getattr(self._added.get(name), "__doc__", None) or "").splitlines() or [""])[0]
        if (module := sys.modules.get(f"{self._package}.{file.stem}")) is not None:
            return (module.__doc__ or "").strip().split("\n", 1)[0]
        import ast  # paid by lists and help

        doc = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
        return (doc or "").split("\n", 1)[0]

    def load(self, name: str) -> Entry:
        """The entry itself; `KeyError` when there is none by that name."""
        if name in self._added:
            return self._added[name]
        module = self._modules.get(name)
        if module is None:
            if name not in self._files:
                raise KeyError(name)
            module = importlib.import_module(f"{self._package}.{self._files[name].stem}")
            self._modules[name] = module  # every session asks for some of them
        entry: Entry = getattr(module, self._attribute)
        return entry

    def add(self, name: str, entry: Entry) -> None:
        """Add an entry from elsewhere; a name that is taken is an error, at the latest when the table is read."""
        if name in self._added or name in self.__dict__.get("_files", ()):
            raise ValueError(f"{name!r} is already in the table {self._package}")
        self._added[name] = entry

    def remove(self, name: str) -> None:
        """Take out an entry that was added; `KeyError` when there is none by that name."""
        del self._added[name]

    @cached_property
    def _files(self) -> dict[str, Path]:
        spec = find_spec(self._package)
        folders = list(spec.submodule_search_locations or []) if spec else []
        files = {
            name[:-3].rstrip("_").replace("_", "-"): Path(folder, name)
            for folder in folders
            for name in os.listdir(folder)  # noqa: PTH208 - several tables are read in every start
            if name.endswith(".py") and not name.startswith("_")
        }
        taken = sorted(files.keys() & self._added.keys())
        if taken:
            raise ValueError(f"{taken[0]!r} is already in the table {self._package}")
        return files
