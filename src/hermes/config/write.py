"""Change config.yaml key by key: comments and order stay, defaults are never written, a bad value changes nothing."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from hermes.config import paths
from hermes.config.audit import section_names, section_type
from hermes.config.load import checked
from hermes.config.paths import write_private
from hermes.config.section import SectionBase, bare, keys_of, struct_inside
from hermes.config.settings import unknown_key
from hermes.config.values import BadValue, fit_text, plain
from hermes.config.yaml_file import parse
from hermes.errors import ConfigError, UserError


def set_key(home: Path, key: str, text: str) -> Any:
    """Set the dotted `key` to what `text` says in the key's type; return the value that was written."""
    path, kind = _resolve(key)
    value = _read_value(text, kind, key)
    file = paths.config_file(home)
    _edit(file, path, value)
    return value


def set_path(home: Path, path: tuple[str, ...], value: Any) -> None:
    """Set what is at `path` to a plain value; for names of the person's own, which may hold dots."""
    _edit(paths.config_file(home), path, value)


def unset_key(home: Path, key: str) -> bool:
    """Remove the dotted `key`, so that its default acts again; whether it was there."""
    return unset_path(home, tuple(key.split(".")))


def unset_path(home: Path, path: tuple[str, ...]) -> bool:
    """Remove what is at `path`, and whatever is empty without it; whether it was there."""
    file = paths.config_file(home)
    if not file.exists():
        return False
    document = _open(file)
    line: list[tuple[Any, str]] = []
    node: Any = document
    for part in path:
        if not isinstance(node, Mapping) or part not in node:
            return False
        line.append((node, part))
        node = node[part]
    for holder, part in reversed(line):
        del holder[part]
        if holder:
            break
    _save(file, document)
    return True


def migrate(home: Path) -> list[str]:
    """Bring older spellings in config.yaml to the present ones; what changed, in words. The old file is kept."""
    file = paths.config_file(home)
    document = _open(file)
    done: list[str] = []
    if document.pop("_config_version", None) is not None:
        done.append("_config_version is gone: it means nothing here")
    older = document.pop("fallback_model", None)
    if older is not None and document.get("fallback_providers"):
        done.append("fallback_model is gone: fallback_providers had its place")
    elif older is not None:
        document["fallback_providers"] = [older]
        done.append("fallback_model is now fallback_providers")
    for provider in document.pop("custom_providers", None) or ():
        name = provider.pop("name", "")
        if not name or name in document.get("providers", {}):
            raise ConfigError(f"{file}: an entry of custom_providers has no name of its own; nothing was changed")
        document.setdefault("providers", {})[name] = provider
        done.append(f"custom_providers: {name} is now providers.{name}")
    if done:
        write_private(file.with_name("config.yaml.before-migrate"), file.read_text(encoding="utf-8-sig"))
        _save(file, document)
    return done


def _resolve(key: str) -> tuple[tuple[str, ...], Any]:
    """The path of `key` in the file and its type; `ConfigError` with the nearest name when there is none."""
    parts = tuple(key.split("."))
    if parts == ("model",):
        parts = ("model", "default")
    in_section = parts[0] in section_names()
    kind = section_type(parts[0] if in_section else "top")
    if in_section and len(parts) == 1:
        names = ", ".join(each.name for each in keys_of(kind))
        raise ConfigError(f"{key!r} is a section; name one of its keys: {names}")
    try:
        return parts, _type_at(kind, parts[1:] if in_section else parts)
    except KeyError as error:
        raise unknown_key(key) from error


def _type_at(annotated: Any, walk: tuple[str, ...]) -> Any:
    """The type that `walk` leads to from `annotated`; `KeyError` when it leads nowhere."""
    kind = bare(annotated)
    if not walk or kind is Any:
        return annotated
    if isinstance(kind, type) and issubclass(kind, SectionBase):
        found = {each.name: each.type for each in keys_of(kind)}
        return _type_at(found[walk[0]], walk[1:])
    if get_origin(kind) is dict:
        return _type_at(get_args(kind)[1], walk[1:])
    for option in get_args(kind):
        if get_origin(option) is dict:
            return _type_at(option, walk)
    raise KeyError(walk[0])


