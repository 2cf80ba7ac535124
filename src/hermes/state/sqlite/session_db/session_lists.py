"""Lists of sessions, as people see them."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import sqlite3
from collections.abc import Sequence
from typing import Any

from hermes.state.sqlite import search_index
from hermes.state.sqlite.session_continuation import tip_of
from hermes.state.sqlite.session_db.base import DbBase, Row, placeholders, session_rows

PREVIEW_CHARS = 60

_LAST_ACTIVE = "coalesce((SELECT max(m.timestamp) FROM messages m WHERE m.session_id = s.id), s.started_at)"
_NOT_CHILD = (
    "(s.parent_session_id IS NULL OR EXISTS (SELECT 1 FROM sessions p WHERE p.id = s.parent_session_id"
    " AND p.end_reason = 'branched') OR NOT EXISTS (SELECT 1 FROM sessions p WHERE p.id = s.parent_session_id))"
)
_FILTERS = frozenset(
    {
        "source",
        "exclude_sources",
        "cwd_prefix",
        "min_message_count",
        "include_archived",
        "archived_only",
        "id_query",
        "search_query",
        "exclude_children",
        "user_id",
    }
)
_LONG = ("system_prompt", "tool_definitions", "model_config")


class ListingCalls(DbBase):
    """Calls that list, count and resolve sessions."""

    def list_sessions_rich(
        self,
        source: str | None = None,
        exclude_sources: Sequence[str] | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
        include_children: bool = False,
        **options: Any,
    ) -> list[Row]:
        """Sessions, newest first, each with `preview` and `last_active`.

        Children are hidden, branches are not; a compressed session is shown as its tip. With children each session
        is shown once, as itself. Options:
        project_compression_tips, order_by_last_active, compact_rows, cwd_prefix, min_message_count,
        include_archived, archived_only, id_query, search_query, user_id.
        """
        tips = options.pop("project_compression_tips", True) and not include_children
        by_activity = options.pop("order_by_last_active", False)
        compact = options.pop("compact_rows", False)
        options |= {"source": source, "exclude_sources": exclude_sources, "exclude_children": not include_children}
        where, values = conditions(options)
        order = f"{_LAST_ACTIVE} DESC, s.id DESC" if by_activity else "s.started_at DESC, s.id DESC"

        def work(conn: sqlite3.Connection) -> list[Row]:
            rows = session_rows(conn, f"{where} ORDER BY {order} LIMIT ? OFFSET ?", (*values, limit, offset))
            return [self._rich(conn, row, tips=tips, compact=compact) for row in rows]

        return self.store.read(work)

    def search_sessions(self, source: str | None = None, limit: int = 20, offset: int = 0) -> list[Row]:
        """Plain session rows, newest first."""
        where, values = conditions({"source": source, "include_archived": True})
        return self._sessions(
            f"{where} ORDER BY s.started_at DESC, s.id DESC LIMIT ? OFFSET ?", (*values, limit, offset)
        )

    def search_sessions_by_id(self, query: str, limit: int = 20, include_archived: bool = True) -> list[Row]:
        """Sessions whose id contains `query`."""
        where, values = conditions({"id_query": query, "include_archived": include_archived})
        return self._sessions(f"{where} ORDER BY s.started_at DESC LIMIT ?", (*values, limit))

    def session_count(self, source: str | None = None, **options: Any) -> int:
        """How many sessions there are; options as in `list_sessions_rich`. Archived ones count when asked for."""
        where, values = conditions({"source": source, **options})
        row = self._one(f"SELECT count(*) FROM sessions s {where}", values)
        return int(row[0]) if row else 0

    def resolve_session_id(self, session_id_or_prefix: str) -> str | None:
        """The id itself, or the one session whose id begins so; None when none or several do."""
        if self._one("SELECT 1 FROM sessions WHERE id = ?", (session_id_or_prefix,)):
            return session_id_or_prefix
        if not session_id_or_prefix:
            return None
        high = session_id_or_prefix[:-1] + chr(min(ord(session_id_or_prefix[-1]) + 1, 0x10FFFF))
        found = self._all("SELECT id FROM sessions WHERE id >= ? AND id < ? LIMIT 2", (session_id_or_prefix, high))
        return found[0][0] if len(found) == 1 else None

    def distinct_session_cwds(self, include_archived: bool = False) -> list[Row]:
        """The folders that sessions worked in, most recent first."""
        archived = "" if include_archived else " AND archived = 0"
        rows = self._all(
            "SELECT cwd, max(git_repo_root), count(*), max(started_at) FROM sessions"
            f" WHERE cwd IS NOT NULL{archived} GROUP BY cwd ORDER BY max(started_at) DESC"
        )
        return [dict(zip(("cwd", "git_repo_root", "sessions", "last_active"), row, strict=True)) for row in rows]

    def backfill_repo_roots(self, cwd_to_root: dict[str, str]) -> None:
        """Fill in repository roots that were not known when the sessions began."""

        def work(conn: sqlite3.Connection) -> None:
            conn.executemany(
                "UPDATE sessions SET git_repo_root = ? WHERE cwd = ? AND git_repo_root IS NULL",
                [(root, cwd) for cwd, root in cwd_to_root.items()],
            )

        self._write(work)

    def _rich(self, conn: sqlite3.Connection, row: Row, *, tips: bool, compact: bool) -> Row:
        root = row
        if tips and row["end_reason"] == "compression":
            tip = tip_of(conn, row["id"])
            if tip != row["id"]:
                row = session_rows(conn, "WHERE s.id = ?", (tip,))[0]
                row |= {"lineage_root_id": root["id"], "started_at": root["started_at"]}
        row["preview"] = _preview(conn, root["id"], self.store.blobs.get)
        active = conn.execute("SELECT max(timestamp) FROM messages WHERE session_id = ?", (row["id"],)).fetchone()[0]
        row["last_active"] = active if active is not None else row["started_at"]
        if compact:
            for name in _LONG:
                row.pop(name)
        return row


def conditions(options: dict[str, Any]) -> tuple[str, list[Any]]:
    """A WHERE clause over `sessions s`; an unknown option is a `TypeError`."""
    unknown = sorted(options.keys() - _FILTERS)
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r} for a list of sessions")
    parts: list[str] = []
    values: list[Any] = []

    def add(part: str, *given: Any) -> None:
        parts.append(part)
        values.extend(given)

    for name in ("source", "user_id"):
        if options.get(name) is not None:
            add(f"s.{name} = ?", options[name])
    if excluded := options.get("exclude_sources"):
        add(f"s.source NOT IN ({placeholders(excluded)})", *excluded)
    if prefix := options.get("cwd_prefix"):
        folder = prefix.rstrip("/")
        add("(s.cwd = ? OR substr(s.cwd, 1, ?) = ?)", folder, len(folder) + 1, folder + "/")
    if least := options.get("min_message_count"):
        add("s.message_count >= ?", least)
    if options.get("archived_only"):
        add("s.archived = 1")
    elif not options.get("include_archived"):
        add("s.archived = 0")
    if wanted := options.get("id_query"):
        add("instr(lower(s.id), lower(?)) > 0", wanted)
    if wanted := options.get("search_query"):
        add(
            "(instr(lower(s.id), lower(?1)) > 0 OR instr(lower(coalesce(s.title, '')), lower(?1)) > 0)".replace(
                "?1", "?"
            ),
            wanted,
            wanted,
        )
    if options.get("exclude_children"):
        add(_NOT_CHILD)
    return (f"WHERE {' AND '.join(parts)}" if parts else "", values)


def _preview(conn: sqlite3.Connection, session_id: str, fetch: Any) -> str:
    row = conn.execute(
        "SELECT content FROM messages WHERE session_id = ? AND role = 'user' ORDER BY timestamp, id LIMIT 1",
        (session_id,),
    ).fetchone()
    text = " ".join(search_index.plain_text(row[0], fetch).split()) if row else ""
    return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "..."
