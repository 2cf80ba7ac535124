"""Every way out that the suite knows, by family: a file of this folder is a list of them."""

import importlib
import pkgutil

from tests.border.record import Attack


def _all() -> tuple[Attack, ...]:
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return tuple(attack for module in modules for attack in module.ATTACKS)


ATTACKS = _all()
