"""Every everyday task that the suite knows: a file of this folder is a list of them."""

import importlib
import pkgutil

from tests.border.everyday import Task


def _all() -> tuple[Task, ...]:
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return tuple(task for module in modules for task in module.TASKS)


TASKS = _all()
