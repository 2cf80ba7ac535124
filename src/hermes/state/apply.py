"""Store operations as SQL: encoded where they were asked for, executed by the writer."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import compress, repeat
from operator import attrgetter, is_not
from typing import Any

from hermes import dicts
from hermes.errors import StoreError
from hermes.ops import (
    ApprovalRecorded,
    AttemptClosed,
    AttemptOpened,
    CallClosed,
    CallJournalled,
    ContextAttached,
    MessageAppended,
    SessionChanged,
    SessionContinued,
    SessionCreated,
    StoreOp,
)
from hermes.state.codec import Blobs, bind_text, encode_content, encode_json, sha256
from hermes.state.rotation import continued
from hermes.state.schema import SESSION_COLUMNS
from hermes.state.spending import Sums
from hermes.state.versions import Versions
from hermes.types import Message

TEXT_REF = "\0ref:"  # a session column that holds this and a digest has its text in `texts`
LONG_SESSION_TEXT = 512
COUNTERS = (
    "message_count",
    "tool_call_count",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "api_call_count",
)

_ZEROS = (0,) * len(COUNTERS)

_Step = Callable[[sqlite3.Connection], int]

_INSERT_TEXT = "INSERT INTO messages(session_id, role, content, timestamp) VALUES (?,?,?,?)"
_COUNT = (
    f"UPDATE sessions SET {', '.join(f'{name} = {name} + ?' for name in COUNTERS)},"
    " estimated_cost_usd = CASE WHEN ?9 IS NULL THEN estimated_cost_usd ELSE coalesce(estimated_cost_usd, 0) + ?9 END,"
    " cost_status = coalesce(?10, cost_status), cost_source = coalesce(?11, cost_source) WHERE id = ?12"
)
_COUNT_UNPRICED = (
    f"UPDATE sessions SET {', '.join(f'{name} = {name} + ?' for name in COUNTERS)},"
    " cost_status = coalesce(?, cost_status) WHERE id = ?"
)
_COUNT_MESSAGES = (
    "UPDATE sessions SET message_count = message_count + ?, tool_call_count = tool_call_count + ? WHERE id = ?"
)
_OPEN_CALL = (
    "INSERT INTO tool_runs(session_id, call_id, name, message_id, call, owner, started_at) VALUES (?,?,?,?,?,?,?)"
)
_CLOSE_CALL = "UPDATE tool_runs SET status = ?, duration_ms = ? WHERE session_id = ? AND status IS NULL AND call_id = ?"
_OPEN_ATTEMPT = (
    "INSERT INTO attempts(attempt_id, session_id, purpose, provider, model, base_url, owner, started_at, held_usd,"
    " held_tokens) VALUES (?,?,?,?,?,?,?,?,?,?)"
)
_ATTACH = (
    "INSERT INTO request_context(message_id, text) VALUES (?, ?)"
    " ON CONFLICT(message_id) DO UPDATE SET text = text || char(10, 10) || excluded.text"
)
_RECORD_APPROVAL = (
    "INSERT INTO approvals(session_id, route, tool, action, verdict, scope, rule, reason, decided_by, at)"
    " VALUES (?,?,?,?,?,?,?,?,?,?)"
)
_BESIDE_WORDS = (
    "tool_call_id",
    "tool_name",
    "finish_reason",
    "reasoning",
    "reasoning_content",
    "platform_message_id",
    "status",
    "token_count",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
)
_AS_JSON = frozenset({"reasoning_details", "codex_reasoning_items", "codex_message_items"})
_beside_words = attrgetter(*_BESIDE_WORDS)
_NOTHING = (None,) * len(_BESIDE_WORDS)
_OF_CLOSING = (
    "outcome",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost_usd",
    "cost_source",
    "latency_ms",
    "first_byte_ms",
    "error",
    "held_usd",
    "held_tokens",
)


class _Totals:
    """What one commit adds to one session row."""

    __slots__ = ("attempts", "cost", "cost_source", "cost_status", "counts")

    def __init__(self) -> None:
        self.counts = [*_ZEROS]
        self.attempts = False
        self.cost: float | None = None
        self.cost_status: str | None = None
        self.cost_source: str | None = None


class Plan(Blobs):
    """The encoded form of one commit. The bytes in `found` must be on disk before `run`; `run` may be repeated.

    No step refers to the plan: it would be in a circle, and every commit's garbage would wait for the collector.
    """

    def __init__(
        self,
        ops: Sequence[StoreOp],
        owner: str,
        sums: Sums | None = None,
        versions: Versions | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._rows: list[int] = []  # of this commit's messages, in the last run
        self._owner = owner
        self._sums = sums
        self._versions = versions
        self._sessions = {op.session_id for op in ops}
        self._now = now
        self._totals: dict[str, _Totals] = {}
        self._appended = 0
        self._message_of_call: dict[tuple[str, str], int] = {}  # position among this commit's messages
        self._newest: dict[str, int] = {}
        self._steps = [_PLANNED[type(op)](self, op) for op in ops]

    def run(self, conn: sqlite3.Connection) -> tuple[int, ...]:
        """Execute inside the caller's transaction; a row id per op, 0 where an op changes a row it did not make."""
        self._rows.clear()
        answer = tuple([step(conn) for step in self._steps])
        for session_id, totals in self._totals.items():
            _add_totals(conn, session_id, totals)
        if self._versions is not None:
            self._versions.committed(self._sessions)
        return answer

    def _append(self, op: MessageAppended) -> _Step:
        message, found = op.message, self.refs
        found.clear()
        insert, values = insert_message(op.session_id, message, self, message.timestamp or self._now())
        refs = sorted(found) if found else ()
        counts = self._totals_of(op.session_id).counts
        counts[0] += 1
        if message.tool_calls:
            counts[1] += len(message.tool_calls)
            for call in message.tool_calls:
                self._message_of_call[op.session_id, call.id] = self._appended
        self._newest[op.session_id] = self._appended
        self._appended += 1
        rows = self._rows

        def step(conn: sqlite3.Connection) -> int:
            row = conn.execute(insert, values).lastrowid
            assert row is not None
            rows.append(row)
            if refs:
                conn.executemany("INSERT INTO blob_refs(digest, message_id) VALUES (?,?)", [(ref, row) for ref in refs])
            return row

        return step

    def _journal(self, op: CallJournalled) -> _Step:
        call = op.call
        call_id, name = bind_text(call.id), bind_text(call.name)
        position = self._message_of_call.get((op.session_id, call.id))
        packed = None if position is not None else bind_text(encode_json(dicts.call_to_dict(call)))
        now, owner, rows = self._now(), self._owner, self._rows

        def step(conn: sqlite3.Connection) -> int:
            message_id = None if position is None else rows[position]
            values = (op.session_id, call_id, name, message_id, packed, owner, now)
            return conn.execute(_OPEN_CALL, values).lastrowid or 0

        return step

    def _open_attempt(self, op: AttemptOpened) -> _Step:
        at = op.started_at or self._now()
        who = (op.attempt_id, op.session_id, op.purpose, op.provider, op.model, op.base_url, self._owner)
        insert = _insert(_OPEN_ATTEMPT, (*who, at, op.held.usd, op.held.tokens))
        if not op.limits:
            return insert

        sums = self._sums or Sums()

        def step(conn: sqlite3.Connection) -> int:
            sums.require_room(conn, op.limits, at)
            return insert(conn)

        return step

    def _close_attempt(self, op: AttemptClosed) -> _Step:
        usage = op.usage
        tokens = (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
        )
        price = (op.cost_usd, op.cost_source, op.latency_ms, op.first_byte_ms)
        error = None if op.error is None else bind_text(op.error)
        if op.session_id is not None:
            self._count_attempt(op, tokens)
        names, told = _told(_OF_CLOSING, (op.outcome, *tokens, *price, error, op.held.usd, op.held.tokens))
        return _update(_close_sql(names), (*told, op.attempt_id), f"attempt {op.attempt_id!r} is not open")

    def _count_attempt(self, op: AttemptClosed, tokens: tuple[int | None, ...]) -> None:
        assert op.session_id is not None
        totals = self._totals_of(op.session_id)
        for place, value in enumerate(tokens, 2):
            if value:
                totals.counts[place] += value
        totals.counts[7] += 1
        totals.attempts = True
        if op.cost_usd is None:
            if op.outcome == "ok":
                totals.cost_status = "unknown"
            return
        totals.cost = (totals.cost or 0.0) + op.cost_usd
        totals.cost_status, totals.cost_source = "estimated", op.cost_source

    def _attach(self, op: ContextAttached) -> _Step:
        text, position, rows = bind_text(op.text), self._newest.get(op.session_id), self._rows

        def step(conn: sqlite3.Connection) -> int:
            newest = rows[position] if position is not None else _newest_message(conn, op.session_id)
            conn.execute(_ATTACH, (newest, text))
            return newest

        return step

    def _approve(self, op: ApprovalRecorded) -> _Step:
        words = tuple(bind_text(word) for word in (op.route, op.tool, op.action))
        rest = (op.verdict, op.scope, bind_text(op.rule), bind_text(op.reason), op.decided_by)
        return _insert(_RECORD_APPROVAL, (op.session_id, *words, *rest, op.at or self._now()))

    def _totals_of(self, session_id: str) -> _Totals:
        totals = self._totals.get(session_id)
        if totals is None:
            totals = self._totals[session_id] = _Totals()
        return totals


