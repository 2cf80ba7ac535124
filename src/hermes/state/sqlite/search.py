"""Finding messages: the index, and a scan of the few rows it does not hold yet."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import re
import sqlite3
import unicodedata
from collections.abc import Sequence
from typing import Any

from hermes.state.codec import Fetch, read_text
from hermes.state.queries import Search, SearchFilter
from hermes.state.sqlite import search_index, tables
from hermes.state.sqlite.search_query import CJK_RUN, Query, Word, filtered, normal, parse

CANDIDATES = 200  # "best" ranks this many of the newest matches of each alternative, so its cost has a bound
SNIPPET_WORDS = 40
CONTEXT_CHARS = 200

_ACCENTED = re.compile("[\u00c0-\u1fff]")
_HITS = (
    "SELECT f.rowid FROM messages_fts f CROSS JOIN messages m ON m.id = f.rowid"
    " WHERE messages_fts MATCH ?{where} ORDER BY f.rowid {order} LIMIT ?"
)
_HIT_ROW = (
    "SELECT m.id, m.session_id, m.role, m.content, m.timestamp, m.tool_name, m.tool_calls, s.source, s.model,"
    " s.started_at FROM messages m LEFT JOIN sessions s ON s.id = m.session_id WHERE m.id = ?"
)

# By time, which the index of the session is sorted by; message ids only break ties.
_AROUND = (
    "SELECT * FROM (SELECT id, role, content FROM messages WHERE session_id = :session AND active = 1"
    " AND (timestamp, id) < (:at, :id) ORDER BY timestamp DESC, id DESC LIMIT 1)"
    " UNION ALL SELECT id, role, content FROM messages WHERE id = :id UNION ALL"
    " SELECT * FROM (SELECT id, role, content FROM messages WHERE session_id = :session AND active = 1"
    " AND (timestamp, id) > (:at, :id) ORDER BY timestamp, id LIMIT 1)"
)


def find(conn: sqlite3.Connection, search: Search, fetch: Fetch) -> list[dict[str, Any]]:
    """The matching messages as result rows, in the order asked for; an empty query finds nothing."""
    query = parse(search.text)
    if query is None or search.limit <= 0:
        return []
    conn.execute("BEGIN")  # the index, its watermark and the tail must be of one moment
    try:
        if search.sort == "best":
            ids = _best(conn, query, search, fetch)
        else:
            ids = _by_age(conn, query.match, search, fetch, search.offset + search.limit)
        page = ids[search.offset : search.offset + search.limit]
        return [_result(conn, message_id, query.words, fetch) for message_id in page]
    finally:
        conn.execute("COMMIT")


def _by_age(conn: sqlite3.Connection, match: str, search: Search, fetch: Fetch, wanted: int) -> list[int]:
    newest = search.sort != "oldest"
    expression, order = filtered(match, search.only), "DESC" if newest else "ASC"
    late = _in_tail(conn, expression, search.only, fetch)
    if newest and len(late) >= wanted:
        return late[::-1]
    where, values = _conditions(search.only)
    sql = _HITS.format(where=where, order=order)
    early = [row[0] for row in conn.execute(sql, (expression, *values, wanted))]
    return late[::-1] + early if newest else early + late


def _in_tail(conn: sqlite3.Connection, expression: str, only: SearchFilter, fetch: Fetch) -> list[int]:
    """Matches after the watermark, found by the same machinery over a small index made for the moment."""
    rows = search_index.tail(conn, tables.watermark(conn))
    if not rows:
        return []
    scratch = sqlite3.connect(":memory:", isolation_level=None)
    try:
        scratch.execute(tables.SEARCH_INDEX)
        scratch.execute("BEGIN")
        scratch.executemany(
            "INSERT INTO messages_fts(rowid, content, tags) VALUES (?, ?, ?)",
            [search_index.entry(row, fetch) for row in rows],
        )
        hits = scratch.execute(
            "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? ORDER BY rowid", (expression,)
        )
        found = [row[0] for row in hits]
    finally:
        scratch.close()
    where, values = _conditions(only)
    sql = f"SELECT 1 FROM messages m WHERE m.id = ?{where}"
    return [message_id for message_id in found if conn.execute(sql, (message_id, *values)).fetchone()]


def _conditions(only: SearchFilter) -> tuple[str, tuple[str, ...]]:
    """What the index cannot tell exactly; sources are exact in its tags."""
    where = "" if only.inactive else " AND m.active = 1"
    if only.roles:
        where += f" AND m.role IN ({','.join('?' * len(only.roles))})"
    if only.user_id is None:
        return where, only.roles
    where += " AND EXISTS (SELECT 1 FROM sessions o WHERE o.id = m.session_id AND o.user_id = ?)"
    return where, (*only.roles, only.user_id)


def _best(conn: sqlite3.Connection, query: Query, search: Search, fetch: Fetch) -> list[int]:
    scores: dict[int, float] = {}
    wanted = max(CANDIDATES, search.offset + search.limit)
    texts: dict[int, str] = {}
    for branch in query.branches:
        hits = _by_age(conn, branch, search, fetch, wanted)[:wanted]
        weight = 1.0 + (wanted - len(hits)) / wanted  # an alternative that few messages hold tells more
        for message_id in hits:
            if message_id not in texts:
                texts[message_id] = _folded(_text_of(conn, message_id, fetch))
            scores[message_id] = scores.get(message_id, 0.0) + weight * _score(texts[message_id], query.words)
    return sorted(scores, key=lambda message_id: (-scores[message_id], -message_id))


def _score(text: str, words: Sequence[Word]) -> float:
    """Often and in short texts is better; the tenth time adds little."""
    length = 0.5 + len(text) / 500
    return 1e-9 + sum(count / (count + length) for word in words if (count := text.count(_folded(word.text))))


def _text_of(conn: sqlite3.Connection, message_id: int, fetch: Fetch) -> str:
    row = conn.execute(
        f"SELECT {search_index.ROW_FIELDS} FROM messages m LEFT JOIN sessions s ON s.id = m.session_id WHERE m.id = ?",
        (message_id,),
    ).fetchone()
    return search_index.searchable(row, fetch) if row else ""


def _result(conn: sqlite3.Connection, message_id: int, words: Sequence[Word], fetch: Fetch) -> dict[str, Any]:
    row = conn.execute(_HIT_ROW, (message_id,)).fetchone()
    text = search_index.searchable((row[0], row[2], row[3], row[5], row[6], row[7]), fetch)
    return {
        "id": row[0],
        "session_id": row[1],
        "role": row[2],
        "snippet": snippet(text, words),
        "timestamp": row[4],
        "tool_name": read_text(row[5]),
        "source": row[7],
        "model": row[8],
        "session_started": row[9],
        "context": _context(conn, row[1], row[0], row[4], fetch),
    }


def _context(
    conn: sqlite3.Connection, session_id: str, message_id: int, at: float, fetch: Fetch
) -> list[dict[str, Any]]:
    around = conn.execute(_AROUND, {"session": session_id, "id": message_id, "at": at})
    return [
        {"id": row[0], "role": row[1], "content": search_index.plain_text(row[2], fetch, whole=False)[:CONTEXT_CHARS]}
        for row in around
    ]


def snippet(text: str, words: Sequence[Word]) -> str:
    """Some forty words around the first match, each match between `>>>` and `<<<`."""
    text = normal(text)
    pattern = _pattern(words)
    spans = [match.span() for match in pattern.finditer(_folded(text))] if pattern else []
    pieces = [piece.span() for piece in re.finditer(r"\S+", text)]
    # A long run without spaces (CJK, a URL) counts as many words.
    first = spans[0][0] if spans else 0
    start, end = _window(pieces, first, len(text))
    out, at = ["…" if start else ""], start
    for left, right in spans:
        if left >= at and right <= end:
            out += [text[at:left], ">>>", text[left:right], "<<<"]
            at = right
    return "".join([*out, text[at:end], "…" if end < len(text) else ""])


def _window(pieces: list[tuple[int, int]], first: int, length: int) -> tuple[int, int]:
    here = next((i for i, (_, right) in enumerate(pieces) if right > first), 0)
    before = pieces[max(0, here - SNIPPET_WORDS // 4)][0] if pieces else 0
    start = max(before, first - 100)
    last = min(len(pieces), here + SNIPPET_WORDS * 3 // 4) - 1
    end = min(pieces[last][1] if pieces else 0, first + 300)
    return start, max(min(end, length), start)


def _pattern(words: Sequence[Word]) -> "re.Pattern[str] | None":
    choices = []
    for word in sorted(words, key=lambda word: -len(word.text)):
        text = re.escape(_folded(word.text))
        if CJK_RUN.search(word.text):
            choices.append(text)
        else:
            choices.append(rf"(?<![^\W_]){text}" + (r"[^\W_]*" if word.prefix else r"(?![^\W_])"))
    return re.compile("|".join(choices)) if choices else None


def _folded(text: str) -> str:
    """Lower case without accents, character for character, so that positions stay."""
    lowered = text.lower()
    if lowered.isascii() or not _ACCENTED.search(lowered):
        return lowered
    if len(lowered) != len(text):
        lowered = "".join(char.lower()[:1] or char for char in text)
    return "".join(char if char > "\u1fff" else unicodedata.normalize("NFD", char)[:1] for char in lowered)
