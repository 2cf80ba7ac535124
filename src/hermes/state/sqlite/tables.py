"""The tables as SQLite has them: made, brought up to date from older files, and how far the search index reaches.

An older file, or one written by Hermes Agent, is copied first, then changed all or nothing.
"""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from hermes.state import schema

INDEXES = (
    "CREATE INDEX IF NOT EXISTS idx_sessions_source ON sessions(source)",
    "CREATE INDEX IF NOT EXISTS idx_sessions_parent ON sessions(parent_session_id)",
    "CREATE INDEX IF NOT EXISTS idx_sessions_started ON sessions(started_at DESC)",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_sessions_title ON sessions(title) WHERE title IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS idx_messages_session ON messages(session_id, timestamp)",
    "CREATE INDEX IF NOT EXISTS idx_tool_runs_session ON tool_runs(session_id, status)",
    "CREATE INDEX IF NOT EXISTS idx_attempts_open ON attempts(id) WHERE outcome IS NULL",
    "CREATE INDEX IF NOT EXISTS idx_attempts_started ON attempts(started_at)",
    "CREATE INDEX IF NOT EXISTS idx_attempts_session ON attempts(session_id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_blob_refs ON blob_refs(digest, message_id)",
    "CREATE INDEX IF NOT EXISTS idx_blob_refs_message ON blob_refs(message_id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_queued_messages_key ON queued_messages(session_id, key)",
    "CREATE INDEX IF NOT EXISTS idx_queued_messages_number ON queued_messages(session_id, number)",
    "CREATE INDEX IF NOT EXISTS idx_queued_messages_taken ON queued_messages(session_id) WHERE state = 'taken'",
    "CREATE INDEX IF NOT EXISTS idx_queued_messages_ended ON queued_messages(at) WHERE content IS NULL",
    "CREATE INDEX IF NOT EXISTS idx_session_events ON session_events(session_id, id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_due_moments ON due_moments(job_id, kind, due_at) WHERE state != 'folded'",
    "CREATE INDEX IF NOT EXISTS idx_due_moments_planned ON due_moments(start_at, id) WHERE state = 'planned'",
    "CREATE INDEX IF NOT EXISTS idx_due_moments_job ON due_moments(job_id, state, due_at)",
    "CREATE INDEX IF NOT EXISTS idx_due_moments_claimed ON due_moments(id) WHERE state = 'claimed'",
    "CREATE INDEX IF NOT EXISTS idx_due_moments_last ON due_moments(last_at)",
    "CREATE INDEX IF NOT EXISTS idx_outbox ON outbox(next_try_at) WHERE state IN ('waiting', 'sending')",
    "CREATE INDEX IF NOT EXISTS idx_model_calls ON model_calls(session_id, id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_batch_samples ON batch_samples(run_id, idx)",
    "CREATE INDEX IF NOT EXISTS idx_batch_samples_state ON batch_samples(run_id, state, attempt, idx)",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_gateway_routing ON gateway_routing(scope, session_key)",
)

# Contentless: the words are stored once, in messages. `tags` holds role and source, so that filters
# cost no join. Lengths are not kept: ranking has its own, bounded measure.
SEARCH_INDEX = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts USING fts5("
    "content, tags, content='', columnsize=0, tokenize='unicode61 remove_diacritics 2')"
)

WATERMARK = "fts_watermark"
FORMAT = "fts_format"
FORMAT_VERSION = "2"  # raise it when what is indexed changes: an index of another format is made anew


def create(conn: sqlite3.Connection) -> None:
    """Make whatever is missing: tables, columns, indexes. Runs inside the caller's transaction."""
    for table, columns in schema.TABLES.items():
        spec = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        conn.execute(f"CREATE TABLE IF NOT EXISTS {table} ({spec})")
        present = {row[1] for row in conn.execute(f"PRAGMA table_info({table})")}
        for name, kind in columns.items():
            if name not in present:
                conn.execute(f"ALTER TABLE {table} ADD COLUMN {name} {_addable(kind)}")
    for statement in INDEXES:
        conn.execute(statement)
    conn.execute(SEARCH_INDEX)
    conn.execute("DELETE FROM schema_version")
    conn.execute("INSERT INTO schema_version(version) VALUES (?)", (schema.SCHEMA_VERSION,))
    conn.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION}")


