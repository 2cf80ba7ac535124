"""`utils`: small things that plugins use."""

import json
import os
from pathlib import Path
from typing import Any

from hermes.config.paths import write_private

_YES = frozenset({"1", "true", "yes", "on"})


def is_truthy_value(value: Any, default: bool = False) -> bool:
    """Whether a setting says yes; `default` for None."""
    if value is None:
        return default
    return value if isinstance(value, bool) else str(value).strip().lower() in _YES


def env_var_enabled(name: str, default: str = "") -> bool:
    """Whether a variable says yes."""
    return is_truthy_value(os.environ.get(name, default))


def safe_json_loads(text: Any, default: Any = None) -> Any:
    """The value of a JSON text, or `default`."""
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return default


def atomic_json_write(path: str | Path, data: Any, *, indent: int = 2) -> None:
    """Replace a file by JSON, whole or not at all."""
    write_private(Path(path), json.dumps(data, indent=indent, ensure_ascii=False, default=str) + "\n")


def atomic_yaml_write(path: str | Path, data: Any) -> None:
    """Replace a file by YAML, whole or not at all."""
    import yaml

    write_private(Path(path), yaml.safe_dump(data, allow_unicode=True, sort_keys=False))


__all__ = ["atomic_json_write", "atomic_yaml_write", "env_var_enabled", "is_truthy_value", "safe_json_loads"]
