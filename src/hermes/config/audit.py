"""Check a config tree's keys: which act, which are known but do nothing here, and which nobody knows."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from hermes.config.section import SECTIONS, SectionBase, keys_of, struct_inside

INERT = frozenset({"_config_version"})  # written by other programs, means nothing to a reader


class UnknownKey(Exception):
    """A key that nobody knows, and the name that was probably meant. Never leaves this package."""

    def __init__(self, path: tuple[str, ...], nearest: str | None) -> None:
        super().__init__(".".join(path))
        self.path = path
        self.nearest = nearest


class Audited(msgspec.Struct, frozen=True):
    """The keys that act, and the names of those that do not."""

    tree: dict[str, Any]
    without_effect: tuple[str, ...]


def section_names() -> list[str]:
    """The sections as config.yaml spells them."""
    return [name.replace("-", "_") for name in SECTIONS.names() if name != "top"]


def section_type(name: str) -> type[SectionBase]:
    """The struct of section `name`."""
    return SECTIONS.load(name.replace("_", "-"))


def audit(tree: Mapping[str, Any]) -> Audited:
    """Split `tree`; raises `UnknownKey` at the first key nobody knows."""
    sections = set(section_names())
    top = {key.name: key for key in keys_of(section_type("top"))} if set(tree) - sections else {}
    acting: dict[str, Any] = {}
    idle: list[str] = []
    for name, value in tree.items():
        if name in INERT:
            continue
        if name in sections:
            kind = section_type(name)
            folded = kind.fold(value)
            acting[name] = {} if folded is None else _struct(kind, folded, (name,), idle)
        elif name in top:
            acting[name] = _value(top[name].type, value, (name,), idle)
            if top[name].pending:
                idle.append(name)
        else:
            idle.extend(_documented((name,), value))
    return Audited(acting, tuple(idle))


def every_key() -> Iterator[str]:
    """The dotted name of every key that can be set."""
    for name in [*section_names(), "top"]:
        yield from _names(section_type(name), "" if name == "top" else f"{name}.")


def _names(kind: type[SectionBase], prefix: str) -> Iterator[str]:
    for key in keys_of(kind):
        inner, shape = struct_inside(key.type)
        if inner is not None and shape == "one":
            yield from _names(inner, f"{prefix}{key.name}.")
        else:
            yield f"{prefix}{key.name}"


def _struct(kind: type[SectionBase], value: object, path: tuple[str, ...], idle: list[str]) -> object:
    if not isinstance(value, Mapping):
        return value  # of the wrong kind, which the conversion reports
    keys = {key.name: key for key in keys_of(kind)}
    acting: dict[str, Any] = {}
    for name, item in value.items():
        here = (*path, name)
        if name in keys:
            acting[name] = _value(keys[name].type, item, here, idle)
            if keys[name].pending:
                idle.append(".".join(here))
        else:
            idle.extend(_documented(here, item, keys))
    return acting


def _value(annotated: Any, value: object, path: tuple[str, ...], idle: list[str]) -> object:
    kind, shape = struct_inside(annotated)
    if kind is None:
        return value
    if shape == "dict" and isinstance(value, Mapping):
        return {name: _struct(kind, kind.fold(item), (*path, str(name)), idle) for name, item in value.items()}
    if shape == "list" and isinstance(value, list):
        return [_struct(kind, kind.fold(item), (*path, str(index)), idle) for index, item in enumerate(value)]
    return _struct(kind, kind.fold(value), path, idle)


def _documented(path: tuple[str, ...], value: object, siblings: Iterable[str] = ()) -> list[str]:
    """The known names in `value`, none of which acts; raises `UnknownKey` for the others."""
    patterns = _patterns(path[0])
    if any(_covers(pattern, path) for pattern in patterns):
        return [".".join(path)]
    above = [pattern for pattern in patterns if len(pattern) > len(path) and _covers(pattern[: len(path)], path)]
    if not above:
        raise UnknownKey(path, _nearest(path, siblings))
    if not isinstance(value, Mapping):
        return [".".join(path)]
    return [name for key, item in value.items() for name in _documented((*path, str(key)), item)]


def _covers(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    if pattern and pattern[-1] == "**":
        # `providers: **` also covers `providers` itself, whatever it holds.
        return len(path) >= len(pattern) - 1 and _covers(pattern[:-1], path[: len(pattern) - 1])
    return len(pattern) == len(path) and all(a in ("*", b) for a, b in zip(pattern, path, strict=True))


def _patterns(top: str) -> list[tuple[str, ...]]:
    return _documented_keys().get(top, [])


@cache
def _documented_keys() -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for line in Path(__file__).with_name("documented_keys.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        name, _, rest = line.partition(":")
        found[name] = [(name, *each.split(".")) for each in rest.split()] or [(name,)]
    return found


def _nearest(path: tuple[str, ...], siblings: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # only when something is wrong

    prefix = ".".join(path[:-1])
    below = {pattern[len(path) - 1] for pattern in _patterns(path[0]) if len(pattern) >= len(path)} - {"*", "**"}
    names = {*siblings, *below} if prefix else {*section_names(), *_documented_keys(), *every_key()}
    found = get_close_matches(path[-1], names, n=1)
    if found:
        return f"{prefix}.{found[0]}" if prefix else found[0]
    same_leaf = [name for name in every_key() if name.rpartition(".")[2] == path[-1]]
    return same_leaf[0] if same_leaf else None
