"""Export and import of whole sessions."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.errors import UserError
from hermes.state.schema import MESSAGE_COLUMNS, SESSION_COLUMNS
from hermes.state.sqlite.session_db.base import DbBase, Row
from hermes.state.sqlite.session_db.rows import MESSAGE_FIELDS, NewMessage, message_dict, recount, seconds
from hermes.state.sqlite.store_ops_sql import change_session

_DERIVED = ("id", "message_count", "tool_call_count")


class TransferCalls(DbBase):
    """Calls that move sessions between stores."""

    def export_session(self, session_id: str) -> Row | None:
        """All columns of the session and, under `messages`, of its messages; None when there is none."""
        rows = self._sessions("WHERE s.id = ?", (session_id,))
        return self._with_messages(rows[0]) if rows else None

    def export_all(self, source: str | None = None) -> list[Row]:
        """Every session of `source`, or every one, oldest first."""
        where, values = ("", ()) if source is None else ("WHERE s.source = ? ", (source,))
        return [self._with_messages(row) for row in self._sessions(f"{where}ORDER BY s.started_at, s.id", values)]

    def export_session_lineage(self, session_id: str) -> Row | None:
        """The session with its ancestors and all that grew out of it, root first."""
        ids = self._all(
            "WITH RECURSIVE up(id, parent) AS (SELECT id, parent_session_id FROM sessions WHERE id = ?1"
            " UNION SELECT s.id, s.parent_session_id FROM sessions s JOIN up ON s.id = up.parent),"
            " line(id) AS (SELECT id FROM up UNION SELECT s.id FROM sessions s"
            " JOIN line ON s.parent_session_id = line.id)"
            " SELECT s.id FROM line JOIN sessions s ON s.id = line.id ORDER BY s.started_at, s.id",
            (session_id,),
        )
        if not ids:
            return None
        exported = [self.export_session(row[0]) for row in ids]
        return {"session_id": session_id, "sessions": [one for one in exported if one is not None]}

    def import_sessions(self, sessions: Sequence[Mapping[str, Any]]) -> Row:
        """Add exported sessions; one that is there already is left alone.

        Each session is its own transaction. Answers with `imported`, `skipped` and `errors` (id and reason).
        """
        report: Row = {"imported": 0, "skipped": 0, "errors": []}
        for session in sessions:
            try:
                added = self._import(session)
            except (UserError, ValueError, KeyError, TypeError) as error:
                report["errors"].append({"id": str(session.get("id")), "error": str(error)})
                continue
            report["imported" if added else "skipped"] += 1
        return report

    def _with_messages(self, session: Row) -> Row:
        sql = f"SELECT {MESSAGE_FIELDS} FROM messages m WHERE m.session_id = ? ORDER BY m.id"  # noqa: S608 - fixed names
        rows = self._all(sql, (session["id"],))
        return {**session, "messages": [message_dict(row, self.store.blobs.get) for row in rows]}

    def _import(self, session: Mapping[str, Any]) -> bool:
        session_id = session.get("id")
        if not isinstance(session_id, str) or not session_id:
            raise UserError("an exported session needs an 'id'")
        now = self._clock()
        columns = {name: session[name] for name in SESSION_COLUMNS if name in session and name not in _DERIVED}
        columns["started_at"] = seconds(columns.get("started_at"), now)
        columns = {name: value for name, value in columns.items() if value is not None}
        raw = session.get("messages") or []
        messages = [NewMessage(session_id, _known(message), now) for message in raw]
        for message in messages:
            for digest, data in message.blobs.found.items():
                self.store.blobs.put(data, digest)

        def work(conn: sqlite3.Connection) -> bool:
            fresh = conn.execute(
                "INSERT INTO sessions(id, started_at) VALUES (?, ?) ON CONFLICT(id) DO NOTHING",
                (session_id, columns["started_at"]),
            ).rowcount
            if not fresh:
                return False
            if "title" in columns and _taken(conn, columns["title"]):
                del columns["title"]
            change_session(conn, session_id, columns)
            for message in messages:
                message.insert(conn)
            recount(conn, session_id)
            return True

        return self._write(work)


def _known(message: Mapping[str, Any]) -> Row:
    if "role" not in message:
        raise UserError("an exported message needs a 'role'")
    return {name: message[name] for name in MESSAGE_COLUMNS if name in message and name != "id"}


def _taken(conn: sqlite3.Connection, title: str) -> bool:
    return conn.execute("SELECT 1 FROM sessions WHERE title = ?", (title,)).fetchone() is not None
