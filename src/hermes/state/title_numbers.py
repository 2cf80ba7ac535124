"""Titles that many sessions would like to have: "title", "title #2", "title #3"."""

import re
import sqlite3

MAX_TITLE_CHARS = 100

_NUMBERED = re.compile(r"^(.*) #(\d+)$", re.DOTALL)


def next_free(conn: sqlite3.Connection, title: str) -> str:
    """`title` when it is unused, else with the number after the highest in use."""
    numbered = _NUMBERED.match(title)
    base = numbered.group(1) if numbered else title
    used = [number for _, _, number in numbered_like(conn, base)]
    if not used:
        return base
    number = max(1, *used)
    while True:
        number += 1
        ending = f" #{number}"
        title = base[: MAX_TITLE_CHARS - len(ending)] + ending
        # One that was cut to make room for its number may be in use, without beginning like this one.
        if conn.execute("SELECT 1 FROM sessions WHERE title = ?", (title,)).fetchone() is None:
            return title


def numbered_like(conn: sqlite3.Connection, base: str) -> list[tuple[str, str, int]]:
    """(id, title, number) of the sessions called `base` or `base #N`; the plain one has number 0."""
    escaped = base.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    rows = conn.execute(
        "SELECT id, title FROM sessions WHERE title = ? OR title LIKE ? ESCAPE '\\'", (base, f"{escaped} #%")
    )
    found = []
    for session_id, title in rows:
        numbered = _NUMBERED.match(title)
        if title == base:
            found.append((session_id, title, 0))
        elif numbered and numbered.group(1) == base:
            found.append((session_id, title, int(numbered.group(2))))
    return found
