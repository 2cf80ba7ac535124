"""Load the settings of a home: config.yaml, .env, the environment and the command line, merged and checked."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from hermes.config import paths
from hermes.config.audit import UnknownKey, audit, section_names, section_type
from hermes.config.dotenv import read_env
from hermes.config.section import keys_of
from hermes.config.settings import Settings
from hermes.config.values import BadValue, expand, fit
from hermes.config.yaml_file import Tree, line_of, read_tree
from hermes.errors import BadKey

_bound: ContextVar[Settings | None] = ContextVar("hermes_settings", default=None)
_latest: list[tuple[Tree, Settings]] = []  # a cache: the settings loaded last, and what config.yaml said


def load_settings(
    home: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    ignore_file: bool = False,
) -> Settings:
    """The settings in force: with no arguments those bound to this context, if any are.

    Every key that config.yaml holds is checked here, so a mistake is reported at the start and not when its section
    is first used. `flags` maps dotted keys to values of the command line; `ignore_file` leaves config.yaml out.
    While files, variables and flags stay as they are, it is the same object: its sections are made once for all agents.
    """
    bound = _bound.get()
    if bound is not None and home is None and environ is None and flags is None and not ignore_file:
        return bound
    environ = os.environ if environ is None else environ
    home = paths.hermes_home(None if environ is os.environ else environ) if home is None else home
    variables = dict(environ)
    given = dict(flags or {})
    file = paths.config_file(home)
    raw = {} if ignore_file else read_tree(file, paths.cache_dir(home) / "config.json")
    secrets = read_env(paths.env_file(home))
    for said, latest in _latest:
        known = (latest.home, latest.secrets, latest.environ, latest.flags)
        if said == raw and known == (home, secrets, variables, given):
            return latest
    tree, warnings = checked(file, raw, {**secrets, **variables} if _refers(raw) else {})
    made = Settings(home=home, tree=tree, environ=variables, secrets=secrets, flags=given, warnings=warnings)
    _latest[:] = [(raw, made)]
    return made


@contextmanager
def bound_settings(settings: Settings) -> Iterator[Settings]:
    """Make `settings` the answer of `load_settings()` in this context and the tasks started from it.

    This is how the options of a command line reach code that was handed no settings.
    """
    token = _bound.set(settings)
    try:
        yield settings
    finally:
        _bound.reset(token)


def checked(file: Path, raw: Mapping[str, Any], variables: Mapping[str, str]) -> tuple[Tree, tuple[str, ...]]:
    """The keys of `raw` that act, and one line about those that do not; any fault is a `ConfigError` with its line."""
    if not raw:
        return {}, ()
    try:
        audited = audit(raw)
    except UnknownKey as unknown:
        hint = f"; did you mean {unknown.nearest!r}?" if unknown.nearest else "; see: hermes config show --all"
        raise BadKey(
            f"{_where(file, unknown.path)}: there is no key {'.'.join(unknown.path)!r}{hint}", unknown.path
        ) from unknown
    for name, value in audited.tree.items():
        _check(file, name, expand(value, variables.get, _Unset))
    older = tuple(
        f"{file.name}: {line}"
        for name, value in audited.tree.items()
        if name in section_names() and (line := section_type(name).warned(value))
    )
    if not audited.without_effect:
        return audited.tree, older
    idle = ", ".join(audited.without_effect)
    return audited.tree, (f"{file.name}: known, but without effect in this version: {idle}", *older)


class _Unset:
    """Stands for a text whose variable is not set; whoever needs the value is told then."""

    def __init__(self, variable: str) -> None:
        self.variable = variable


def _check(file: Path, name: str, value: Any) -> None:
    value = _without_unset(value)
    if isinstance(value, _Unset):
        return
    prefix: tuple[str, ...] = (name,)
    try:
        if name in section_names():
            fit(value, section_type(name))
            found = section_type(name).refused(value)
            if found is not None:
                raise BadValue((found[0],), found[1])
        else:
            kind = next(each.type for each in keys_of(section_type("top")) if each.name == name)
            fit(value, kind)
    except BadValue as bad:
        path = (*prefix, *bad.path)
        raise BadKey(f"{_where(file, path)}: {'.'.join(path)}: {bad.problem}", path) from bad


def _without_unset(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _without_unset(v) for k, v in value.items() if not isinstance(v, _Unset)}
    if isinstance(value, list):
        return [_without_unset(item) for item in value if not isinstance(item, _Unset)]
    return value


def _refers(raw: Any) -> bool:
    """Whether any text in `raw` has a `${NAME}`."""
    if isinstance(raw, str):
        return "${" in raw
    if isinstance(raw, Mapping):
        return any(_refers(item) for item in raw.values())
    return isinstance(raw, list) and any(_refers(item) for item in raw)


def _where(file: Path, path: tuple[str, ...]) -> str:
    line = line_of(file, path)
    return f"{file}, line {line}" if line else str(file)
