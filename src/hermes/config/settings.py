"""`Settings`: everything that was configured, as one frozen object, and where each value came from."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from hermes.config import paths
from hermes.config.audit import section_names, section_type
from hermes.config.section import Key, SectionBase, is_secret, keys_of, section_name, struct_inside
from hermes.config.values import BadValue, expand, fit, fit_text, plain
from hermes.config.yaml_file import line_of
from hermes.errors import ConfigError

S = TypeVar("S", bound=SectionBase)
Made = TypeVar("Made")

_ABSENT: Any = object()


class Source(msgspec.Struct, frozen=True):
    """One place that says something about a key."""

    name: str  # "--model", "HERMES_MODEL in the environment", "config.yaml, line 3", "default"
    value: Any


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Where a value came from. `sources` is by precedence: the first one won, the others were overridden."""

    key: str
    description: str
    value: Any
    sources: tuple[Source, ...]
    pending: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The merged configuration of one home. Sections are made when they are first asked for, and then kept.

    Precedence: command line, environment, `.env`, config.yaml, default.
    """

    home: Path
    tree: Mapping[str, Any] = field(default_factory=dict)  # the keys of config.yaml that act, not yet expanded
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # what .env says
    flags: Mapping[str, Any] = field(default_factory=dict)  # dotted key -> value, from the command line
    warnings: tuple[str, ...] = ()
    _made: dict[type[SectionBase], SectionBase] = field(default_factory=dict, repr=False, compare=False)
    _found: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def of(self, kind: type[S]) -> S:
        """The section of this type: `settings.of(terminal.Section).timeout`."""
        found = self._made.get(kind)
        if found is None:
            found = self._made[kind] = self._make(kind, section_name(kind))
        return found  # type: ignore[return-value]  # by its type

    def once(self, make: "Callable[[Settings], Made]") -> Made:
        """What `make` finds in these settings and nowhere else: found once, and kept with them."""
        if make not in self._found:
            self._found[make] = make(self)
        return self._found[make]  # type: ignore[no-any-return]  # by who made it

    def layers(self, kind: type[SectionBase]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """What config.yaml, the environment and the command line each say of a section, for keys that go together."""
        name = section_name(kind)
        flags = {
            each.name: self.flags[key] for each in keys_of(kind) if (key := _dotted(name, each.name)) in self.flags
        }
        environment = {each.name: value for each in keys_of(kind) for value in self._variables(each)[:1]}
        return self._from_file(kind, name), environment, flags

    def _variables(self, found: Key) -> list[str]:
        """What the variables of a key hold, the strongest first."""
        return [text for variable in found.env if (text := self.lookup(variable))]

    def lookup(self, variable: str) -> str | None:
        """A variable of the environment, else of `.env`; None when neither sets it."""
        return self.environ.get(variable, self.secrets.get(variable))

    @cached_property
    def mapping(self) -> Mapping[str, Any]:
        """The whole as read-only plain values, for code that is handed no types: `mapping["terminal"]["timeout"]`."""
        return _View(self)

    def get(self, key: str) -> Any:
        """The value of a dotted key, plain; `ConfigError` when there is no such key."""
        kind, found, rest = self._find(key)
        value = _inner(plain(getattr(self.of(kind), found.name)), rest)
        if value is _ABSENT:
            raise ConfigError(f"there is no key {key!r}; see: hermes config show")
        return value

    def explain(self, key: str) -> Explanation:
        """The value of `key`, and every place that says something about it."""
        kind, found, rest = self._find(key)
        if rest:
            inner = struct_inside(found.type)[0]
            described = next((each for each in keys_of(inner) if each.name == rest[-1]), found) if inner else found
        else:
            described = found
        sources = [
            Source(name, shown)
            for name, value in self._sources(kind, found)
            if (shown := _inner(value, rest)) is not _ABSENT
        ]
        return Explanation(
            key=key,
            description=described.description,
            value=masked(key, self.get(key)),
            sources=tuple(Source(each.name, masked(key, each.value)) for each in sources),
            pending=described.pending or found.pending,
        )

    # -- making a section ----------------------------------------------------------------------------------------

    def _make(self, kind: type[S], name: str) -> S:
        given = self._from_file(kind, name)
        for found in keys_of(kind):
            dotted = _dotted(name, found.name)
            stronger = self._given(found, dotted)
            if stronger is not _ABSENT:
                given[found.name] = stronger
            given.setdefault(found.name, plain(found.default))
        try:
            return fit(given, kind)
        except BadValue as bad:
            raise self.bad_value((name, *bad.path) if name != "top" else bad.path, bad.problem) from bad

    def _from_file(self, kind: type[SectionBase], name: str) -> dict[str, Any]:
        if name == "top":
            part: Any = {each.name: self.tree[each.name] for each in keys_of(kind) if each.name in self.tree}
        else:
            part = self.tree.get(name, {})
        if not isinstance(part, Mapping):
            raise self.bad_value((name,), "expected a mapping")

        given: dict[str, Any] = {}
        for each in keys_of(kind):
            if each.name in part:
                unset = partial(self._unset, (*(() if name == "top" else (name,)), each.name))
                value = part[each.name] if each.values else expand(part[each.name], self.lookup, unset)
                given[each.name] = _filled(each, value)
        return given

    def _unset(self, path: tuple[str, ...], variable: str) -> Any:
        where = paths.env_file(self.home)
        raise self.bad_value(path, f"${{{variable}}} is not set; export it, or add {variable}=… to {where}")

    def _given(self, found: Key, dotted: str) -> Any:
        """What the command line or the environment says, already of the right type."""
        if dotted in self.flags:
            return self.flags[dotted]
        for variable in found.env:
            text = self.lookup(variable)
            if text:
                try:
                    return plain(fit_text(text, found.type))
                except BadValue as bad:
                    raise ConfigError(f"the variable {variable}, which sets {dotted}: {bad.problem}") from bad
        return _ABSENT

    def bad_value(self, path: tuple[str, ...], problem: str) -> ConfigError:
        """The error for a value that config.yaml has at `path`, with its line."""
        file = paths.config_file(self.home)
        line = line_of(file, path) if file.exists() else None
        where = f"{file}, line {line}" if line else str(file)
        return ConfigError(f"{where}: {'.'.join(path)}: {problem}")

    # -- finding keys ---------------------------------------------------------------------------------------------

    def _find(self, key: str) -> tuple[type[SectionBase], Key, tuple[str, ...]]:
        head, *rest = key.split(".")
        kind = section_type(head if head in section_names() else "top")
        names = rest if head in section_names() else [head, *rest]
        if not names and head == "model":
            names = ["default"]
        for found in keys_of(kind):
            if names and found.name == names[0]:
                return kind, found, tuple(names[1:])
        raise unknown_key(key)

    def _sources(self, kind: type[SectionBase], found: Key) -> Iterator[tuple[str, Any]]:
        name = section_name(kind)
        dotted = _dotted(name, found.name)
        if dotted in self.flags:
            yield "command line", self.flags[dotted]
        for variable in found.env:
            if self.environ.get(variable):
                yield f"{variable} in the environment", self.environ[variable]
            if self.secrets.get(variable):
                yield f"{variable} in {paths.env_file(self.home)}", self.secrets[variable]
        part = self.tree if name == "top" else self.tree.get(name, {})
        if found.name in part:
            file = paths.config_file(self.home)
            line = line_of(file, tuple(dotted.split("."))) or line_of(file, (name,))
            yield f"{file}, line {line}", part[found.name]
        yield "default", plain(found.default)


def unknown_key(key: str) -> ConfigError:
    """The error for a key nobody knows, with the nearest that exists."""
    from difflib import get_close_matches  # only when something is wrong

    from hermes.config.audit import every_key

    names = list(every_key())
    near = get_close_matches(key, names, n=1) or [name for name in names if name.rpartition(".")[2] == key]
    hint = f"; did you mean {near[0]!r}?" if near else "; see: hermes config show --all"
    return ConfigError(f"there is no key {key!r}{hint}")


def masked(key: str, value: Any) -> Any:
    """`value` with what must not be shown taken out."""
    if isinstance(value, Mapping):
        return {name: masked(f"{key}.{name}", item) for name, item in value.items()}
    if isinstance(value, list):
        return [masked(key, item) for item in value]
    if is_secret(key) and isinstance(value, str) and value and not value.startswith("${"):
        return f"…{value[-4:]}" if len(value) >= 16 else "…"
    return value


class _View(Mapping[str, Any]):
    """`Settings` as nested read-only mappings, each section made when it is looked at."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Any:
        if name in section_names():
            return MappingProxyType(plain(self._settings.of(section_type(name))))
        top = section_type("top")
        if any(each.name == name for each in keys_of(top)):
            return plain(getattr(self._settings.of(top), name))
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from section_names()
        yield from (each.name for each in keys_of(section_type("top")))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _dotted(section: str, name: str) -> str:
    return name if section == "top" else f"{section}.{name}"


def _filled(found: Key, value: Any) -> Any:
    """A partly given struct, completed from the default of its own field rather than from its type's."""
    inner, shape = struct_inside(found.type)
    if inner is None or shape != "one" or not isinstance(value, Mapping):
        return value
    return {**plain(found.default), **value}


def _inner(value: Any, rest: tuple[str, ...]) -> Any:
    for part in rest:
        if not isinstance(value, Mapping) or part not in value:
            return _ABSENT
        value = value[part]
    return value