_PLANNED: dict[type, Callable[[Plan, Any], _Step]] = {  # every `StoreOp`
    MessageAppended: Plan._append,
    CallJournalled: Plan._journal,
    CallClosed: lambda _, op: _update(_CLOSE_CALL, (op.status, op.duration_ms, op.session_id, bind_text(op.call_id))),
    AttemptOpened: Plan._open_attempt,
    AttemptClosed: Plan._close_attempt,
    ContextAttached: Plan._attach,
    SessionCreated: lambda plan, op: _create(op, plan._now()),
    SessionChanged: lambda _, op: _change(op),
    SessionContinued: lambda plan, op: continued(op, _create(op.child, plan._now())),
    ApprovalRecorded: Plan._approve,
}


def insert_message(session_id: str, message: Message, blobs: Blobs, at: float) -> tuple[str, tuple[Any, ...]]:
    """The statement and its values; most messages are words and nothing else."""
    content, beside = _content(message, blobs), _beside_words(message)
    if beside == _NOTHING and not message.tool_calls:
        return _INSERT_TEXT, (session_id, message.role, content, at)
    names, values = _told(_BESIDE_WORDS, beside)
    told = [
        _bound(encode_json(value) if name in _AS_JSON else value) for name, value in zip(names, values, strict=True)
    ]
    if message.tool_calls:
        names = (*names, "tool_calls")
        told.append(_bound(encode_json([dicts.call_to_dict(call) for call in message.tool_calls])))
    return _insert_sql(names), (session_id, message.role, content, at, *told)


