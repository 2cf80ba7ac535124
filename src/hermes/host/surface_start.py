"""How the command line starts another way in: by its name, since no surface imports another.

A surface that has a command has a module `start` in its folder, with what the command calls.
"""

from importlib import import_module
from types import ModuleType


def surface_start(name: str) -> ModuleType:
    """The module `start` of the surface called `name`."""
    return import_module(f"hermes.surfaces.{name}.start")
