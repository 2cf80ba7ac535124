"""The line of messages in SQLite: each call is one transaction, and what has ended keeps its key but no words."""

# ruff: noqa: S608 - all words in the statements stand in this file

import logging
import sqlite3
import time
from collections.abc import Callable, Collection
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from hermes import dicts
from hermes.state import owner
from hermes.state.codec import bind_text, decode_json, encode_json, read_text
from hermes.state.message_line import KEPT_S, MODES, STATES, QueuedMessage
from hermes.state.sqlite.session_continuation import line_before, tip_of
from hermes.typed import from_json
from hermes.types import Content

Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)

_SELECT = "SELECT key, content, mode, who, state, number, at, taken_after FROM queued_messages WHERE session_id = ?1"
_OPEN = "content IS NOT NULL AND state NOT IN ('done', 'dropped')"
_WAITS = f"{_OPEN} AND state IS NOT 'taken'"
_NEWEST = "(SELECT coalesce(max(id), 0) FROM messages WHERE session_id = {} AND role = 'user')"
_ONE = "WHERE session_id = ?1 AND key = ?2 AND"

_READ = f"{_SELECT} AND {_OPEN} ORDER BY number, rowid"
_FIND = f"{_SELECT} AND key = ?2"
_INSERT = (
    "INSERT INTO queued_messages(session_id, number, key, mode, content, state, who, at, taken_after)"
    " VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING"
)
_FIRST = "SELECT min(number) FROM queued_messages WHERE session_id = ?"
_LAST = "SELECT max(number) FROM queued_messages WHERE session_id = ?"
_MAKE_ROOM = "UPDATE queued_messages SET number = number - 1 WHERE session_id = ? AND state = 'taken' AND number < ?"
_TAKE = (
    f"UPDATE queued_messages SET state = 'taken', taken_by = ?3, taken_after = {_NEWEST.format('?1')} {_ONE} {_WAITS}"
)
_BACK = "state = 'waiting', taken_by = NULL, taken_after = NULL"
_PUT_BACK = f"UPDATE queued_messages SET {_BACK} {_ONE} state = 'taken' AND taken_by = ?3"
_EDIT = f"UPDATE queued_messages SET content = ?3 {_ONE} {_WAITS}"
_END = (
    f"UPDATE queued_messages SET state = ?3, content = NULL, taken_by = NULL, taken_after = NULL {_ONE} {_OPEN}"
    " AND (state IS NOT 'taken' OR taken_by = ?4)"
)
_FORGET = "DELETE FROM queued_messages WHERE content IS NULL AND at < ?"
_TAKERS = "SELECT DISTINCT taken_by FROM queued_messages WHERE session_id = ? AND state = 'taken'"
_REACHED = (
    "UPDATE queued_messages SET state = 'done', content = NULL, taken_by = NULL, taken_after = NULL"
    f" WHERE session_id = ?1 AND state = 'taken' AND taken_by IS ?2 AND taken_after < {_NEWEST.format('?1')}"
)
_RELEASE = f"UPDATE queued_messages SET {_BACK} WHERE session_id = ?1 AND state = 'taken' AND taken_by IS ?2"

_OLD_LINES = "waiting:"  # what the names of lines began with when each was one value of `state_meta`