def _told(names: tuple[str, ...], values: tuple[Any, ...]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """The columns that have a value, and those. The others are not named: to bind a None costs more than a word."""
    has = tuple(map(is_not, values, repeat(None)))
    return tuple(compress(names, has)), tuple(compress(values, has))


def _bound(value: Any) -> Any:
    return bind_text(value) if isinstance(value, str) else value


@cache
def _insert_sql(columns: tuple[str, ...]) -> str:
    names = ("session_id", "role", "content", "timestamp", *columns)
    return f"INSERT INTO messages({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


@cache
def _close_sql(columns: tuple[str, ...]) -> str:
    sets = ", ".join(f"{name} = ?" for name in columns)
    return f"UPDATE attempts SET {sets} WHERE attempt_id = ? AND outcome IS NULL"


def _content(message: Message, blobs: Blobs) -> str | bytes | None:
    content = message.content
    return encode_content(content if isinstance(content, str) else dicts.content_to_json(content), blobs)


def keep_text(conn: sqlite3.Connection, text: str | None) -> str | bytes | None:
    """A session column's value for `text`; long text is kept once in `texts`."""
    if text is None or (len(text) <= LONG_SESSION_TEXT and not text.startswith("\0")):
        return None if text is None else bind_text(text)
    digest = sha256(text.encode("utf-8", "surrogatepass"))
    conn.execute("INSERT INTO texts(digest, text) VALUES (?,?) ON CONFLICT DO NOTHING", (digest, bind_text(text)))
    return TEXT_REF + digest


def change_session(conn: sqlite3.Connection, session_id: str, changes: dict[str, Any]) -> int:
    """Set columns; the number of rows that were changed (0 when there is no such session)."""
    unknown = sorted(set(changes) - (SESSION_COLUMNS.keys() - {"id"}))
    if unknown:
        raise StoreError(f"sessions have no column {unknown[0]!r}")
    if not changes:
        return 0
    values = [_column(conn, name, value) for name, value in changes.items()]
    assignments = ", ".join(f"{name} = ?" for name in changes)
    try:
        return conn.execute(f"UPDATE sessions SET {assignments} WHERE id = ?", (*values, session_id)).rowcount
    except sqlite3.IntegrityError as error:
        raise _title_taken(error, changes.get("title")) from error


def _column(conn: sqlite3.Connection, name: str, value: Any) -> Any:
    if name in ("system_prompt", "tool_definitions"):
        return keep_text(conn, value)
    if isinstance(value, str):
        return bind_text(value)
    if value is None or isinstance(value, int | float):
        return value
    return bind_text(encode_json(value))


def _create(op: SessionCreated, now: float) -> _Step:
    config = None if op.model_config is None else bind_text(encode_json(op.model_config))

    def step(conn: sqlite3.Connection) -> int:
        values = (
            op.session_id,
            op.source,
            op.model,
            config,
            keep_text(conn, op.system_prompt),
            keep_text(conn, op.tool_definitions),
            op.user_id,
            op.parent_session_id,
            _text(op.cwd),
            _text(op.title),
            op.started_at or now,
        )
        try:
            cursor = conn.execute(
                "INSERT INTO sessions(id, source, model, model_config, system_prompt, tool_definitions, user_id,"
                " parent_session_id, cwd, title, started_at) VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO NOTHING",
                values,
            )
        except sqlite3.IntegrityError as error:
            raise _title_taken(error, op.title) from error
        return (cursor.lastrowid or 0) if cursor.rowcount else 0

    return step


def _change(op: SessionChanged) -> _Step:
    def step(conn: sqlite3.Connection) -> int:
        if not change_session(conn, op.session_id, op.changes) and op.changes:
            raise StoreError(f"no session {op.session_id!r}")
        return 0

    return step


def _newest_message(conn: sqlite3.Connection, session_id: str) -> int:
    newest = conn.execute("SELECT max(id) FROM messages WHERE session_id = ?", (session_id,)).fetchone()[0]
    if newest is None:
        raise StoreError(f"session {session_id!r} has no message to attach context to")
    return int(newest)


def _insert(sql: str, values: tuple[Any, ...]) -> _Step:
    return lambda conn: conn.execute(sql, values).lastrowid or 0


def _update(sql: str, values: tuple[Any, ...], missing: str | None = None) -> _Step:
    def step(conn: sqlite3.Connection) -> int:
        if conn.execute(sql, values).rowcount == 0 and missing is not None:
            raise StoreError(missing)
        return 0

    return step


def _add_totals(conn: sqlite3.Connection, session_id: str, totals: _Totals) -> None:
    counts = totals.counts
    if totals.attempts and totals.cost is None:
        values: tuple[Any, ...] = (*counts, totals.cost_status, session_id)
        found = conn.execute(_COUNT_UNPRICED, values).rowcount
    elif totals.attempts:
        values = (*counts, totals.cost, totals.cost_status, totals.cost_source, session_id)
        found = conn.execute(_COUNT, values).rowcount
    else:
        values = (counts[0], counts[1], session_id)
        found = conn.execute(_COUNT_MESSAGES, values).rowcount
    if not found:
        raise StoreError(f"no session {session_id!r}")


def _title_taken(error: sqlite3.IntegrityError, title: str | None) -> Exception:
    return ValueError(f"the title {title!r} is taken by another session") if "title" in str(error) else error


def _text(value: str | None) -> str | bytes | None:
    return None if value is None else bind_text(value)
