"""`toolset_distributions` of Hermes Agent; `python -m hermes.compat.toolset_distributions` lists them."""

import random
import sys
from collections.abc import Sequence
from typing import Any

from hermes.batch import distributions
from hermes.batch.distributions import validate_distribution
from hermes.compat.old_options import parse_old_options

__all__ = [
    "get_distribution",
    "list_distributions",
    "print_distribution_info",
    "sample_toolsets_from_distribution",
    "validate_distribution",
]


def get_distribution(name: str) -> dict[str, Any] | None:
    """`{"description": ..., "toolsets": {name: percent}}`, or None."""
    return list_distributions().get(name)


def list_distributions() -> dict[str, dict[str, Any]]:
    """All by name."""
    found = distributions.list_distributions()
    return {name: {"description": one.description, "toolsets": dict(one.toolsets)} for name, one in found.items()}


def sample_toolsets_from_distribution(distribution_name: str) -> list[str]:
    """Draw the toolsets of one sample; `ValueError` for an unknown name."""
    return distributions.sample_toolsets_from_distribution(distribution_name, random.Random())


def print_distribution_info(distribution_name: str) -> None:
    """Tell what a distribution is."""
    one = distributions.require_distribution(distribution_name)
    print(f"{one.name}: {one.description}")  # noqa: T201 - what it is for
    for toolset, percent in one.toolsets.items():
        print(f"  {toolset}: {percent:g} %")  # noqa: T201


def main(words: Sequence[str] | None = None) -> int:
    """List all of them; the exit code."""
    from hermes.surfaces.cli.main import main as hermes

    parse_old_options(
        sys.argv[1:] if words is None else words, {}, "usage: python -m hermes.compat.toolset_distributions"
    )
    return hermes(["batch", "distributions"])


if __name__ == "__main__":
    sys.exit(main())
