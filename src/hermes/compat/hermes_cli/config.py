"""`hermes_cli.config`: settings and variables of the home."""

import json
from collections.abc import Mapping
from typing import Any

from hermes.config import paths
from hermes.config.dotenv import set_env
from hermes.config.load import load_settings
from hermes.config.values import plain
from hermes.config.write import set_key


def load_config() -> dict[str, Any]:
    """The settings as nested objects, defaults left out."""
    found: dict[str, Any] = plain(load_settings().tree)
    return found


def save_config(config: Mapping[str, Any]) -> None:
    """Write the keys of `config` that differ from what is set; what it does not name stays as it is."""
    now = load_config()
    for key, value in _flat(config):
        if cfg_get(now, *key) != value:
            set_key(paths.hermes_home(), ".".join(key), json.dumps(value))


def cfg_get(config: Mapping[str, Any], *keys: str, default: Any = None) -> Any:
    """What stands at these nested keys, or `default`."""
    value: Any = config
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return default
        value = value[key]
    return value


def get_env_value(name: str, default: str | None = None) -> str | None:
    """A variable of the environment or of .env."""
    found = load_settings().lookup(name)
    return found if found is not None else default


def save_env_value(name: str, value: str) -> None:
    """Keep a variable in .env."""
    set_env(paths.env_file(paths.hermes_home()), name, value)


def _flat(config: Mapping[str, Any], *above: str) -> list[tuple[tuple[str, ...], Any]]:
    found: list[tuple[tuple[str, ...], Any]] = []
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            found += _flat(value, *above, str(key))
        else:
            found.append(((*above, str(key)), value))
    return found


__all__ = ["cfg_get", "get_env_value", "load_config", "save_config", "save_env_value"]
