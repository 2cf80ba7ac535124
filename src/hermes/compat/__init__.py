"""Old import names. Files written for Hermes Agent are compiled with their imports rewritten to modules under here.

`install()` is the opt-in for scripts that say `from run_agent import AIAgent`.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

from hermes.compat.names import MODULES, SCRIPT_NAMES

__all__ = ["MODULES", "install"]


class _OldNames(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers the script names with our modules, after every ordinary place was asked."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(fullname, self) if fullname in SCRIPT_NAMES else None

    def exec_module(self, module: ModuleType) -> None:
        # What stands here after this is what `import` gives; ours keeps its own name and spec.
        sys.modules[module.__name__] = importlib.import_module(MODULES[module.__name__])


def install() -> None:
    """Let this process import `run_agent`, `model_tools`, `toolsets`, `batch_runner` and the like by those names.

    A module of your own by one of these names still comes first. `tools`, `agent`, `cli` and `utils` are never
    answered: they are common names of users' own packages.
    """
    if not any(isinstance(finder, _OldNames) for finder in sys.meta_path):
        sys.meta_path.append(_OldNames())
