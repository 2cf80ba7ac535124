"""Bringing an older file, or one written by Hermes Agent, to the current schema: a copy first, then all or nothing."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from hermes.state import schema


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
        schema.create(conn)
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
