"""The .env file: secrets as NAME=value lines, readable by their owner alone."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from hermes.config.paths import write_private
from hermes.errors import ConfigError

_LINE = r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*"
_PLAIN = r"[\w@%+=:,./-]*"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def read_env(file: Path) -> dict[str, str]:
    """The variables of `file`; empty when there is none. A line that says nothing is a `ConfigError`."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8 text; save it as UTF-8") from error
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = re.fullmatch(_LINE, line)
        if match is None:
            raise ConfigError(f"{file}, line {number}: expected NAME=value")
        found[match[1]] = _unquoted(match[2])
    return found


def lent(environ: Mapping[str, str], names: Iterable[str], secrets: Mapping[str, str]) -> dict[str, str]:
    """`environ` with those of the `secrets` of a .env that `names` asks for; what is exported wins."""
    return {**{name: secrets[name] for name in names if name in secrets}, **environ}


def set_env(file: Path, name: str, value: str) -> None:
    """Set `name` in `file`, leaving every other line as it is."""
    _change(file, {name: value})


def unset_env(file: Path, name: str) -> bool:
    """Remove `name`; whether it was there."""
    if name not in read_env(file):
        return False
    _change(file, {name: None})
    return True


def is_private(file: Path) -> bool:
    """Whether nobody but the owner can read `file`, or it does not exist."""
    return not file.exists() or os.name != "posix" or not file.stat().st_mode & 0o077


def _change(file: Path, changes: Mapping[str, str | None]) -> None:
    lines = file.read_text(encoding="utf-8-sig").splitlines() if file.exists() else []
    left = dict(changes)
    kept: list[str] = []
    for line in lines:
        match = re.fullmatch(_LINE, line)
        if match is None or line.lstrip().startswith("#") or match[1] not in changes:
            kept.append(line)
            continue
        value = left.pop(match[1], None)  # a name that stands twice is written once
        if value is not None:
            kept.append(f"{match[1]}={_quoted(value)}")
    kept += [f"{name}={_quoted(value)}" for name, value in left.items() if value is not None]
    write_private(file, "".join(f"{line}\n" for line in kept))


def _unquoted(text: str) -> str:
    if text[:1] == "'" and "'" in text[1:]:
        return text[1 : text.index("'", 1)]
    if text[:1] == '"':
        closed = re.match(r'"((?:[^"\\]|\\.)*)"', text)
        if closed:
            return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), closed[1])
    return re.sub(r"\s#.*$", "", text).rstrip()


def _quoted(value: str) -> str:
    if re.fullmatch(_PLAIN, value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
