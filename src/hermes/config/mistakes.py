"""Every mistake in config.yaml, for who mends it; whoever only reads it stops at the first."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.config import paths
from hermes.config.dotenv import read_env
from hermes.config.load import checked
from hermes.config.yaml_file import read_tree
from hermes.errors import BadKey, ConfigError

MOST = 50


def every_mistake(home: Path, environ: Mapping[str, str]) -> list[str]:
    """A sentence for each, in the order in which they are met; a file that is no YAML has one."""
    file, found = paths.config_file(home), list[str]()
    try:
        tree: dict[str, Any] = copy.deepcopy(dict(read_tree(file, paths.cache_dir(home) / "config.json")))
        variables = {**read_env(paths.env_file(home)), **environ}
    except ConfigError as error:
        return [str(error)]
    while len(found) < MOST:
        try:
            checked(file, tree, variables)
        except BadKey as error:
            found.append(str(error))
            _leave_out(tree, error.path)
        except ConfigError as error:
            return [*found, str(error)]
        else:
            break
    return found


def _leave_out(tree: dict[str, Any], path: tuple[str, ...]) -> None:
    """Take what is at `path` out of `tree`: the nearest key around it, where it is in a list."""
    place, last = tree, path[0]
    for part in path[1:]:
        inner = place.get(last)
        if not isinstance(inner, dict) or part not in inner:
            break
        place, last = inner, part
    place.pop(last, None)