def _read_value(text: str, kind: Any, key: str) -> Any:
    if "${" in text:
        return text  # a reference is kept as it is written
    import yaml  # writing is rare

    wanted = bare(kind)
    holds_more = get_origin(wanted) in (tuple, dict) or struct_inside(kind)[0] is not None
    try:
        if wanted is Any or (holds_more and text.lstrip()[:1] in ("[", "{")):
            return yaml.safe_load(text)
        if text == "null" and type(None) in get_args(wanted):
            return None
        return plain(fit_text(text, kind))
    except BadValue as bad:
        raise ConfigError(f"{key}: {bad.problem}; nothing was changed") from bad
    except yaml.YAMLError as error:
        raise ConfigError(f"{key}: cannot read {text!r} as a value; nothing was changed") from error


def _edit(file: Path, path: tuple[str, ...], value: Any) -> None:
    document = _open(file)
    node = document
    for part in path[:-1]:
        below = node.get(part)
        if below is None:
            node[part] = below = {}
        elif part == "model" and isinstance(below, str):
            node[part] = below = {"default": below}  # the short spelling makes room for its other keys
        elif not isinstance(below, Mapping):
            raise ConfigError(f"{file}: {part!r} holds a plain value; it cannot hold {path[-1]!r} as well")
        node = below
    node[path[-1]] = value
    _save(file, document)


def _open(file: Path) -> Any:
    if file.exists():
        parse(file)  # a broken file is reported in one sentence before anything is touched
        document = _ruamel().load(file.read_text(encoding="utf-8-sig"))
        if document is not None:
            return document
    from ruamel.yaml.comments import CommentedMap

    return CommentedMap()


def _save(file: Path, document: Any) -> None:
    out = io.StringIO()
    if document:
        _ruamel().dump(document, out)
    draft = file.with_name(f".{file.name}.draft")
    try:
        write_private(draft, out.getvalue())
    except UserError as error:  # nobody knows of the draft
        raise UserError(str(error).replace(str(draft), str(file))) from error
    try:
        checked(draft, parse(draft), {})
    except ConfigError as error:
        raise ConfigError(str(error).replace(str(draft), f"{file}, as it would become")) from error
    finally:
        draft.unlink(missing_ok=True)
    write_private(file, out.getvalue())


def _ruamel() -> Any:
    from ruamel.yaml import YAML  # reading never needs it

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    return yaml


# What a session is given once and keeps: its tools are stored with it, so that the front of its requests never moves.
_KEPT_BY_SESSIONS = ("toolsets", "platform_toolsets", "tools")

IDLE = "This version does not act on it."
NEW_SESSIONS = "New sessions use it; those that exist keep the tools they began with, less what it leaves out."
NEXT_START = "The next hermes uses it; one that is running keeps the old value until it is started again."


def when_it_acts(key: str) -> str:
    """One sentence about a dotted key that was just set or removed."""
    if is_idle(key):
        return IDLE
    if any(key == name or key.startswith(f"{name}.") for name in _KEPT_BY_SESSIONS):
        return NEW_SESSIONS
    return NEXT_START


def is_idle(key: str) -> bool:
    """Whether this version knows the key and does nothing with it."""
    head, *rest = key.split(".")
    kind: type[SectionBase] | None = section_type(head if head in section_names() else "top")
    for part in rest if head in section_names() else [head, *rest]:
        found = next((each for each in keys_of(kind) if each.name == part), None) if kind else None
        if found is None:
            return False  # a name of the user's own, below a mapping
        if found.pending:
            return True
        kind = struct_inside(found.type)[0]
    return False
