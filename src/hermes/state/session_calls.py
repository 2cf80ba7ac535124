"""What the calls of `SessionDB` share: the contract's options as filters, and the small questions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hermes.state.queries import MessageFilter, Row, SessionFilter, SessionQueries


def find_session(queries: SessionQueries, columns: Sequence[str] = (), **where: Any) -> Row | None:
    """The first session that is so, with these columns or with all."""
    rows = queries.sessions(SessionFilter(**where, limit=1), columns)
    return rows[0] if rows else None


def values_of(queries: SessionQueries, session_id: str, *columns: str) -> list[Any]:
    """Single values of a session; None where there is no session."""
    row = find_session(queries, columns, ids=(session_id,))
    return [row[name] if row else None for name in columns]


def ids_of(queries: SessionQueries, where: SessionFilter) -> list[str]:
    return [row["id"] for row in queries.sessions(where, ("id",))]


def change_session(queries: SessionQueries, session_id: str, **changes: Any) -> bool:
    """Set columns of one session; whether there is one."""
    return bool(queries.change_sessions(SessionFilter(ids=(session_id,)), changes))


def messages_of(queries: SessionQueries, session_id: str, include_inactive: bool = False, **where: Any) -> list[Row]:
    is_active = None if include_inactive else True
    return queries.messages(MessageFilter(session_id=session_id, is_active=is_active, **where))


def session_filter(options: Row, **more: Any) -> SessionFilter:
    """The filter that the contract's options mean; an unknown one is a `TypeError`."""
    given = dict(options)
    equal = given_of({name: given.pop(name, None) for name in ("source", "user_id")})
    excluded, with_archived = given.pop("exclude_sources", None), given.pop("include_archived", False)
    if given.pop("archived_only", False):
        equal["archived"] = 1
    elif not with_archived:
        equal["archived"] = 0
    found = SessionFilter(
        equal=equal,
        other_than={"source": tuple(excluded)} if excluded else {},
        folder=(given.pop("cwd_prefix", None) or "").rstrip("/"),
        least_messages=given.pop("min_message_count", None) or 0,
        id_has=given.pop("id_query", None) or "",
        id_or_title_has=given.pop("search_query", None) or "",
        is_no_child=bool(given.pop("exclude_children", False)),
        **more,
    )
    if given:
        raise TypeError(f"unknown option {min(given)!r} for a list of sessions")
    return found


def given_of(fields: Mapping[str, Any]) -> Row:
    return {name: value for name, value in fields.items() if value is not None}


def refuse_unknown(call: str, fields: Mapping[str, Any], known: Iterable[str]) -> None:
    unknown = sorted(fields.keys() - set(known))
    if unknown:
        raise TypeError(f"{call}() got an unexpected keyword argument {unknown[0]!r}")
