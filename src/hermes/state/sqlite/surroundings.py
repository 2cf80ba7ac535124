"""What was said around messages: one walk over the ids of their sessions, then one read of the rows that are shown."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import json
import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice

from hermes.state.codec import Fetch
from hermes.state.queries import SPOKEN, AroundMessage, MessagePlace, Row
from hermes.state.sqlite.message_sql import message_dicts

_LINES = (
    f"SELECT j.key, m.id, m.role IN {SPOKEN} FROM json_each(?) j CROSS JOIN messages m ON m.session_id = j.value"
    " WHERE m.active = 1"
)
_Line = list[tuple[int, int]]  # ids, and whether they are spoken


def surroundings(
    conn: sqlite3.Connection, places: Sequence[MessagePlace], columns: Sequence[str], fetch: Fetch
) -> list[AroundMessage]:
    """Those of each place, in their order."""
    names = ("id", *(name for name in columns if name != "id"))
    lines: list[_Line] = [[] for _ in places]
    for number, message_id, is_spoken in conn.execute(_LINES, (json.dumps([place.session_id for place in places]),)):
        lines[number].append((message_id, is_spoken))
    parts = [_parts(sorted(line), place) for line, place in zip(lines, places, strict=True)]
    wanted = {message_id for one in parts for part in one for message_id in part}
    sql = (
        f"SELECT {', '.join(f'm.{name}' for name in names)} FROM json_each(?) j CROSS JOIN messages m ON m.id = j.value"
    )
    rows = {row["id"]: row for row in message_dicts(conn.execute(sql, (str(list(wanted)),)), names, fetch)}
    return [AroundMessage(*(_present(rows, part) for part in one)) for one in parts]


def _parts(line: _Line, place: MessagePlace) -> tuple[Sequence[int], ...]:
    """The ids of what is before, here, after, at the start and at the end."""
    at = bisect_left(line, (place.message_id, 0))
    is_there = at < len(line) and line[at][0] == place.message_id  # else it was set aside by a rewind
    after = at + 1 if is_there else at
    left, right = max(0, at - place.window), min(len(line), after + place.window)
    start = (line[index] for index in range(left))
    end = (line[index] for index in range(len(line) - 1, right - 1, -1))
    return (
        [one for one, _ in line[left:at]],
        [place.message_id],
        [one for one, _ in line[after:right]],
        _spoken(start, place.ends),
        _spoken(end, place.ends)[::-1],
    )


def _spoken(line: Iterable[tuple[int, int]], count: int) -> list[int]:
    return list(islice((one for one, is_spoken in line if is_spoken), count))


def _present(rows: dict[int, Row], ids: Sequence[int]) -> list[Row]:
    """Without those that were deleted since."""
    return [rows[one] for one in ids if one in rows]