class Transactions(Protocol):
    """Where a line reads and writes: a store, or one transaction of it."""

    def write(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer: ...
    def read(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer: ...


class OpenTransaction:
    """`Transactions` inside one that its caller has begun, and commits."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn

    def write(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        return work(self._conn)

    read = write


class SqliteMessageLine:
    """`MessageLine` over the connections of a store."""

    def __init__(self, store: Transactions) -> None:
        self._store = store

    def add(self, session_id: str, message: QueuedMessage, *, first: bool = False) -> QueuedMessage:
        key, at = bind_text(message.key), message.at or time.time()
        rest = (message.mode, _packed(message.content), "waiting", bind_text(message.who), at, None)

        def work(conn: sqlite3.Connection, session: str) -> QueuedMessage:
            if not (found := conn.execute(_FIND, (session, key)).fetchone()):
                conn.execute(_INSERT, (session, _number(conn, session, first), key, *rest))
                found = conn.execute(_FIND, (session, key)).fetchone()
            return _message(found)

        return self._at_tip(session_id, work)

    def read(self, session_id: str) -> list[QueuedMessage]:
        rows = self._store.read(lambda conn: conn.execute(_READ, (tip_of(conn, session_id),)).fetchall())
        return [_message(row) for row in rows]

    def take(self, session_id: str, key: str) -> bool:
        values = (bind_text(key), owner.this_process())

        def work(conn: sqlite3.Connection, session: str) -> bool:
            # Now, as long as it can be told: the words of this one will look as if what a killed process had taken,
            # and never handed on, had reached the session.
            _let_go(conn, session, lambda taker: not owner.may_be_alive(taker))
            return conn.execute(_TAKE, (session, *values)).rowcount > 0

        return self._at_tip(session_id, work)

    def put_back(self, session_id: str, key: str) -> bool:
        return self._change(_PUT_BACK, session_id, key, owner.this_process())

    def edit(self, session_id: str, key: str, content: Content) -> bool:
        return self._change(_EDIT, session_id, key, _packed(content))

    def end(self, session_id: str, keys: Collection[str], state: Literal["done", "dropped"]) -> int:
        bound, me = [bind_text(key) for key in keys], owner.this_process()

        def work(conn: sqlite3.Connection, session: str) -> int:
            conn.execute(_FORGET, (time.time() - KEPT_S,))
            return sum(conn.execute(_END, (session, key, state, me)).rowcount for key in bound)

        return self._at_tip(session_id, work)

    def move(self, old: str, new: str) -> None:
        self._store.write(lambda conn: move(conn, old, new))

    def settle(self, session_id: str) -> list[QueuedMessage]:
        def work(conn: sqlite3.Connection, session: str) -> None:
            for earlier in reversed(line_before(conn, session)):
                move(conn, earlier, session)
            _let_go(conn, session, lambda taker: taker == owner.this_process() or not owner.is_alive_here(taker))

        self._at_tip(session_id, work)
        return self.read(session_id)

    def _change(self, sql: str, session_id: str, key: str, value: Any) -> bool:
        values = (bind_text(key), value)
        return self._at_tip(session_id, lambda conn, session: conn.execute(sql, (session, *values)).rowcount > 0)

    def _at_tip(self, session_id: str, work: Callable[[sqlite3.Connection, str], Answer]) -> Answer:
        return self._store.write(lambda conn: work(conn, tip_of(conn, session_id)))


def within(conn: sqlite3.Connection) -> SqliteMessageLine:
    """The lines inside a transaction that the caller has begun."""
    return SqliteMessageLine(OpenTransaction(conn))


def _let_go(conn: sqlite3.Connection, session: str, is_gone: Callable[[str], bool]) -> None:
    """What such takers had is done if a user message has reached the session since, and waits again if none has."""
    for (taker,) in conn.execute(_TAKERS, (session,)).fetchall():
        if is_gone(taker or ""):
            conn.execute(_REACHED, (session, taker))
            conn.execute(_RELEASE, (session, taker))


def move(conn: sqlite3.Connection, old: str, new: str) -> None:
    """`MessageLine.move`, inside the caller's transaction. Of two with one key, the one that is further along stays."""
    last = conn.execute(_LAST, (old,)).fetchone()[0]
    if last is None or old == new:
        return
    # What compression carries into a new session has new ids: it is no sign that what was taken has arrived.
    conn.execute(
        f"UPDATE queued_messages SET taken_after = max(taken_after, {_NEWEST.format('?2')})"
        f" WHERE session_id = ?1 AND state = 'taken' AND taken_after >= {_NEWEST.format('?1')}",
        (old, new),
    )
    conn.execute(
        "DELETE FROM queued_messages WHERE session_id = ?2 AND state = 'waiting'"
        " AND key IN (SELECT key FROM queued_messages WHERE session_id = ?1 AND state != 'waiting')",
        (old, new),
    )
    head = conn.execute(_FIRST, (new,)).fetchone()[0]
    conn.execute(
        "UPDATE OR IGNORE queued_messages SET session_id = ?2, number = number + ?3 WHERE session_id = ?1",
        (old, new, 0 if head is None else head - last - 1),
    )
    conn.execute("DELETE FROM queued_messages WHERE session_id = ?", (old,))


def adopt_old_lines(conn: sqlite3.Connection) -> None:
    """Bring the lines of older files into the table, inside the caller's transaction; what is no line stays."""
    rows = conn.execute("SELECT key, value FROM state_meta WHERE key GLOB ?", (f"{_OLD_LINES}*",)).fetchall()
    for name, value in rows:
        try:
            line = from_json(value or "", list[_OldMessage])
        except (msgspec.DecodeError, TypeError):
            _log.warning("the messages that waited under %r cannot be read; they are left where they are", name)
            continue
        session, now = name.removeprefix(_OLD_LINES), time.time()
        for one in line:
            state = "waiting" if one.taken_after is None else "taken"
            values = (_number(conn, session), one.id, "queue", _packed(one.text), state, "cli", now, one.taken_after)
            conn.execute(_INSERT, (session, *values))
        conn.execute("DELETE FROM state_meta WHERE key = ?", (name,))


class _OldMessage(msgspec.Struct):
    id: str
    text: str
    taken_after: int | None = None


def _number(conn: sqlite3.Connection, session: str, first: bool = False) -> int:
    head = conn.execute(f"{_FIRST} AND {_WAITS}", (session,)).fetchone()[0] if first else None
    if head is None:
        return (conn.execute(_LAST, (session,)).fetchone()[0] or 0) + 1
    conn.execute(_MAKE_ROOM, (session, head))  # one that is put back is before it again
    return int(head) - 1


def _packed(content: Content) -> str | bytes:
    return bind_text(encode_json(dicts.content_to_json(content)))


def _message(row: tuple[Any, ...]) -> QueuedMessage:
    """A mode or state that nobody can have written harms nothing: the message waits for a person to look at it."""
    key, content, mode, who, state, number, at, taken_after = row
    return QueuedMessage(
        key=read_text(key) or "",
        content="" if (words := dicts.content_from_json(decode_json(content))) is None else words,
        mode=mode if mode in MODES else "queue",
        who=read_text(who) or "",
        state=state if state in STATES else "waiting",
        number=number,
        at=at,
        taken_after=taken_after,
    )
