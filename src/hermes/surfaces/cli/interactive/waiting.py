"""Messages that wait for their turn: a durable line, first in, first out, one for each session."""

import secrets
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hermes.state import SessionDB, SqliteStore
from hermes.typed import json_decoder

_READ = "SELECT value FROM state_meta WHERE key = ?"
_WRITE = "INSERT INTO state_meta(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value"
_DELETE = "DELETE FROM state_meta WHERE key = ?"


class Waited(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message. `taken_after` is the newest user message of the session when this one was handed to the agent."""

    id: str
    text: str
    taken_after: int | None = None


_Line = list[Waited]
_decode = json_decoder(_Line).decode


class Waiting:
    """The line of one session. A change is on disk before it counts; secrets are hidden there, not in memory."""

    def __init__(self, db: SessionDB, session_id: str, hide: Callable[[str], str], in_thread: "InThread") -> None:
        assert isinstance(db.store, SqliteStore)
        self._db, self._store = db, db.store
        self._key = _key(session_id)
        self._session_id = session_id
        self._hide = hide
        self._in_thread = in_thread
        self.line: tuple[Waited, ...] = ()

    async def open(self) -> int:
        """Read what an earlier run left; how many wait. One that had reached the session already is let go."""
        *earlier, _ = await self._in_thread(self._line_of_sessions)
        for session_id in earlier:
            await self._in_thread(self._store.write, lambda conn, old=session_id: _moved(conn, _key(old), self._key))
        newest = await self._in_thread(self._newest)

        def settled(line: _Line) -> _Line:
            left = [one for one in line if one.taken_after is None or one.taken_after >= newest]
            return [replace(one, taken_after=None) for one in left]

        self.line = tuple(await self._change(settled))
        return len(self.line)

    async def add(self, text: str, *, first: bool = False) -> Waited:
        """Put a message at the end of the line, or at its head (behind one that is being worked on)."""
        new = Waited(id=secrets.token_hex(6), text=text)
        kept = replace(new, text=self._hide(text))

        def added(line: _Line, one: Waited) -> _Line:
            place = sum(each.taken_after is not None for each in line) if first else len(line)
            return [*line[:place], one, *line[place:]]

        await self._change(lambda line: added(line, kept))
        self.line = tuple(added(list(self.line), new))
        return new

    async def take(self, one: Waited) -> None:
        """The agent is handed this one: it stays in the line until `drop`, for the case that neither comes to be."""
        newest = await self._in_thread(self._newest)
        await self._update(one.id, taken_after=newest)

    async def put_back(self, one: Waited) -> None:
        """It did not reach the agent after all."""
        await self._update(one.id, taken_after=None)

    async def edit(self, one: Waited, text: str) -> None:
        """Say something else at the same place."""
        kept = self._hide(text)
        await self._change(lambda line: [replace(each, text=kept) if each.id == one.id else each for each in line])
        self.line = tuple(replace(each, text=text) if each.id == one.id else each for each in self.line)

    async def drop(self, *gone: Waited) -> None:
        """These wait no longer."""
        ids = {one.id for one in gone}
        self.line = tuple(one for one in self.line if one.id not in ids)
        await self._change(lambda line: [one for one in line if one.id not in ids])

    async def move_to(self, session_id: str) -> None:
        """The session goes on under another id; those that wait, wait there."""
        old, self._key, self._session_id = self._key, _key(session_id), session_id
        await self._in_thread(self._store.write, lambda conn: _moved(conn, old, self._key))

    @property
    def open_ones(self) -> tuple[Waited, ...]:
        """Those nobody works on yet."""
        return tuple(one for one in self.line if one.taken_after is None)

    async def _update(self, wanted: str, **changes: Any) -> None:
        def changed(line: _Line) -> _Line:
            return [replace(one, **changes) if one.id == wanted else one for one in line]

        await self._change(changed)
        self.line = tuple(changed(list(self.line)))

    async def _change(self, work: Callable[[_Line], _Line]) -> _Line:
        def within(conn: sqlite3.Connection) -> _Line:
            row = conn.execute(_READ, (self._key,)).fetchone()
            line = work(_decode(row[0]) if row else [])
            if line:
                conn.execute(_WRITE, (self._key, msgspec.json.encode(line).decode()))
            elif row:
                conn.execute(_DELETE, (self._key,))
            return line

        changed: _Line = await self._in_thread(self._store.write, within)
        return changed

    def _line_of_sessions(self) -> list[str]:
        """The ids that this session had, its own last."""
        line = self._db.get_compression_lineage(self._session_id)
        return line[: line.index(self._session_id) + 1]

    def _newest(self) -> int:
        rows = self._db.list_recent_user_messages(self._session_id, limit=1, include_inactive=True)
        return int(rows[0]["id"]) if rows else 0


def _key(session_id: str) -> str:
    return f"waiting:{session_id}"


def _moved(conn: sqlite3.Connection, old: str, new: str) -> None:
    """Put the line of one key in front of that of another."""
    first, second = (conn.execute(_READ, (key,)).fetchone() for key in (old, new))
    if first:
        line = [*_decode(first[0]), *(_decode(second[0]) if second else ())]
        conn.execute(_WRITE, (new, msgspec.json.encode(line).decode()))
        conn.execute(_DELETE, (old,))


InThread = Callable[..., Awaitable[Any]]
