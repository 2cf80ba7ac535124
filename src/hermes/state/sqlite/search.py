"""Finding messages: the index, and a scan of the few rows it does not hold yet."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import re
import sqlite3
import unicodedata
from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from msgspec.structs import replace

from hermes.state.codec import Fetch, read_text
from hermes.state.queries import Search, SearchFilter
from hermes.state.sqlite import search_index, tables
from hermes.state.sqlite.search_query import Query, Word, cjk_run, filtered, normal, parse

CANDIDATES = 32  # of each alternative, that are read to find the best of them
MOST_CANDIDATES = 8_192  # to find as many conversations as were asked for
MOST_RANKED = 20_000  # matches; of more the newest are candidates, so that the cost has a bound
NEWEST = 200
SNIPPET_WORDS = 40
CONTEXT_CHARS = 200

_PIECE = re.compile(r"\S+")
_ACCENTED = re.compile("[\u00c0-\u1fff]")
_HITS = (
    "SELECT f.rowid FROM messages_fts f CROSS JOIN messages m ON m.id = f.rowid"
    " WHERE messages_fts MATCH ?{where} ORDER BY f.rowid {order} LIMIT ?"
)
_WORDS_OF = "m.id, m.role, m.content, m.tool_name, m.tool_calls, NULL"  # the source is no word of the message
_RANKED = (
    f"SELECT {_WORDS_OF} FROM messages_fts f CROSS JOIN messages m ON m.id = f.rowid"
    " WHERE messages_fts MATCH ?{where} ORDER BY f.rank LIMIT ?"  # streams: the index has them in this order
)
_NEWEST_MATCH = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? ORDER BY rowid DESC LIMIT 1 OFFSET ?"
_TEXTS = f"SELECT {_WORDS_OF} FROM json_each(?) j CROSS JOIN messages m ON m.id = j.value"
_SESSION_OF = (
    "SELECT m.session_id, s.parent_session_id, s.source FROM messages m LEFT JOIN sessions s ON s.id = m.session_id"
    " WHERE m.id = ?"
)
_HAS_SOURCE = "SELECT 1 FROM sessions WHERE source = ? LIMIT 1"
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
        search = _without_absent(conn, search)
        if search.per_lineage:
            return _conversations(conn, query, search, fetch)
        page = _ranked(conn, query, search, fetch, search.offset + search.limit)[search.offset :][: search.limit]
        return [
            {**(found := _result(conn, one, query.words, fetch)), "context": _context(conn, found, fetch)}
            for one in page
        ]
    finally:
        conn.execute("COMMIT")


def _without_absent(conn: sqlite3.Connection, search: Search) -> Search:
    """Sources to leave out that no session has cost as much as others: the index would look for each of their tags."""
    hidden = search.only.not_sources
    there = tuple(one for one in hidden if conn.execute(_HAS_SOURCE, (one,)).fetchone())
    return search if there == hidden else replace(search, only=replace(search.only, not_sources=there))


def _ranked(conn: sqlite3.Connection, query: Query, search: Search, fetch: Fetch, wanted: int) -> list[int]:
    """Ids in the order asked for: at least `wanted` of them, where there are so many."""
    if search.sort == "best":
        return _best(conn, query, search, fetch, max(CANDIDATES, wanted))
    return _by_age(conn, query.match, search, fetch, wanted)


def _conversations(conn: sqlite3.Connection, query: Query, search: Search, fetch: Fetch) -> list[dict[str, Any]]:
    """The best messages of each conversation; more candidates are looked at where few conversations have them all."""
    root_of = _Roots(conn)
    hidden = root_of(search.not_with) if search.not_with else None
    wanted, last = CANDIDATES, search.offset + search.limit + search.spare
    while True:
        ids = _ranked(conn, query, search, fetch, wanted)
        groups: dict[str, list[int]] = {}
        late: set[str] = set()
        for message_id in ids:
            session_id, parent, source = conn.execute(_SESSION_OF, (message_id,)).fetchone()
            root = session_id if parent is None else root_of(session_id)
            if source == search.last_source and root not in groups:
                late.add(root)
            if root != hidden and (root in groups or len(groups) < last):
                groups.setdefault(root, []).append(message_id)
            if len(groups) == last and search.per_lineage == 1:
                break
        if len(groups) >= last or len(ids) < wanted or wanted >= MOST_CANDIDATES:
            break
        wanted *= 4
    ordered = sorted(groups.items(), key=lambda group: group[0] in late) if search.last_source else [*groups.items()]
    chosen = ordered[search.offset :][: search.limit]
    return [
        {**_result(conn, one, query.words, fetch), "lineage_root": root}
        for root, members in chosen
        for one in members[: search.per_lineage]
    ]


class _Roots:
    """The first session of a conversation, by any of its sessions; each is asked for once."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._known: dict[str, str] = {}

    def __call__(self, session_id: str) -> str:
        line: list[str] = []
        root = session_id
        while root not in self._known:
            line.append(root)
            row = self._conn.execute("SELECT parent_session_id FROM sessions WHERE id = ?", (root,)).fetchone()
            if row is None or row[0] is None or row[0] in line:
                break
            root = row[0]
        root = self._known.get(root, root)
        self._known |= dict.fromkeys(line, root)
        return root


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


