"""`repair`: look at everything in a state file, mend what a crash or a bad disk left, and say what was done."""

import sqlite3
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.errors import StoreError
from hermes.ops import MessageAppended
from hermes.state import owner
from hermes.state.codec import Blobs
from hermes.state.sqlite import tables
from hermes.state.sqlite.message_sql import recount
from hermes.state.sqlite.store import SqliteStore
from hermes.state.sqlite.store_ops_sql import encode_message
from hermes.types import Message, ResultStatus

UNKNOWN_TEXT = (
    '{"status": "unknown", "error": "The process ended while this call was running. It may or may not have taken '
    'effect: check before you do it again."}'
)


NOT_RUN_TEXT = (
    '{"status": "cancelled", "error": "Not run: the process ended before this call was started. It had no effect."}'
)


class RepairReport(Struct, frozen=True):
    """What was looked at and done. `lines()` is for printing."""

    path: Path
    done: tuple[str, ...]
    lost: tuple[str, ...]
    aside: Path | None = None

    @property
    def was_sound(self) -> bool:
        return not self.done and not self.lost

    def lines(self) -> list[str]:
        """The report in words, one line each."""
        if self.was_sound:
            return [f"{self.path}: sound, nothing to repair"]
        return [
            f"{self.path}: repaired",
            *(f"  {line}" for line in self.done),
            *(f"  lost: {line}" for line in self.lost),
        ]


def repair(path: Path | str) -> RepairReport:
    """Check and mend the file at `path`; other processes may go on using it.

    Calls and model requests count as interrupted only when the process that began them is surely gone.
    """
    path = Path(path).absolute()
    if not path.exists():
        raise StoreError(f"there is no session file at {str(path)!r}")
    store = SqliteStore(path)
    try:
        return _Repair(store).run()
    finally:
        store.close_sync()


class _Repair:
    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._done: list[str] = []
        self._lost: list[str] = []

    def run(self) -> RepairReport:
        store = self._store
        salvaged = store.salvaged or store.salvage_if_damaged()
        if salvaged is not None:
            self._done.append(salvaged.sentence())
            if not salvaged.is_all:
                self._lost.append(
                    "everything" if salvaged.is_nothing else "what stood on the damaged places of the file"
                )
        store.write(self._adopt_orphans)
        store.write(self._recount)
        store.write(self._close_calls)
        store.write(self._close_attempts)
        self._mend_index()
        self._check_blobs()
        return RepairReport(
            store.path,
            tuple(self._done),
            tuple(self._lost),
            None if salvaged is None or salvaged.is_nothing else salvaged.aside,
        )

    def _adopt_orphans(self, conn: sqlite3.Connection) -> None:
        rows = conn.execute(
            "SELECT session_id, min(timestamp) FROM messages WHERE session_id NOT IN (SELECT id FROM sessions)"
            " GROUP BY session_id"
        ).fetchall()
        conn.executemany("INSERT INTO sessions(id, source, started_at) VALUES (?, 'recovered', ?)", rows)
        for session_id, _ in rows:
            recount(conn, session_id)
        self._say(len(rows), "session rows were made anew for messages without one")

    def _recount(self, conn: sqlite3.Connection) -> None:
        rows = conn.execute(
            "SELECT s.id FROM sessions s WHERE s.message_count !="
            " (SELECT count(*) FROM messages m WHERE m.session_id = s.id AND m.active = 1)"
        ).fetchall()
        for (session_id,) in rows:
            recount(conn, session_id)
        self._say(len(rows), "sessions had a wrong message count")

    def _close_calls(self, conn: sqlite3.Connection) -> None:
        rows = conn.execute(
            "SELECT id, session_id, call_id, name, owner, started_at FROM tool_runs WHERE status IS NULL"
        ).fetchall()
        answered = closed = unrun = 0
        for run_id, session_id, call_id, name, begun_by, started_at in rows:
            if owner.may_be_alive(begun_by):
                continue
            status: ResultStatus = "unknown" if started_at else "cancelled"
            conn.execute("UPDATE tool_runs SET status = ? WHERE id = ?", (status, run_id))
            closed, unrun = closed + bool(started_at), unrun + (not started_at)
            text = UNKNOWN_TEXT if started_at else NOT_RUN_TEXT
            told = Message(role="tool", content=text, tool_call_id=call_id, tool_name=name, status=status)
            answered += _answer(conn, session_id, told)
        self._say(closed, "tool calls had started and never ended: their outcome is now recorded as unknown")
        self._say(unrun, "tool calls had never started: they are now recorded as not run")
        self._say(answered, "of them were answered in the transcript, so that the model is told")

    def _close_attempts(self, conn: sqlite3.Connection) -> None:
        rows = conn.execute("SELECT id, owner FROM attempts WHERE outcome IS NULL").fetchall()
        gone = [(row_id,) for row_id, begun_by in rows if not owner.may_be_alive(begun_by)]
        conn.executemany("UPDATE attempts SET outcome = 'unknown', held_usd = 0, held_tokens = 0 WHERE id = ?", gone)
        self._say(len(gone), "model requests were never closed: their outcome and price are recorded as unknown")

    def _mend_index(self) -> None:
        def sound(conn: sqlite3.Connection) -> bool:
            try:
                conn.execute("INSERT INTO messages_fts(messages_fts) VALUES ('integrity-check')")
            except sqlite3.DatabaseError:
                return False
            return tables.is_sound(conn)

        if not self._store.write_alone(sound):
            count = self._store.rebuild_index()
            self._done.append(f"the search index was damaged and was made anew over {count} messages")
        else:
            self._say(self._store.index_all(), "messages were not in the search index yet")

    def _check_blobs(self) -> None:
        blobs = self._store.blobs
        refs = self._store.read(lambda conn: conn.execute("SELECT DISTINCT digest FROM blob_refs").fetchall())
        for (digest,) in refs:
            try:
                blobs.get(digest)
            except StoreError as error:
                self._lost.append(str(error))
                blobs.set_aside(digest)
        leftovers = [path for path in blobs.files() if path.name.endswith(".tmp")]
        if blobs.sweep(lambda _: True):
            self._say(len(leftovers), "leftovers of interrupted writes were removed")

    def _say(self, count: int, what: str) -> None:
        if count:
            self._done.append(f"{count} {what}")


def _answer(conn: sqlite3.Connection, session_id: str, message: Message) -> int:
    """Append a result, if the turn still waits for it at the end of the transcript."""
    call_id = message.tool_call_id
    rows: list[tuple[Any, ...]] = conn.execute(
        "SELECT role, tool_calls, tool_call_id FROM messages WHERE session_id = ? AND active = 1"
        " ORDER BY id DESC LIMIT 200",
        (session_id,),
    ).fetchall()
    for role, tool_calls, answered in rows:
        if role == "tool" and answered != call_id:
            continue
        if role != "assistant" or f'"{call_id}"' not in str(tool_calls):
            return 0
        at = conn.execute("SELECT max(timestamp) FROM messages WHERE session_id = ?", (session_id,)).fetchone()[0]
        encode_message(MessageAppended(session_id, message), Blobs(), at).add(conn)
        conn.execute("UPDATE sessions SET message_count = message_count + 1 WHERE id = ?", (session_id,))
        return 1
    return 0