def _addable(kind: str) -> str:
    """SQLite cannot add a NOT NULL column without a default to a table that has rows."""
    if "NOT NULL" in kind and "DEFAULT" not in kind:
        return kind.replace("NOT NULL", "").strip()
    return kind


def is_foreign(conn: sqlite3.Connection) -> bool:
    """Whether the file holds sessions but was never written by us."""
    version = conn.execute("PRAGMA user_version").fetchone()[0]
    return version == 0 and conn.execute("SELECT 1 FROM sqlite_master WHERE name = 'messages'").fetchone() is not None


def migrate(conn: sqlite3.Connection, path: Path) -> Path | None:
    """Bring the file to the current schema; the path of the copy that was made before, if there was anything to copy.

    The caller holds the lock between processes.
    """
    version = conn.execute("PRAGMA user_version").fetchone()[0]
    foreign = is_foreign(conn)
    copy = _copy(conn, path, version) if version or foreign else None
    conn.execute("BEGIN IMMEDIATE")
    try:
        if foreign:
            _adopt(conn)
        create(conn)
        if version:
            from hermes.state.sqlite.message_line import adopt_old_lines  # once for each file

            adopt_old_lines(conn)
    except BaseException:
        conn.execute("ROLLBACK")
        raise
    conn.execute("COMMIT")
    return copy


def _copy(conn: sqlite3.Connection, path: Path, version: int) -> Path:
    copy = path.with_name(f"{path.name}.schema{version}-{time.strftime('%Y%m%d-%H%M%S')}")
    copy.touch(mode=0o600)
    with closing(sqlite3.connect(copy)) as target:
        conn.backup(target)
    return copy


def _adopt(conn: sqlite3.Connection) -> None:
    """Take over a file of Hermes Agent: its columns stay, its two indexes and their triggers give way to ours."""
    for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        conn.execute(f'DROP TRIGGER "{name}"')
    for name in ("messages_fts", "messages_fts_trigram"):
        conn.execute(f"DROP TABLE IF EXISTS {name}")
    columns = {row[1] for row in conn.execute("PRAGMA table_info(sessions)")}
    if "title" in columns:  # titles were not always unique there; the newest session keeps its own
        conn.execute(
            "UPDATE sessions SET title = NULL WHERE title IS NOT NULL"
            " AND rowid NOT IN (SELECT max(rowid) FROM sessions GROUP BY title)"
        )


def watermark(conn: sqlite3.Connection) -> int:
    """The newest message id that is indexed; all up to it are, all after it are not."""
    row = conn.execute("SELECT value FROM state_meta WHERE key = ?", (WATERMARK,)).fetchone()
    return int(row[0]) if row else 0


def newest_id(conn: sqlite3.Connection) -> int:
    """The highest id that a message ever had."""
    row = conn.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
    return int(row[0]) if row else 0


def is_sound(conn: sqlite3.Connection) -> bool:
    """Whether the index has this format and its watermark is a message that can exist."""
    row = conn.execute("SELECT value FROM state_meta WHERE key = ?", (FORMAT,)).fetchone()
    mark = watermark(conn)
    if mark == 0:
        return row is None or row[0] == FORMAT_VERSION
    return row is not None and row[0] == FORMAT_VERSION and mark <= newest_id(conn)


def set_meta(conn: sqlite3.Connection, key: str, value: str) -> None:
    """Set a value of the store as a whole, inside the caller's transaction."""
    conn.execute(
        "INSERT INTO state_meta(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
        (key, value),
    )
