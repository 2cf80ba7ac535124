"""`hermes_constants`."""

from pathlib import Path

from hermes.config.paths import hermes_home


def get_hermes_home() -> Path:
    """The home in use."""
    return hermes_home()


__all__ = ["get_hermes_home"]
