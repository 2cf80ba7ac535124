"""`hermes_constants`."""

from pathlib import Path

from hermes.config.paths import hermes_home


def get_hermes_home() -> Path:
    """The home in use."""
    return hermes_home()


def display_hermes_home() -> str:
    """The home in use as a person would write it."""
    home = hermes_home()
    try:
        return f"~/{home.relative_to(Path.home())}"
    except ValueError:
        return str(home)


__all__ = ["display_hermes_home", "get_hermes_home"]
