"""Sessions, messages, journal, ledger and search, durable in one SQLite file. Names are loaded when asked for."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes.state.sessions import SessionDB
    from hermes.state.sqlite.repair import repair
    from hermes.state.sqlite.store import SqliteStore

__all__ = ["SessionDB", "SqliteStore", "format_session_db_unavailable", "repair"]

_HOMES = {"SessionDB": "sessions", "SqliteStore": "sqlite.store", "repair": "sqlite.repair"}


def __getattr__(name: str) -> Any:
    """Start-up pays only for what it uses."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def format_session_db_unavailable(error: BaseException | None = None) -> str:
    """What to tell a person when the session store cannot be used: one sentence with the reason and what to do."""
    reason = f": {error}" if error is not None and str(error) else ""
    return (
        f"The session store cannot be used{reason.rstrip('.')}. Nothing runs without it; "
        "`hermes sessions repair` looks at the file, and HERMES_HOME names another place."
    )
