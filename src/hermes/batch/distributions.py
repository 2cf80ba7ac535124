"""Toolset distributions: how likely each toolset is in a sample. Ours are a table; yours are in distributions.yaml."""

import logging
import random
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from hermes.config import paths
from hermes.errors import UserError

log = logging.getLogger(__name__)

FILE = "distributions.yaml"


class Distribution(Struct, frozen=True):
    """Toolset -> percent, each drawn by itself."""

    name: str
    toolsets: dict[str, float]
    description: str = ""

    def draw(self, rng: random.Random) -> list[str]:
        """The toolsets of one sample; never none."""
        drawn = [name for name, percent in self.toolsets.items() if rng.random() * 100 < percent]
        return drawn or [max(self.toolsets, key=lambda name: self.toolsets[name])]

    def unknown_toolsets(self) -> list[str]:
        """Those that do not exist here, which no sample gets."""
        from hermes.toolsets import get_toolset_names  # not for who only draws

        known = set(get_toolset_names())
        return [name for name in self.toolsets if name not in known]


def list_distributions(home: Path | None = None) -> dict[str, Distribution]:
    """All by name: ours, and those of HERMES_HOME/distributions.yaml, which win."""
    return {**_own(), **_users(home or paths.hermes_home())}


def get_distribution(name: str, home: Path | None = None) -> Distribution | None:
    """The distribution of that name, or None."""
    return list_distributions(home).get(name)


def validate_distribution(name: str) -> bool:
    """Whether there is one of that name."""
    return get_distribution(name) is not None


def require_distribution(name: str, home: Path | None = None) -> Distribution:
    """The distribution; `ValueError` that names those there are. Toolsets of it that are unknown here are told."""
    known = list_distributions(home)
    if name not in known:
        raise ValueError(f"there is no distribution {name!r}; there are: {', '.join(sorted(known))}")
    if unknown := known[name].unknown_toolsets():
        _tell_unknown(name, tuple(unknown))
    return known[name]


def sample_toolsets_from_distribution(name: str, rng: random.Random | None = None) -> list[str]:
    """Draw the toolsets of one sample; `ValueError` for an unknown name."""
    return require_distribution(name).draw(rng or random.Random())


@cache  # once in a process: a run asks several times
def _tell_unknown(name: str, toolsets: tuple[str, ...]) -> None:
    named = ", ".join(map(repr, toolsets))
    log.warning("the distribution %r names %s, and no toolset here is called so; see: hermes tools", name, named)


@cache
def _own() -> dict[str, Distribution]:
    found = {}
    for line in files("hermes.batch").joinpath("distributions.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, rest = line.partition(":")
            listed, _, description = rest.partition("|")
            pairs = (pair.split() for pair in listed.split(","))
            found[name] = Distribution(
                name, {toolset: float(percent) for toolset, percent in pairs}, description.strip()
            )
    return found


def _users(home: Path) -> dict[str, Distribution]:
    file = home / FILE
    if not file.is_file():
        return {}
    from hermes.config.yaml_file import parse  # for who has one

    found = {}
    for name, raw in parse(file, example="mine: {terminal: 100, web: 30}", remedy="").items():
        body = raw if isinstance(raw, Mapping) else {}
        toolsets = body.get("toolsets", {key: value for key, value in body.items() if key != "description"})
        if not isinstance(toolsets, Mapping) or not toolsets:
            raise UserError(f"{str(file)!r}: {name!r} needs toolsets with a percentage each, such as `web: 80`")
        for toolset, percent in toolsets.items():
            if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent <= 100:
                raise UserError(f"{str(file)!r}: {name}.{toolset} is a percentage between 0 and 100, not {percent!r}")
        chosen = {str(toolset): float(percent) for toolset, percent in toolsets.items()}
        found[str(name)] = Distribution(str(name), chosen, str(body.get("description", "")))
    return found
