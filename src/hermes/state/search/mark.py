"""How far the index reaches. Apart from the index itself, since every start reads it."""

import sqlite3

WATERMARK = "fts_watermark"
FORMAT = "fts_format"
FORMAT_VERSION = "1"  # raise it when what is indexed changes: an index of another format is made anew


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
