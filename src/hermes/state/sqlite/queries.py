"""The named queries of `SessionDB` as SQL."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hermes.errors import StoreError
from hermes.ops import Lease
from hermes.state import queries
from hermes.state.codec import bind_text, decode_json, read_text
from hermes.state.message_rows import call_count
from hermes.state.schema import MESSAGE_COLUMNS, SESSION_COLUMNS, TABLES
from hermes.state.sqlite import search_index, tables
from hermes.state.sqlite.leases import lease_of
from hermes.state.sqlite.message_sql import NewMessage, delete_messages, message_dicts, recount
from hermes.state.sqlite.read import full_text
from hermes.state.sqlite.session_continuation import line_after, line_before
from hermes.state.sqlite.store_ops_sql import TEXT_REF, change_session, change_where
from hermes.state.sqlite.surroundings import surroundings

if TYPE_CHECKING:
    from hermes.state.sqlite.store import SqliteStore

CHUNK = 1_000  # messages deleted in one transaction, so that no other writer waits long

_LONG_TEXTS = ("system_prompt", "tool_definitions")
_LAST_ACTIVE = "coalesce((SELECT max(m.timestamp) FROM messages m WHERE m.session_id = s.id), s.started_at)"
_ORDERS = {
    "newest": "s.started_at DESC, s.id DESC",
    "oldest": "s.started_at, s.id",
    "active": f"{_LAST_ACTIVE} DESC, s.id DESC",
}
_NO_CHILD = (
    "(s.parent_session_id IS NULL OR EXISTS (SELECT 1 FROM sessions p WHERE p.id = s.parent_session_id"
    " AND p.end_reason = 'branched') OR NOT EXISTS (SELECT 1 FROM sessions p WHERE p.id = s.parent_session_id))"
)
_EMPTY = (
    "s.message_count = 0 AND s.started_at < ? AND s.title IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id)"
    " AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_session_id = s.id)"
)
_GROUPS = {"day": "date(started_at, 'unixepoch', 'localtime')", "session_id": "coalesce(session_id, '')"}
_SUMS = (
    f"count(*) AS calls, {', '.join(f'coalesce(sum({name}), 0)' for name in queries.TOKENS)}, sum(cost_usd),"
    " coalesce(sum(latency_ms), 0) / 1000.0,"
    " count(*) FILTER (WHERE outcome IS NULL OR outcome NOT IN ('ok', 'partial')),"
    " count(*) FILTER (WHERE outcome IN ('ok', 'partial') AND output_tokens IS NULL),"
    " count(*) FILTER (WHERE outcome IN ('ok', 'partial') AND cost_usd IS NULL)"
)
_BUMP = "UPDATE sessions SET message_count = message_count + 1, tool_call_count = tool_call_count + ? WHERE id = ?"
_HOLD_LOCK = (
    "INSERT INTO compression_locks(session_id, holder, expires_at) VALUES (?1, ?2, ?3)"
    " ON CONFLICT(session_id) DO UPDATE SET holder = ?2, expires_at = ?3 WHERE expires_at <= ?4 OR holder = ?2"
)
_SET_ROUTE = (
    "INSERT INTO gateway_routing(scope, session_key, entry_json) VALUES (?, ?, ?)"
    " ON CONFLICT(scope, session_key) DO UPDATE SET entry_json = excluded.entry_json"
)


class SqliteQueries:
    """`SessionQueries` over the connections of a `SqliteStore`."""

    def __init__(self, store: "SqliteStore") -> None:
        self._store = store
        self._blobs = store.blobs
        self.search = store.search_sync
        self.load = store.load_sync
        self.commit = store.commit_sync
        self.rebuild_index = store.rebuild_index

    # -- sessions ----------------------------------------------------------------------------------------------------

    def sessions(self, where: queries.SessionFilter, columns: Sequence[str] = ()) -> list[queries.Row]:
        return self._store.read(_session_rows(where, columns))

    async def sessions_soon(self, where: queries.SessionFilter, columns: Sequence[str] = ()) -> list[queries.Row]:
        return await self._store.read_soon(_session_rows(where, columns))

    def count_sessions(self, where: queries.SessionFilter) -> int:
        clause, values = _conditions(where)
        return int(self._one(f"SELECT count(*) FROM sessions s{clause}", *values)[0])

    def glances(self, session_ids: Sequence[str]) -> dict[str, queries.Glance]:
        return self._store.read(lambda conn: {one: _glance(conn, one, self._blobs.get) for one in session_ids})

    def lineage(self, session_id: str) -> queries.Lineage:
        return self._store.read(
            lambda conn: queries.Lineage(
                _ancestors(conn, session_id), line_before(conn, session_id), line_after(conn, session_id)
            )
        )

    def lease(self, session_id: str) -> Lease | None:
        return self._store.read(lambda conn: lease_of(conn, session_id))

    def add_session(self, columns: queries.Row, messages: Sequence[queries.Row] = ()) -> bool:
        rest = dict(columns)
        session_id, started_at = rest.pop("id"), rest.pop("started_at")
        new = self._encoded(session_id, messages)

        def work(conn: sqlite3.Connection) -> bool:
            fresh = conn.execute(
                "INSERT INTO sessions(id, started_at) VALUES (?, ?) ON CONFLICT(id) DO NOTHING",
                (session_id, started_at),
            ).rowcount
            if not fresh:
                return False
            change_session(conn, session_id, rest)
            for message in new:
                message.insert(conn)
            if new:
                recount(conn, session_id)
            return True

        return self._store.write(work)

    def change_sessions(self, where: queries.SessionFilter, changes: queries.Row) -> int:
        clause, values = _conditions(where)
        return self._store.write(lambda conn: change_where(conn, clause, values, changes))

    def count_up(self, session_id: str, add: queries.Row, replace: queries.Row, fill: queries.Row) -> None:
        sets = [f"{name} = coalesce({name}, 0) + ?" for name in add]
        sets += [f"{name} = ?" for name in replace] + [f"{name} = coalesce({name}, ?)" for name in fill]
        values = (*add.values(), *replace.values(), *fill.values(), session_id)
        self._execute(f"UPDATE sessions SET {', '.join(sets)} WHERE id = ?", *values)

    def delete_session(self, session_id: str) -> bool:
        def chunk(conn: sqlite3.Connection, size: int) -> list[str]:
            rows = conn.execute(
                "SELECT id FROM messages WHERE session_id = ? ORDER BY timestamp LIMIT ?", (session_id, size)
            )
            return delete_messages(conn, [row[0] for row in rows.fetchall()], self._blobs.get)

        def last(conn: sqlite3.Connection) -> tuple[bool, list[str]]:
            loose = chunk(conn, -1)
            conn.execute("UPDATE sessions SET parent_session_id = NULL WHERE parent_session_id = ?", (session_id,))
            for table in (
                "tool_runs",
                "compression_locks",
                "leases",
                "queued_messages",
                "session_events",
                "model_calls",
            ):
                conn.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))
            texts = conn.execute(
                "SELECT system_prompt, tool_definitions FROM sessions WHERE id = ?", (session_id,)
            ).fetchone()
            found = bool(conn.execute("DELETE FROM sessions WHERE id = ?", (session_id,)).rowcount)
            _drop_texts(conn, texts or ())
            return found, loose

        while (
            self.count_messages(queries.MessageFilter(session_id=session_id, is_active=None, limit=CHUNK + 1)) > CHUNK
        ):
            self._drop_blobs(self._store.write(lambda conn: chunk(conn, CHUNK)))
        found, loose = self._store.write(last)
        self._drop_blobs(loose)
        return found

    # -- messages ----------------------------------------------------------------------------------------------------

    def messages(self, where: queries.MessageFilter, columns: Sequence[str] = ()) -> list[queries.Row]:
        names = tuple(columns or MESSAGE_COLUMNS)
        clause, values = _of_messages(where)
        order = "DESC" if where.newest_first else "ASC"
        sql = f"SELECT {', '.join(names)} FROM messages m{clause} ORDER BY m.id {order} LIMIT ? OFFSET ?"
        return message_dicts(self._all(sql, *values, where.limit, where.offset), names, self._blobs.get)

    def surroundings(
        self, places: Sequence[queries.MessagePlace], columns: Sequence[str]
    ) -> list[queries.AroundMessage]:
        return self._store.read(lambda conn: surroundings(conn, places, columns, self._blobs.get))

    def count_messages(self, where: queries.MessageFilter) -> int:
        clause, values = _of_messages(where)
        if where.limit < 0:
            return int(self._one(f"SELECT count(*) FROM messages m{clause}", *values)[0])
        sql = f"SELECT count(*) FROM (SELECT 1 FROM messages m{clause} LIMIT ? OFFSET ?)"
        return int(self._one(sql, *values, where.limit, where.offset)[0])

    def add_message(self, session_id: str, message: queries.Row) -> int:
        (new,) = self._encoded(session_id, [message])
        calls = call_count(message["tool_calls"])

        def work(conn: sqlite3.Connection) -> int:
            if not conn.execute(_BUMP, (calls, session_id)).rowcount:
                raise StoreError(f"no session {session_id!r}")
            return new.insert(conn)

        return self._store.write(work)

    def replace_messages(self, session_id: str, messages: Sequence[queries.Row], *, active_only: bool) -> None:
        new = self._encoded(session_id, messages)
        only = " AND active = 1" if active_only else ""

        def work(conn: sqlite3.Connection) -> list[str]:
            if conn.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone() is None:
                raise StoreError(f"no session {session_id!r}")
            old = conn.execute(f"SELECT id FROM messages WHERE session_id = ?{only}", (session_id,)).fetchall()
            loose = set(delete_messages(conn, [row[0] for row in old], self._blobs.get))
            for message in new:
                message.insert(conn)
                loose -= message.blobs.refs
            recount(conn, session_id)
            return sorted(loose)

        self._drop_blobs(self._store.write(work))

    def rewind(self, session_id: str, message_id: int) -> int:
        def work(conn: sqlite3.Connection) -> int:
            sql = "SELECT 1 FROM messages WHERE id = ? AND session_id = ? AND active = 1"
            if conn.execute(sql, (message_id, session_id)).fetchone() is None:
                raise StoreError(f"session {session_id!r} has no active message {message_id}")
            sql = "UPDATE messages SET active = 0 WHERE session_id = ? AND id >= ? AND active = 1"
            count = conn.execute(sql, (session_id, message_id)).rowcount
            conn.execute("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = ?", (session_id,))
            recount(conn, session_id)
            return count

        return self._store.write(work)

    def restore(self, session_id: str, message_id: int) -> int:
        def work(conn: sqlite3.Connection) -> int:
            sql = "UPDATE messages SET active = 1 WHERE session_id = ? AND id >= ? AND active = 0 AND compacted = 0"
            count = conn.execute(sql, (session_id, message_id)).rowcount
            recount(conn, session_id)
            return count

        return self._store.write(work)

    def set_api_content(self, message_id: int, text: str) -> None:
        self._execute("UPDATE messages SET api_content = ? WHERE id = ?", bind_text(text), message_id)

    # -- beside sessions and messages --------------------------------------------------------------------------------

    def records(
        self, table: queries.RecordTable, session_id: str | None, since: float, limit: int
    ) -> list[queries.Row]:
        columns = tuple(TABLES[table])
        clause, values = " WHERE 1", list[Any]()
        if table == "attempts":
            clause, values = " WHERE started_at >= ?", [since]
        if session_id is not None:
            clause, values = f"{clause} AND session_id = ?", [*values, session_id]
        sql = f"SELECT {', '.join(columns)} FROM {table}{clause} ORDER BY id DESC LIMIT ?"
        return [dict(zip(columns, map(_plain, row), strict=True)) for row in self._all(sql, *values, limit)]

    def events(self, session_id: str, after: int, limit: int) -> list[queries.Row]:
        found = self.lineage(session_id)
        line = (*dict.fromkeys((*found.before, *found.after)),)
        names = ("number", "session_id", "at", "kind", "about", "body")
        marks = ", ".join("?" * len(line))
        sql = (
            "SELECT id, session_id, at, kind, about, body FROM session_events"
            f" WHERE session_id IN ({marks}) AND id > ? ORDER BY id LIMIT ?"
        )
        rows = [dict(zip(names, map(_plain, row), strict=True)) for row in self._all(sql, *line, after, limit)]
        return [{**row, "body": decode_json(row["body"])} for row in rows]

    def newest_event(self) -> int:
        return int(self._one("SELECT coalesce(max(id), 0) FROM session_events")[0])

    def usage(self, by: str, since: float) -> list[queries.Row]:
        names = queries.USAGE_GROUPS[by]
        group = ", ".join(_GROUPS.get(name, name) for name in names)
        order = "1 DESC" if by == "day" else "calls DESC, 1"
        sql = f"SELECT {group}, {_SUMS} FROM attempts WHERE started_at >= ? GROUP BY {group} ORDER BY {order}"
        return [dict(zip((*names, *queries.USAGE_SUMS), row, strict=True)) for row in self._all(sql, since)]

    def figures(self) -> queries.Row:
        by_source = self._all("SELECT source, count(*) FROM sessions GROUP BY source ORDER BY 2 DESC, 1")
        free = self._one("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size")
        return {
            "sessions": sum(count for _, count in by_source),
            "messages": self._one("SELECT count(*) FROM messages")[0],
            "by_source": {str(source): int(count) for source, count in by_source},
            "file_bytes": _size(self._store.path),
            "free_bytes": free[0],
            "blob_bytes": sum(path.stat().st_size for path in self._blobs.files()),
        }

    def meta(self, key: str) -> str | None:
        rows = self._all("SELECT value FROM state_meta WHERE key = ?", key)
        return rows[0][0] if rows else None

    def set_meta(self, key: str, value: str) -> None:
        self._store.write(lambda conn: tables.set_meta(conn, key, value))

    def routes(self, scope: str) -> dict[str, str]:
        return dict(self._all("SELECT session_key, entry_json FROM gateway_routing WHERE scope = ?", scope))

    def change_routes(self, scope: str, entries: Mapping[str, str], remove: Sequence[str] | None = ()) -> None:
        gone, added = [(scope, key) for key in remove or ()], [(scope, *entry) for entry in entries.items()]

        def work(conn: sqlite3.Connection) -> None:
            if remove is None:
                conn.execute("DELETE FROM gateway_routing WHERE scope = ?", (scope,))
            conn.executemany("DELETE FROM gateway_routing WHERE scope = ? AND session_key = ?", gone)
            conn.executemany(_SET_ROUTE, added)

        self._store.write(work)

    def compression_lock(self, session_id: str) -> tuple[str, float] | None:
        rows = self._all("SELECT holder, expires_at FROM compression_locks WHERE session_id = ?", session_id)
        return (rows[0][0], rows[0][1]) if rows else None

    def hold_compression_lock(self, session_id: str, holder: str, now: float, until: float) -> bool:
        return bool(self._execute(_HOLD_LOCK, session_id, holder, until, now))

    def extend_compression_lock(self, session_id: str, holder: str, until: float | None) -> bool:
        where = "WHERE session_id = ? AND holder = ?"
        if until is None:
            return bool(self._execute(f"DELETE FROM compression_locks {where}", session_id, holder))
        return bool(self._execute(f"UPDATE compression_locks SET expires_at = ? {where}", until, session_id, holder))

    # -- space and index ---------------------------------------------------------------------------------------------

    def reclaim(self, effort: Literal["pages", "blobs", "all"]) -> int:
        before = _size(self._store.path)
        if effort == "all":
            self._execute(search_index.OPTIMIZE)
            self._store.write_alone(_rewrite)
        elif effort == "pages":
            self._store.reclaim()
        freed = max(0, before - _size(self._store.path))
        return freed if effort == "pages" else freed + self._blobs.sweep(self._is_used)

    def optimize_index(self) -> int:
        waiting = self._store.index_all()
        self._execute(search_index.OPTIMIZE)
        return waiting

    def _is_used(self, digest: str) -> bool:
        return bool(self._all("SELECT 1 FROM blob_refs WHERE digest = ? LIMIT 1", digest))

    def _drop_blobs(self, digests: Iterable[str]) -> None:
        for digest in digests:
            self._blobs.remove(digest)

    def _encoded(self, session_id: str, messages: Iterable[queries.Row]) -> list[NewMessage]:
        """Messages whose blobs are on disk already."""
        new = [NewMessage(session_id, message) for message in messages]
        for message in new:
            for digest, data in message.blobs.found.items():
                self._blobs.put(data, digest)
        return new

    def _execute(self, sql: str, *values: Any) -> int:
        """One statement in its own transaction; the number of rows it changed."""
        return self._store.write(lambda conn: conn.execute(sql, values).rowcount)

    def _all(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._store.read(lambda conn: conn.execute(sql, values).fetchall())

    def _one(self, sql: str, *values: Any) -> tuple[Any, ...]:
        return self._all(sql, *values)[0]


def _session_rows(
    where: queries.SessionFilter, columns: Sequence[str]
) -> Callable[[sqlite3.Connection], list[queries.Row]]:
    names = tuple(columns or SESSION_COLUMNS)
    clause, values = _conditions(where)
    sql = (
        f"SELECT {', '.join(f's.{name}' for name in names)} FROM sessions s{clause}"
        f" ORDER BY {_ORDERS[where.order]} LIMIT ? OFFSET ?"
    )

    def work(conn: sqlite3.Connection) -> list[queries.Row]:
        found = conn.execute(sql, (*values, where.limit, where.offset)).fetchall()
        rows = [dict(zip(names, map(_plain, row), strict=True)) for row in found]
        for name in _LONG_TEXTS:
            if name in names:
                for row in rows:
                    row[name] = full_text(conn, row[name])
        return rows

    return work


def _conditions(where: queries.SessionFilter) -> tuple[str, list[Any]]:
    """A WHERE clause over `sessions s`, and its values."""
    parts: list[str] = []
    values: list[Any] = []

    def add(part: str, *given: Any) -> None:
        parts.append(part)
        values.extend(given)  # a word that is no text raises here, and whoever typed it is told

    if where.ids is not None:
        is_one = len(where.ids) == 1
        add("s.id = ?" if is_one else "s.id IN (SELECT value FROM json_each(?))", *_as_json(where.ids))
    for name, value in where.equal.items():
        add(f"s.{name} IS NULL") if value is None else add(f"s.{name} = ?", value)
    for name, several in where.other_than.items():
        add(f"coalesce(s.{name}, '') NOT IN ({','.join('?' * len(several))})", *several)
    for name in where.filled:
        add(f"s.{name} IS NOT NULL")
    if prefix := where.id_prefix:
        add("s.id >= ? AND s.id < ?", prefix, prefix[:-1] + chr(min(ord(prefix[-1]) + 1, 0x10FFFF)))
    if wanted := where.id_has:
        add("instr(lower(s.id), lower(?)) > 0", wanted)
    if wanted := where.id_or_title_has:
        add("(instr(lower(s.id), lower(?)) > 0 OR instr(lower(coalesce(s.title, '')), lower(?)) > 0)", wanted, wanted)
    if title := where.title_like:
        add("(s.title = ? OR (s.title >= ? AND s.title < ?))", title, f"{title} #", f"{title} $")  # "$" follows "#"
    if folder := where.folder:
        add("(s.cwd = ? OR substr(s.cwd, 1, ?) = ?)", folder, len(folder) + 1, folder + "/")
    if where.least_messages:
        add("s.message_count >= ?", where.least_messages)
    if where.ended_before is not None:
        add("s.ended_at < ?", where.ended_before)
    if where.empty_before is not None:
        add(_EMPTY, where.empty_before)
    if where.is_no_child:
        add(_NO_CHILD)
    return (f" WHERE {' AND '.join(parts)}" if parts else "", values)


def _of_messages(where: queries.MessageFilter) -> tuple[str, list[Any]]:
    """A WHERE clause over `messages m`, and its values."""
    known: dict[str, Any] = {
        "m.session_id = ?": where.session_id,
        "m.active = ?": None if where.is_active is None else int(where.is_active),
        "m.id > ?": where.above or None,
        "m.id < ?": where.below,
        "m.platform_message_id = ?": where.platform_message_id,
    }
    parts = [part for part, value in known.items() if value is not None]
    values = [value for value in known.values() if value is not None]
    for name, several in (("id", where.ids), ("role", where.roles)):
        if several is not None:
            parts.append(f"m.{name} IN ({','.join('?' * len(several))})")
            values += several
    return (f" WHERE {' AND '.join(parts)}" if parts else "", values)


def _as_json(ids: Sequence[str]) -> Sequence[str]:
    return ids if len(ids) == 1 else [json.dumps(list(ids))]


def _glance(conn: sqlite3.Connection, session_id: str, fetch: Any) -> queries.Glance:
    row = conn.execute(
        "SELECT content FROM messages WHERE session_id = ? AND role = 'user' ORDER BY timestamp, id LIMIT 1",
        (session_id,),
    ).fetchone()
    words = " ".join(search_index.plain_text(row[0], fetch).split()) if row else ""
    active = conn.execute("SELECT max(timestamp) FROM messages WHERE session_id = ?", (session_id,)).fetchone()[0]
    return queries.Glance(words, active)


def _ancestors(conn: sqlite3.Connection, session_id: str) -> list[str]:
    """The line from the root to the session itself."""
    line = [session_id]
    while True:
        row = conn.execute("SELECT parent_session_id FROM sessions WHERE id = ?", (line[0],)).fetchone()
        if row is None or row[0] is None or row[0] in line:
            return line
        line.insert(0, row[0])


def _drop_texts(conn: sqlite3.Connection, columns: Iterable[Any]) -> None:
    """Delete shared texts that no session refers to any more."""
    for value in columns:
        if isinstance(value, str) and value.startswith(TEXT_REF):
            conn.execute(
                "DELETE FROM texts WHERE digest = ?1 AND NOT EXISTS"
                " (SELECT 1 FROM sessions WHERE system_prompt = ?2 OR tool_definitions = ?2)",
                (value[len(TEXT_REF) :], value),
            )


def _rewrite(conn: sqlite3.Connection) -> None:
    conn.execute("VACUUM")
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _plain(value: Any) -> Any:
    return read_text(value) if isinstance(value, bytes) else value


def _size(path: Path) -> int:
    parts = (path, path.with_name(path.name + "-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
