"""Titles: cleaned, unique, numbered along a lineage."""

import re
import sqlite3
import unicodedata

from hermes.state.sqlite.session_continuation import MAX_TITLE_CHARS, next_free, numbered_like
from hermes.state.sqlite.session_db.base import DbBase, Row
from hermes.state.sqlite.store_ops_sql import change_session


def sanitize_title(title: str | None) -> str | None:
    """The title without control and invisible characters, spaces collapsed; None when nothing is left.

    A title longer than 100 characters is a `ValueError`.
    """
    if title is None:
        return None
    spaced = re.sub(r"\s+", " ", title)
    visible = "".join(char for char in spaced if unicodedata.category(char) not in ("Cc", "Cf", "Cs"))
    clean = re.sub(r" +", " ", visible).strip()
    if len(clean) > MAX_TITLE_CHARS:
        raise ValueError(f"a title has at most {MAX_TITLE_CHARS} characters, this one has {len(clean)}")
    return clean or None


class TitleCalls(DbBase):
    """Calls on session titles."""

    sanitize_title = staticmethod(sanitize_title)

    def set_session_title(self, session_id: str, title: str | None) -> bool:
        """Set the title (nothing visible clears it); False when there is no session.

        `ValueError` when it is too long or another session has it.
        """
        clean = sanitize_title(title)
        return bool(self._write(lambda conn: change_session(conn, session_id, {"title": clean})))

    def set_auto_title_if_empty(self, session_id: str, title: str) -> bool:
        """Set a generated title where none is; a taken one gets the next number. Whether it was set."""
        clean = sanitize_title(title)
        if clean is None:
            return False

        def work(conn: sqlite3.Connection) -> bool:
            row = conn.execute("SELECT title FROM sessions WHERE id = ?", (session_id,)).fetchone()
            if row is None or row[0] is not None:
                return False
            return bool(change_session(conn, session_id, {"title": next_free(conn, clean)}))

        return self._write(work)

    def get_session_title(self, session_id: str) -> str | None:
        row = self._one("SELECT title FROM sessions WHERE id = ?", (session_id,))
        return row[0] if row else None

    def get_session_by_title(self, title: str) -> Row | None:
        """The session with exactly this title, or None."""
        rows = self._sessions("WHERE s.title = ?", (sanitize_title(title),))
        return rows[0] if rows else None

    def resolve_session_by_title(self, title: str) -> str | None:
        """The id of the newest "title #N" if there is any, else of the exact title."""
        clean = sanitize_title(title)
        if clean is None:
            return None
        numbered = [
            (number, found) for found, _, number in self.store.read(lambda conn: numbered_like(conn, clean)) if number
        ]
        if numbered:
            return max(numbered)[1]
        exact = self._one("SELECT id FROM sessions WHERE title = ?", (clean,))
        return exact[0] if exact else None

    def get_next_title_in_lineage(self, base_title: str) -> str:
        """`base_title` when it is unused, else with the number after the highest in use."""
        return self.store.read(lambda conn: next_free(conn, base_title))
