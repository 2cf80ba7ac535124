"""Store operations as SQL: messages are encoded where they were asked for, the rest when the writer executes it."""

# ruff: noqa: S608 - names in statements come from the schema, never from outside

import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from itertools import compress, repeat
from operator import is_not
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from hermes import dicts
from hermes import ops as store_ops
from hermes.errors import StoreError
from hermes.state.codec import Blobs, bind_text, encode_content, encode_json, sha256
from hermes.state.schema import SESSION_COLUMNS
from hermes.state.session_versions import Versions
from hermes.state.sqlite import leases
from hermes.state.sqlite.ledger_sums import Sums
from hermes.state.sqlite.session_continuation import continued
from hermes.types import Message, ToolCall, Usage

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
_COUNTED = slice(len(COUNTERS))
_PRICED = len(COUNTERS) + 4  # and the price, its state, its source and its version
PER_TOKEN, INCLUDED = "per_token", "included"  # how a session is billed

_COUNT = (
    f"UPDATE sessions SET {', '.join(f'{name} = {name} + ?' for name in COUNTERS)},"
    " estimated_cost_usd = CASE WHEN ?9 IS NULL THEN estimated_cost_usd ELSE coalesce(estimated_cost_usd, 0) + ?9 END,"
    " cost_status = coalesce(?10, cost_status), cost_source = coalesce(?11, cost_source),"
    " pricing_version = coalesce(nullif(?12, ''), pricing_version) WHERE id = ?13"
)
# Who is paid is the one who answered the first turn that had a price; helpers may be others.
_BILL = (
    "UPDATE sessions SET billing_mode = ?2, (billing_provider, billing_base_url) ="
    " (SELECT provider, base_url FROM attempts WHERE attempt_id = ?3) WHERE id = ?1 AND billing_provider IS NULL"
    " AND EXISTS (SELECT 1 FROM attempts WHERE attempt_id = ?3 AND purpose = 'turn')"
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
_BEGIN_CALL = "UPDATE tool_runs SET started_at = ? WHERE session_id = ? AND status IS NULL AND call_id = ?"
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
_RECORD_CALL = "INSERT INTO model_calls(attempt_id, session_id, record) VALUES (?,?,?)"
_STORE_EVENT = "INSERT INTO session_events(session_id, at, kind, about, body) VALUES (?,?,?,?,?)"
_FIELDS = Message.__struct_fields__
_BESIDE_CONTENT = slice(_FIELDS.index("tool_call_id"), _FIELDS.index("timestamp"))  # fields that are columns
_COLUMNS = (*_FIELDS[_BESIDE_CONTENT], "tool_calls")
_AS_JSON = frozenset({"reasoning_details", "codex_reasoning_items", "codex_message_items"})
_OF_CLOSING = ("outcome", "cost_source", "latency_ms", "held_usd", "held_tokens")
_IF_KNOWN = (*Usage.__struct_fields__, "cost_usd", "first_byte_ms", "error")
_NOTHING = repeat(None)  # a column without a value is not named: to bind a None costs more than a word


class _Totals(Struct, gc=False):
    """What one commit adds to one session: the `COUNTERS`, the price, and its newest message."""

    message_count: int = 0
    tool_call_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    api_call_count: int = 0
    cost_usd: float | None = None
    cost_status: str | None = None
    cost_source: str | None = None
    pricing_version: str | None = None
    newest_row: int = 0
    priced: str = ""  # the newest attempt that has a price

    def close(self, op: store_ops.AttemptClosed) -> None:
        usage = op.usage
        self.input_tokens += usage.input_tokens or 0
        self.output_tokens += usage.output_tokens or 0
        self.cache_read_tokens += usage.cache_read_tokens or 0
        self.cache_write_tokens += usage.cache_write_tokens or 0
        self.reasoning_tokens += usage.reasoning_tokens or 0
        self.api_call_count += 1
        if op.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + op.cost_usd
            self.cost_status, self.cost_source = "estimated", op.cost_source
            self.pricing_version, self.priced = op.pricing_version, op.attempt_id
        elif op.outcome == "ok":
            self.cost_status = "unknown"

    def add(self, conn: sqlite3.Connection, session_id: str) -> None:
        values: tuple[Any, ...]
        if not self.api_call_count:
            sql, values = _COUNT_MESSAGES, (self.message_count, self.tool_call_count, session_id)
        elif self.cost_usd is None:
            sql, values = _COUNT_UNPRICED, (*astuple(self)[_COUNTED], self.cost_status, session_id)
        else:
            sql, values = _COUNT, (*astuple(self)[:_PRICED], session_id)
        if not conn.execute(sql, values).rowcount:
            raise StoreError(f"no session {session_id!r}")
        if self.priced:
            conn.execute(_BILL, (session_id, PER_TOKEN if self.cost_usd else INCLUDED, self.priced))


class MessageRow(Struct, frozen=True, gc=False):
    """A message, encoded: the statement and its values."""

    session_id: str
    calls: tuple[ToolCall, ...]
    insert: str
    values: tuple[Any, ...]
    refs: Sequence[str]  # digests of the blobs it speaks of

    def add(self, conn: sqlite3.Connection) -> int:
        """Insert it; its row id."""
        try:
            row_id = conn.execute(self.insert, self.values).lastrowid
        except UnicodeEncodeError:  # text that is not valid Unicode, which is too rare to look for it before
            values = [bind_text(value) if isinstance(value, str) else value for value in self.values]
            row_id = conn.execute(self.insert, values).lastrowid
        assert row_id is not None
        if self.refs:
            refs = [(digest, row_id) for digest in self.refs]
            conn.executemany("INSERT INTO blob_refs(digest, message_id) VALUES (?,?)", refs)
        return row_id


class Plan:
    """One commit, its messages encoded. The bytes in `found` must be on disk before `run`; `run` may be repeated."""

    __slots__ = ("_at", "_fence", "_moved", "_ops", "_owner", "_row_of_call", "_sums", "_totals", "_versions", "found")

    def __init__(
        self, ops: Sequence[store_ops.StoreOp], owner: str, sums: Sums | None = None, versions: Versions | None = None
    ) -> None:
        self._owner = owner
        self._sums = sums
        self._versions = versions
        self._at = at = time.time()
        blobs = Blobs()
        self.found = blobs.found
        self._ops: list[store_ops.StoreOp | MessageRow] = [*ops]
        for place, op in enumerate(ops):
            if type(op) is store_ops.MessageAppended:
                self._ops[place] = encode_message(op, blobs, at)

    def run(self, conn: sqlite3.Connection) -> tuple[int, ...]:
        """Execute inside the caller's transaction; a row id per op, 0 where an op changes a row it did not make."""
        self._totals: defaultdict[str, _Totals] = defaultdict(_Totals)
        self._row_of_call: dict[tuple[str, str], int] = {}
        self._fence = 0
        self._moved: list[store_ops.SessionContinued] = []
        answer = tuple([_STEPS[type(op)](self, conn, op) for op in self._ops])
        for session_id, totals in self._totals.items():
            totals.add(conn, session_id)
        for moved in self._moved:  # what waits follows, once all else is there
            from hermes.state.sqlite.message_line import move  # a start does not pay for it

            move(conn, moved.session_id, moved.child.session_id)
        if self._versions is not None:
            self._versions.committed(self._ops)
        return answer

    def _append(self, conn: sqlite3.Connection, row: MessageRow) -> int:
        row_id = row.add(conn)
        totals = self._totals[row.session_id]
        totals.message_count += 1
        totals.newest_row = row_id
        if row.calls:
            totals.tool_call_count += len(row.calls)
            for call in row.calls:
                self._row_of_call[row.session_id, call.id] = row_id
        return row_id

    def _journal(self, conn: sqlite3.Connection, op: store_ops.CallJournalled) -> int:
        call = op.call
        message_id = self._row_of_call.get((op.session_id, call.id))
        packed = None if message_id is not None else bind_text(encode_json(dicts.call_to_dict(call)))
        what = (op.session_id, bind_text(call.id), bind_text(call.name), message_id, packed)
        return conn.execute(_OPEN_CALL, (*what, self._owner, self._at if op.is_started else 0.0)).lastrowid or 0

    def _begin_call(self, conn: sqlite3.Connection, op: store_ops.CallBegun) -> int:
        conn.execute(_BEGIN_CALL, (self._at, op.session_id, bind_text(op.call_id)))
        return 0

    def _close_call(self, conn: sqlite3.Connection, op: store_ops.CallClosed) -> int:
        conn.execute(_CLOSE_CALL, (op.status, op.duration_ms, op.session_id, bind_text(op.call_id)))
        return 0

    def _open_attempt(self, conn: sqlite3.Connection, op: store_ops.AttemptOpened) -> int:
        at = op.started_at or self._at
        if op.limits:
            (self._sums or Sums()).require_room(conn, op.limits, at)
        who = (op.attempt_id, op.session_id, op.purpose, op.provider, op.model, op.base_url, self._owner)
        return conn.execute(_OPEN_ATTEMPT, (*who, at, op.held.usd, op.held.tokens)).lastrowid or 0

    def _close_attempt(self, conn: sqlite3.Connection, op: store_ops.AttemptClosed) -> int:
        error = op.error and bind_text(op.error)
        known = (*astuple(op.usage), op.cost_usd, op.first_byte_ms, error)
        has = tuple(map(is_not, known, _NOTHING))
        what = (op.outcome, op.cost_source, op.latency_ms, op.held.usd, op.held.tokens)
        if not conn.execute(_close_sql(has), (*what, *compress(known, has), op.attempt_id)).rowcount:
            raise StoreError(f"attempt {op.attempt_id!r} is not open")
        if op.record is not None:
            conn.execute(_RECORD_CALL, (op.attempt_id, op.session_id, encode_json(op.record)))
        if op.session_id is not None:
            self._totals[op.session_id].close(op)
        return 0

    def _attach(self, conn: sqlite3.Connection, op: store_ops.ContextAttached) -> int:
        totals = self._totals.get(op.session_id)
        newest = (totals and totals.newest_row) or _newest_message(conn, op.session_id)
        conn.execute(_ATTACH, (newest, bind_text(op.text)))
        return newest

    def _hold(self, conn: sqlite3.Connection, op: store_ops.LeaseHeld) -> int:
        self._fence = op.fence
        return leases.hold(conn, op, self._at)

    def _continue(self, conn: sqlite3.Connection, op: store_ops.SessionContinued) -> int:
        made = continued(conn, op, lambda: _create(conn, op.child, self._at))
        leases.move(conn, op.session_id, op.child.session_id, self._fence)
        self._moved.append(op)
        return made

    def _approve(self, conn: sqlite3.Connection, op: store_ops.ApprovalRecorded) -> int:
        words = tuple(bind_text(word) for word in (op.route, op.tool, op.action))
        rest = (op.verdict, op.scope, bind_text(op.rule), bind_text(op.reason), op.decided_by)
        return conn.execute(_RECORD_APPROVAL, (op.session_id, *words, *rest, op.at or self._at)).lastrowid or 0

    def _store_event(self, conn: sqlite3.Connection, op: store_ops.EventStored) -> int:
        told = (op.session_id, self._at, op.kind, bind_text(op.about), bind_text(encode_json(op.body)))
        return conn.execute(_STORE_EVENT, told).lastrowid or 0


_STEPS: dict[type, Callable[[Plan, sqlite3.Connection, Any], int]] = {  # every `StoreOp`, as planned
    MessageRow: Plan._append,
    store_ops.CallJournalled: Plan._journal,
    store_ops.CallBegun: Plan._begin_call,
    store_ops.CallClosed: Plan._close_call,
    store_ops.AttemptOpened: Plan._open_attempt,
    store_ops.AttemptClosed: Plan._close_attempt,
    store_ops.ContextAttached: Plan._attach,
    store_ops.SessionCreated: lambda plan, conn, op: _create(conn, op, plan._at),
    store_ops.SessionChanged: lambda _, conn, op: _change(conn, op),
    store_ops.SessionContinued: Plan._continue,
    store_ops.LeaseTaken: lambda plan, conn, op: leases.take(conn, op, plan._owner, plan._at),
    store_ops.LeaseHeld: Plan._hold,
    store_ops.LeaseReleased: lambda _, conn, op: leases.release(conn, op),
    store_ops.ApprovalRecorded: Plan._approve,
    store_ops.EventStored: Plan._store_event,
}


def encode_message(op: store_ops.MessageAppended, blobs: Blobs, at: float) -> MessageRow:
    """The row of a message, dated `at` if it has no time of its own; `blobs` is left without references."""
    message, calls = op.message, op.message.tool_calls
    plain = message.content if isinstance(message.content, str) else dicts.content_to_json(message.content)
    content = encode_content(plain, blobs)
    refs: list[str] = []
    if blobs.refs:
        refs, blobs.refs = sorted(blobs.refs), set()
    packed = encode_json([dicts.call_to_dict(call) for call in calls]) if calls else None
    beside = (*astuple(message)[_BESIDE_CONTENT], packed)
    has = tuple(map(is_not, beside, _NOTHING))
    insert, as_json = _insert_sql(has)
    told = list(compress(beside, has))
    for place in as_json:
        told[place] = encode_json(told[place])
    values = (op.session_id, message.role, content, message.timestamp or at, *told)
    return MessageRow(op.session_id, calls, insert, values, refs)


@cache
def _insert_sql(has: tuple[bool, ...]) -> tuple[str, tuple[int, ...]]:
    """The statement, and the places of those columns that hold JSON."""
    told = tuple(compress(_COLUMNS, has))
    names = ("session_id", "role", "content", "timestamp", *told)
    sql = f"INSERT INTO messages({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    return sql, tuple(place for place, name in enumerate(told) if name in _AS_JSON)


@cache
def _close_sql(has: tuple[bool, ...]) -> str:
    sets = ", ".join(f"{name} = ?" for name in (*_OF_CLOSING, *compress(_IF_KNOWN, has)))
    return f"UPDATE attempts SET {sets} WHERE attempt_id = ? AND outcome IS NULL"


def keep_text(conn: sqlite3.Connection, text: str | None) -> str | bytes | None:
    """A session column's value for `text`; long text is kept once in `texts`."""
    if text is None or (len(text) <= LONG_SESSION_TEXT and not text.startswith("\0")):
        return None if text is None else bind_text(text)
    digest = sha256(text.encode("utf-8", "surrogatepass"))
    conn.execute("INSERT INTO texts(digest, text) VALUES (?,?) ON CONFLICT DO NOTHING", (digest, bind_text(text)))
    return TEXT_REF + digest


def change_session(conn: sqlite3.Connection, session_id: str, changes: dict[str, Any]) -> int:
    """Set columns; the number of rows that were changed (0 when there is no such session)."""
    return change_where(conn, " WHERE s.id = ?", (session_id,), changes)


def change_where(conn: sqlite3.Connection, where: str, given: Sequence[Any], changes: dict[str, Any]) -> int:
    """Set columns of all rows of `sessions s` that are so; how many."""
    unknown = sorted(set(changes) - (SESSION_COLUMNS.keys() - {"id"}))
    if unknown:
        raise StoreError(f"sessions have no column {unknown[0]!r}")
    if not changes:
        return 0
    values = [_column(conn, name, value) for name, value in changes.items()]
    assignments = ", ".join(f"{name} = ?" for name in changes)
    try:
        return conn.execute(f"UPDATE sessions AS s SET {assignments}{where}", (*values, *given)).rowcount
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


def _create(conn: sqlite3.Connection, op: store_ops.SessionCreated, at: float) -> int:
    values = (
        op.session_id,
        op.source,
        op.model,
        None if op.model_config is None else bind_text(encode_json(op.model_config)),
        keep_text(conn, op.system_prompt),
        keep_text(conn, op.tool_definitions),
        op.user_id,
        op.parent_session_id,
        _text(op.cwd),
        _text(op.title),
        op.started_at or at,
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


def _change(conn: sqlite3.Connection, op: store_ops.SessionChanged) -> int:
    if not change_session(conn, op.session_id, op.changes) and op.changes:
        raise StoreError(f"no session {op.session_id!r}")
    return 0


def _newest_message(conn: sqlite3.Connection, session_id: str) -> int:
    newest = conn.execute("SELECT max(id) FROM messages WHERE session_id = ?", (session_id,)).fetchone()[0]
    if newest is None:
        raise StoreError(f"session {session_id!r} has no message to attach context to")
    return int(newest)


def _title_taken(error: sqlite3.IntegrityError, title: str | None) -> Exception:
    return ValueError(f"the title {title!r} is taken by another session") if "title" in str(error) else error


def _text(value: str | None) -> str | bytes | None:
    return None if value is None else bind_text(value)
