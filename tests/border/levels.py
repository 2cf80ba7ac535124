"""Whether a level of enforcement can be had on this machine; tests that need it skip with the reason."""

import ctypes
from functools import cache

from tests.tools.bubblewrap import why_no_bubblewrap

_LANDLOCK_CREATE_RULESET = 444
_SIGNALS_AND_ABSTRACT_SOCKETS = 6  # the version of Landlock that knows them


@cache
def why_not(level: str) -> str:
    """Empty where the level can be had."""
    if level == "full":
        return why_no_bubblewrap()
    version = ctypes.CDLL(None, use_errno=True).syscall(_LANDLOCK_CREATE_RULESET, None, 0, 1)
    return "" if version >= _SIGNALS_AND_ABSTRACT_SOCKETS else f"Landlock is too old here (version {version})"