def _best(conn: sqlite3.Connection, query: Query, search: Search, fetch: Fetch, wanted: int) -> list[int]:
    scores: dict[int, float] = {}
    texts: dict[int, str] = {}
    for branch in query.branches:
        hits, known = _candidates(conn, branch, search, fetch, wanted)
        weight = 1.0 + (wanted - len(hits)) / wanted  # an alternative that few messages hold tells more
        texts |= known
        if others := [one for one in hits if one not in texts]:
            texts |= _texts_of(conn.execute(_TEXTS, (str(others),)), fetch)
        for message_id in hits:
            scores[message_id] = scores.get(message_id, 0.0) + weight * _score(texts[message_id], query.words)
    return sorted(scores, key=lambda message_id: (-scores[message_id], -message_id))


def _candidates(
    conn: sqlite3.Connection, match: str, search: Search, fetch: Fetch, wanted: int
) -> tuple[list[int], dict[int, str]]:
    """The best matches of one alternative as the index ranks them, which knows nothing of the length of a text.

    With the texts that were read on the way.
    """
    expression = filtered(match, search.only)
    if _is_common(conn, expression):
        return _by_age(conn, match, search, fetch, max(NEWEST, wanted))[: max(NEWEST, wanted)], {}
    late = _in_tail(conn, expression, search.only, fetch)[::-1][:wanted]
    where, values = _conditions(search.only)
    early = _texts_of(conn.execute(_RANKED.replace("{where}", where), (expression, *values, wanted)), fetch)
    return [*late, *early], early


def _is_common(conn: sqlite3.Connection, expression: str) -> bool:
    """Whether there are more matches than the index should rank, by how close together the newest ones are."""
    newest = tables.watermark(conn)
    for count in (NEWEST // 4, NEWEST):  # few tell of most words that they are rare; more tell chance from a habit
        row = conn.execute(_NEWEST_MATCH, (expression, count - 1)).fetchone()
        if row is None or count * newest <= MOST_RANKED * (newest - row[0] + 1):
            return False
    return True


def _score(text: str, words: Sequence[Word]) -> float:
    """Often and in short texts is better; the tenth time adds little."""
    length = 0.5 + len(text) / 500
    return 1e-9 + sum(count / (count + length) for word in words if (count := text.count(_folded(word.text))))


def _texts_of(rows: Iterable[tuple[Any, ...]], fetch: Fetch) -> dict[int, str]:
    return {row[0]: _folded(search_index.searchable(row, fetch)) for row in rows}


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
    }


def _context(conn: sqlite3.Connection, found: dict[str, Any], fetch: Fetch) -> list[dict[str, Any]]:
    around = conn.execute(_AROUND, {"session": found["session_id"], "id": found["id"], "at": found["timestamp"]})
    return [
        {"id": row[0], "role": row[1], "content": search_index.plain_text(row[2], fetch, whole=False)[:CONTEXT_CHARS]}
        for row in around
    ]


def snippet(text: str, words: Sequence[Word]) -> str:
    """Some forty words around the first match, each match between `>>>` and `<<<`."""
    text = normal(text)
    pattern = _pattern(tuple(words))
    spans = [match.span() for match in pattern.finditer(_folded(text))] if pattern else []
    start, end = _window(text, spans[0][0] if spans else 0)
    out, at = ["…" if start else ""], start
    for left, right in spans:
        if left >= at and right <= end:
            out += [text[at:left], ">>>", text[left:right], "<<<"]
            at = right
    return "".join([*out, text[at:end], "…" if end < len(text) else ""])


def _window(text: str, first: int) -> tuple[int, int]:
    """Where the words around a place begin and end; a long run without spaces (CJK, a URL) counts as many words."""
    pieces = _PIECE.finditer(text, max(0, first - 100))  # what is shown begins there at the earliest
    starts: deque[int] = deque(maxlen=SNIPPET_WORDS // 4 + 1)
    end = 0
    for piece in pieces:
        starts.append(piece.start())
        end = piece.end()
        if end > first:
            break
    for piece in islice(pieces, SNIPPET_WORDS * 3 // 4 - 1):
        end = piece.end()
    start = max(starts[0] if starts else 0, first - 100)
    return start, max(min(end, first + 300), start)


@lru_cache(maxsize=64)
def _pattern(words: tuple[Word, ...]) -> "re.Pattern[str] | None":
    choices = []
    for word in sorted(words, key=lambda word: -len(word.text)):
        text = re.escape(_folded(word.text))
        if cjk_run().search(word.text):
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
