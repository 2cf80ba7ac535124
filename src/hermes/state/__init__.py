"""Sessions, messages, journal, ledger and search, durable in one SQLite file. Names are loaded when asked for."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes.state.session_db import SessionDB
    from hermes.state.sqlite_store import SqliteStore
    from hermes.state.unavailable import format_session_db_unavailable

__all__ = ["SessionDB", "SqliteStore", "format_session_db_unavailable"]


def __getattr__(name: str) -> Any:
    if name == "SessionDB":
        from hermes.state.session_db import SessionDB  # noqa: PLC0415 - start-up pays only for what it uses

        return SessionDB
    if name == "SqliteStore":
        from hermes.state.sqlite_store import SqliteStore  # noqa: PLC0415 - start-up pays only for what it uses

        return SqliteStore
    if name == "format_session_db_unavailable":
        from hermes.state.unavailable import format_session_db_unavailable  # noqa: PLC0415 - as above

        return format_session_db_unavailable
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
