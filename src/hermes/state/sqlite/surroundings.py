"""What was said around messages, by time: read along the index of their session, however long that is."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hermes.state.codec import Fetch
from hermes.state.queries import SPOKEN, AroundMessage, MessagePlace, Row
from hermes.state.sqlite.message_sql import message_dicts

_BEFORE, _HERE, _AFTER, _START, _END = range(5)  # the parts of `AroundMessage`, in its order
_TIME = "SELECT timestamp FROM messages WHERE id = ?"


def surroundings(
    conn: sqlite3.Connection, places: Sequence[MessagePlace], columns: Sequence[str], fetch: Fetch
) -> list[AroundMessage]:
    """Those of each place, in their order."""
    names = ("id", "timestamp", *(name for name in columns if name not in ("id", "timestamp")))
    return [_around(conn, place, names, fetch) for place in places]


def _around(conn: sqlite3.Connection, place: MessagePlace, names: tuple[str, ...], fetch: Fetch) -> AroundMessage:
    time = conn.execute(_TIME, (place.message_id,)).fetchone()
    if time is None:
        return AroundMessage([], [], [], [], [])
    values = {"session": place.session_id, "id": place.message_id, "at": time[0]}
    rows = conn.execute(_statement(names), {**values, "window": place.window, "ends": place.ends}).fetchall()
    parts: list[list[Row]] = [[], [], [], [], []]
    for (part, *_), row in zip(rows, message_dicts((row[1:] for row in rows), names, fetch), strict=True):
        parts[part].append(row)
    before, here, after, start, end = parts
    before.reverse()
    end.reverse()
    first, last = _when((before or here)[0]), _when((after or here)[-1])
    return AroundMessage(
        before, here, after, [row for row in start if _when(row) < first], [row for row in end if _when(row) > last]
    )


def _when(row: Row) -> tuple[Any, Any]:
    return row["timestamp"], row["id"]


@lru_cache(maxsize=8)
def _statement(names: tuple[str, ...]) -> str:
    def part(number: int, where: str, limit: str, order: str = "") -> str:
        return (
            f"SELECT * FROM (SELECT {number}, {columns} FROM messages m WHERE m.session_id = :session AND m.active = 1"
            f" AND {where} ORDER BY m.timestamp{order}, m.id{order} LIMIT {limit})"
        )

    columns = ", ".join(f"m.{name}" for name in names)
    spoken = f"m.role IN {SPOKEN}"
    parts = [
        part(_BEFORE, "(m.timestamp, m.id) < (:at, :id)", ":window", " DESC"),
        f"SELECT {_HERE}, {columns} FROM messages m WHERE m.id = :id",
        part(_AFTER, "(m.timestamp, m.id) > (:at, :id)", ":window"),
        part(_START, spoken, ":ends"),
        part(_END, spoken, ":ends", " DESC"),
    ]
    return " UNION ALL ".join(parts)
