"""`os` as a tool file sees it: its environment also has the variables of .env that the file asks for by name.

The process's own environment is never written to: commands, libraries and other files would all see the value. So
`import os` of a tool file binds a module of its own, as its old imports do, while the file is compiled.
"""

import ast
import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from types import ModuleType
from typing import Any

from hermes.config.dotenv import read_env

NAME = "__hermes_os__"  # in the globals of a tool file; two underscores at the end, so that classes do not mangle it


class ToolOs(ModuleType):
    """The module `os` with `environ` and `getenv` of one file. What else is asked of it, the real one answers."""

    def __init__(self, env_file: Path, names: set[str]) -> None:
        super().__init__("os", os.__doc__)
        self.names = names  # that the file asks for; grows with what it registers
        self.environ = ToolEnviron(os.environ, env_file, names)

    def getenv(self, key: str, default: Any = None) -> Any:
        return self.environ.get(key, default)

    def pour_into(self, target: dict[str, Any]) -> None:
        """`from os import *`."""
        target.update({name: getattr(self, name) for name in os.__all__})

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def __dir__(self) -> list[str]:
        return dir(os)


class ToolEnviron(MutableMapping[str, str]):
    """The environment, and behind it those variables of .env that are asked for.

    What the file itself writes goes to the real one, as before: it may be meant for a library that the file calls.
    """

    def __init__(self, real: MutableMapping[str, str], env_file: Path, names: set[str]) -> None:
        self._real = real
        self._env_file = env_file
        self._names = names

    def __getitem__(self, key: str) -> str:
        try:
            return self._real[key]
        except KeyError:
            if key in self._names and (found := read_env(self._env_file).get(key)) is not None:
                return found
            raise

    def __setitem__(self, key: str, value: str) -> None:
        self._real[key] = value

    def __delitem__(self, key: str) -> None:
        del self._real[key]

    def __iter__(self) -> Iterator[str]:
        yield from self._real
        if lent := self._names.difference(self._real):
            yield from sorted(lent.intersection(read_env(self._env_file)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def copy(self) -> dict[str, str]:
        return dict(self)

    def __or__(self, other: Any) -> dict[str, str]:
        return self.copy() | dict(other)

    def __ror__(self, other: Any) -> dict[str, str]:
        return dict(other) | self.copy()


def with_own_os(tree: ast.Module) -> ast.Module:
    """`tree` with every import of `os` bound to the file's own; line numbers stay."""
    changed = _OsImports().visit(tree)
    assert isinstance(changed, ast.Module)
    return ast.fix_missing_locations(changed)


def names_asked_for(tree: ast.Module) -> set[str]:
    """The variables that `requires_env=` and `Needs(env=…)` name, as far as the text tells.

    It is known before the file runs, for what its top level reads; the rest comes with its registrations.
    """
    texts = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    named: set[str] = set()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        is_needs = isinstance(call.func, ast.Name) and call.func.id == "Needs"
        wanted = ("env", "any_env") if is_needs else ("requires_env",)
        for word in call.keywords:
            if word.arg in wanted:
                value = texts.get(word.value.id, word.value) if isinstance(word.value, ast.Name) else word.value
                named |= _texts(value)
    return named


def _texts(value: ast.expr) -> set[str]:
    listed = value.elts if isinstance(value, ast.List | ast.Tuple | ast.Set) else [value]
    return {one.value for one in listed if isinstance(one, ast.Constant) and isinstance(one.value, str)}


class _OsImports(ast.NodeTransformer):
    def visit_Import(self, node: ast.Import) -> ast.stmt | list[ast.stmt]:
        if not any(alias.name == "os" or (alias.name == "os.path" and not alias.asname) for alias in node.names):
            return node
        return [ast.copy_location(self._one(alias), node) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | list[ast.stmt]:
        if node.level or node.module != "os":
            return node
        own = ast.Name(NAME, ast.Load())
        if node.names[0].name == "*":
            here = ast.Call(ast.Name("globals", ast.Load()), [], [])
            pour = ast.Call(ast.Attribute(own, "pour_into", ast.Load()), [here], [])
            return ast.copy_location(ast.Expr(pour), node)
        return [
            ast.copy_location(_bound(alias.asname or alias.name, ast.Attribute(own, alias.name, ast.Load())), node)
            for alias in node.names
        ]

    def _one(self, alias: ast.alias) -> ast.stmt:
        if alias.name == "os" or (alias.name == "os.path" and not alias.asname):
            return _bound(alias.asname or "os", ast.Name(NAME, ast.Load()))
        return ast.Import([alias])


def _bound(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)
