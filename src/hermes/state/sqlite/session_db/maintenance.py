"""Deleting, pruning, and giving the space back."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hermes.config.paths import results_dir
from hermes.errors import SessionInUse
from hermes.ops import Lease
from hermes.state.sqlite.leases import lease_of
from hermes.state.sqlite.session_db.base import DbBase, Row, session_rows
from hermes.state.sqlite.session_db.rows import delete_messages, unreferenced
from hermes.state.sqlite.session_db.session_lists import conditions
from hermes.state.sqlite.store_ops_sql import TEXT_REF

CHUNK = 1_000  # messages deleted in one transaction, so that no other writer waits long
LAST_PRUNE = "last_auto_prune"
DAY_S = 86_400.0
GHOST_AGE_S = 60.0  # an empty session younger than this may be about to get its first message

_EMPTY = (
    "s.message_count = 0 AND s.started_at < ? AND s.title IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id)"
    " AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_session_id = s.id)"
)


class MaintenanceCalls(DbBase):
    """Calls that make the store smaller."""

    def delete_session(self, session_id: str, sessions_dir: Path | None = None) -> bool:
        """Delete a session with its messages and files; children lose their parent. False when there is none."""
        if (lease := self._lease(session_id)) is not None:
            raise SessionInUse(session_id, lease.holder, lease.since)
        return bool(self.delete_sessions([session_id], sessions_dir))

    def delete_sessions(self, session_ids: Iterable[str], sessions_dir: Path | None = None) -> int:
        """Delete several; how many there were. The space goes back to the file system. One that is in use stays."""
        count = 0
        for session_id in session_ids:
            if self._lease(session_id) is None and self._delete(session_id):
                count += 1
                _remove_files(session_id, sessions_dir)
                shutil.rmtree(results_dir(self.db_path.parent, session_id), ignore_errors=True)
        if count:
            self.store.reclaim()
        return count

    def delete_session_if_empty(self, session_id: str, sessions_dir: Path | None = None) -> bool:
        """Delete it when nothing was said in it; whether it was."""
        empty = self._one(f"SELECT 1 FROM sessions s WHERE s.id = ? AND {_EMPTY}", (session_id, self._clock() + 1))
        return empty is not None and self.delete_session(session_id, sessions_dir)

    def count_empty_sessions(self) -> int:
        row = self._one(f"SELECT count(*) FROM sessions s WHERE {_EMPTY}", (self._clock() - GHOST_AGE_S,))
        return int(row[0]) if row else 0

    def delete_empty_sessions(self, sessions_dir: Path | None = None) -> int:
        """Delete sessions in which nothing was ever said; how many."""
        rows = self._all(f"SELECT s.id FROM sessions s WHERE {_EMPTY}", (self._clock() - GHOST_AGE_S,))
        return self.delete_sessions([row[0] for row in rows], sessions_dir)

    def prune_empty_ghost_sessions(self, sessions_dir: Path | None = None) -> int:
        """The same, under its older name."""
        return self.delete_empty_sessions(sessions_dir)

    def list_prune_candidates(
        self, older_than_days: float | None = None, source: str | None = None, **filters: Any
    ) -> list[Row]:
        """The ended sessions that `prune_sessions` would delete, oldest first."""
        where, values = self._ended_before(older_than_days, source, filters)
        return self.store.read(lambda conn: session_rows(conn, f"{where} ORDER BY s.started_at", values))

    def prune_sessions(
        self,
        older_than_days: float | None = 90,
        source: str | None = None,
        sessions_dir: Path | None = None,
        **filters: Any,
    ) -> int:
        """Delete sessions that ended longer ago; how many. Open ones are never pruned."""
        where, values = self._ended_before(older_than_days, source, filters)
        rows = self._all(f"SELECT s.id FROM sessions s {where}", values)
        count = self.delete_sessions([row[0] for row in rows], sessions_dir)
        self._sweep_blobs()
        return count

    def archive_sessions(self, older_than_days: float | None = None, source: str | None = None, **filters: Any) -> int:
        """Hide sessions that ended longer ago from lists; how many."""
        where, values = self._ended_before(older_than_days, source, filters)
        return self._execute(
            f"UPDATE sessions SET archived = 1 WHERE id IN (SELECT s.id FROM sessions s {where})", values
        )

    def maybe_auto_prune_and_vacuum(
        self,
        retention_days: int = 90,
        min_interval_hours: int = 24,
        vacuum: bool = True,
        sessions_dir: Path | None = None,
    ) -> Row:
        """Prune when the last time was long enough ago; says what was done."""
        now = self._clock()
        last = self._one("SELECT value FROM state_meta WHERE key = ?", (LAST_PRUNE,))
        if last is not None and now - float(last[0]) < min_interval_hours * 3600:
            return {"skipped": True, "pruned": 0, "vacuumed": False}
        self._execute(
            "INSERT INTO state_meta(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
            (LAST_PRUNE, repr(now)),
        )
        pruned = self.prune_sessions(retention_days, sessions_dir=sessions_dir)
        if pruned and vacuum:
            self.vacuum()
        return {"skipped": False, "pruned": pruned, "vacuumed": bool(pruned and vacuum)}

    def vacuum(self) -> int:
        """Merge the index, rewrite the file without gaps, drop unused blobs; the bytes that became free."""
        before = _size(self.db_path)
        self._execute("INSERT INTO messages_fts(messages_fts) VALUES ('optimize')")

        def work(conn: sqlite3.Connection) -> None:
            conn.execute("VACUUM")
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        self.store.write_alone(work)
        return max(0, before - _size(self.db_path)) + self._sweep_blobs()

    def storage_stats(self) -> Row:
        """How much there is: sessions, messages, bytes of the file and of the blobs, and what a delete would free."""
        sessions = self._one("SELECT count(*) FROM sessions")
        messages = self._one("SELECT count(*) FROM messages")
        free = self._one("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size")
        assert sessions is not None
        assert messages is not None
        assert free is not None
        return {
            "sessions": sessions[0],
            "messages": messages[0],
            "file_bytes": _size(self.db_path),
            "free_bytes": free[0],
            "blob_bytes": sum(path.stat().st_size for path in self.store.blobs.files()),
        }

    def _lease(self, session_id: str) -> Lease | None:
        return self.store.read(lambda conn: lease_of(conn, session_id))

    def _delete(self, session_id: str) -> bool:
        fetch = self.store.blobs.get

        def chunk(conn: sqlite3.Connection, size: int) -> tuple[int, list[str]]:
            rows = conn.execute(
                "SELECT id FROM messages WHERE session_id = ? ORDER BY timestamp LIMIT ?", (session_id, size)
            ).fetchall()
            loose = delete_messages(conn, [row[0] for row in rows], fetch)
            return len(rows), unreferenced(conn, loose)

        def last(conn: sqlite3.Connection) -> tuple[bool, list[str]]:
            loose = chunk(conn, -1)[1]
            conn.execute("UPDATE sessions SET parent_session_id = NULL WHERE parent_session_id = ?", (session_id,))
            for table in ("tool_runs", "compression_locks", "leases"):
                conn.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))
            texts = conn.execute(
                "SELECT system_prompt, tool_definitions FROM sessions WHERE id = ?", (session_id,)
            ).fetchone()
            found = bool(conn.execute("DELETE FROM sessions WHERE id = ?", (session_id,)).rowcount)
            _drop_texts(conn, texts or ())
            return found, loose

        while self._count(session_id) > CHUNK:
            self._drop_blobs(self._write(lambda conn: chunk(conn, CHUNK))[1])
        found, loose = self._write(last)
        self._drop_blobs(loose)
        return found

    def _count(self, session_id: str) -> int:
        row = self._one("SELECT count(*) FROM messages WHERE session_id = ?", (session_id,))
        return int(row[0]) if row else 0

    def _drop_blobs(self, digests: Iterable[str]) -> None:
        for digest in digests:
            self.store.blobs.remove(digest)

    def _sweep_blobs(self) -> int:
        return self.store.blobs.sweep(
            lambda name: self._one("SELECT 1 FROM blob_refs WHERE digest = ? LIMIT 1", (name,)) is not None
        )

    def _ended_before(self, days: float | None, source: str | None, filters: Row) -> tuple[str, list[Any]]:
        where, values = conditions({"include_archived": True, **filters, "source": source})
        where = f"{where} AND" if where else "WHERE"
        cutoff = self._clock() - (days or 0.0) * DAY_S
        return f"{where} s.ended_at IS NOT NULL AND s.ended_at < ?", [*values, cutoff]


def _drop_texts(conn: sqlite3.Connection, columns: Iterable[Any]) -> None:
    """Delete shared texts that no session refers to any more."""
    for value in columns:
        if isinstance(value, str) and value.startswith(TEXT_REF):
            conn.execute(
                "DELETE FROM texts WHERE digest = ?1 AND NOT EXISTS"
                " (SELECT 1 FROM sessions WHERE system_prompt = ?2 OR tool_definitions = ?2)",
                (value[len(TEXT_REF) :], value),
            )


def _remove_files(session_id: str, sessions_dir: Path | None) -> None:
    if sessions_dir is None or "/" in session_id or session_id.startswith("."):
        return
    for name in (f"{session_id}.jsonl", f"{session_id}.json", f"session_{session_id}.json"):
        (sessions_dir / name).unlink(missing_ok=True)


def _size(path: Path) -> int:
    parts = (path, path.with_name(path.name + "-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
