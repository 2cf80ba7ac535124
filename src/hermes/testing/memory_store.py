"""An `EventStore` that keeps everything in memory: the fake for tests. It passes the same contract suite."""

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any, assert_never

import msgspec

from hermes.errors import LeaseLost, SessionInUse, SessionMoved, StoreError
from hermes.ops import (
    LEASE_S,
    ApprovalRecorded,
    AttemptClosed,
    AttemptOpened,
    CallBegun,
    CallClosed,
    CallJournalled,
    ContextAttached,
    Lease,
    LeaseHeld,
    LeaseReleased,
    LeaseTaken,
    MessageAppended,
    OpenCall,
    SessionChanged,
    SessionContinued,
    SessionCreated,
    SessionRecord,
    StoreOp,
)
from hermes.spend import Spent
from hermes.state.schema import SESSION_COLUMNS
from hermes.types import Message, Usage

_COLUMNS = SESSION_COLUMNS.keys() - {"id"}


@dataclass
class _Session:
    columns: dict[str, Any]
    messages: list[Message] = field(default_factory=list)
    contexts: dict[int, str] = field(default_factory=dict)
    open_calls: list[OpenCall] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Usage.__struct_fields__, 0))
    cost_usd: float | None = None
    lease: Lease | None = None
    renewed_at: float = 0.0

    def held(self) -> Lease | None:
        return self.lease if time.time() - self.renewed_at < LEASE_S else None


@dataclass
class _State:
    sessions: dict[str, _Session] = field(default_factory=dict)
    attempts: dict[str, AttemptOpened] = field(default_factory=dict)
    closed: dict[str, AttemptClosed] = field(default_factory=dict)
    approvals: list[ApprovalRecorded] = field(default_factory=list)
    rows: int = 0
    fence: int = 0  # that the commit under way has shown


class MemoryStore:
    """`commits` lists what was committed, for assertions; `fail_next` makes the next commits fail."""

    def __init__(self) -> None:
        self.commits: list[tuple[StoreOp, ...]] = []
        self.blobs: dict[str, bytes] = {}
        self._state = _State()
        self._failures: list[Exception] = []
        self._closed = False

    def fail_next(self, *errors: Exception) -> None:
        """Raise each of `errors` from one coming commit; nothing of those commits is stored."""
        self._failures.extend(errors)

    async def commit(self, *ops: StoreOp) -> tuple[int, ...]:
        """Write all or nothing; a row id per op."""
        self._check_open()
        if self._failures:
            raise self._failures.pop(0)
        draft = _copy(self._state, {op.session_id for op in ops if op.session_id is not None})
        answer = tuple([_apply(draft, op) for op in ops])
        self._state = draft
        self.commits.append(ops)
        return answer

    async def load(self, session_id: str, after: int = 0) -> SessionRecord | None:
        """The session as it stands, or None; of its messages those above row id `after`."""
        self._check_open()
        session = self._state.sessions.get(session_id)
        if session is None:
            return None
        columns = session.columns
        return SessionRecord(
            session_id=session_id,
            source=columns["source"],
            model=columns.get("model"),
            system_prompt=columns.get("system_prompt"),
            tool_definitions=columns.get("tool_definitions"),
            cwd=columns.get("cwd"),
            ended=columns.get("ended_at") is not None,
            messages=tuple(message for message in session.messages if (message.id or 0) > after),
            contexts={row: text for row, text in session.contexts.items() if row > after},
            open_calls=tuple(session.open_calls),
            totals=Usage(**session.totals),
            cost_usd=session.cost_usd,
            title=columns.get("title"),
            model_config=columns.get("model_config"),
            message_count=len(session.messages),
            continued_by=_tip(self._state, session_id),
            earlier=_earlier(self._state, session_id),
            compress_after=columns.get("compression_failure_cooldown_until") or 0.0,
            idle_compressions=columns.get("compression_fallback_streak") or 0,
            lease=session.held(),
        )

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes once by content."""
        self._check_open()
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return digest

    async def get_blob(self, digest: str) -> bytes:
        """The bytes; `StoreError` when there are none."""
        self._check_open()
        if digest not in self.blobs:
            raise StoreError(f"blob {digest} cannot be read: no such blob")
        return self.blobs[digest]

    async def close(self) -> None:
        """Refuse everything from now on."""
        self._closed = True

    @property
    def attempts(self) -> dict[str, tuple[AttemptOpened, AttemptClosed | None]]:
        """The ledger by attempt id; an attempt that is still open has no second half."""
        return {name: (opened, self._state.closed.get(name)) for name, opened in self._state.attempts.items()}

    @property
    def approvals(self) -> tuple[ApprovalRecorded, ...]:
        return tuple(self._state.approvals)

    def columns(self, session_id: str) -> dict[str, Any]:
        """The session's columns as they were set."""
        return dict(self._state.sessions[session_id].columns)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed")


def _copy(state: _State, touched: set[str]) -> _State:
    sessions = dict(state.sessions)
    for name in touched & sessions.keys():
        sessions[name] = _copied(sessions[name])
    return _State(sessions, dict(state.attempts), dict(state.closed), list(state.approvals), state.rows)


def _copied(old: _Session) -> _Session:
    return _Session(
        dict(old.columns),
        list(old.messages),
        dict(old.contexts),
        list(old.open_calls),
        dict(old.totals),
        old.cost_usd,
        old.lease,
        old.renewed_at,
    )


def _apply(state: _State, op: StoreOp) -> int:
    state.rows += 1
    match op:
        case SessionCreated():
            _create(state, op)
        case SessionChanged():
            _change(state, op)
        case SessionContinued():
            _continue(state, op)
        case LeaseTaken():
            _take(state, op)
        case LeaseHeld() | LeaseReleased():
            _hold(state, op)
        case MessageAppended():
            message = msgspec.structs.replace(op.message, id=state.rows, timestamp=op.message.timestamp or time.time())
            _session(state, op.session_id).messages.append(message)
        case ContextAttached():
            return _attach(_session(state, op.session_id), op)
        case CallJournalled():
            calls = state.sessions[op.session_id].open_calls if op.session_id in state.sessions else []
            calls.append(OpenCall(op.call, time.time() if op.is_started else 0.0))
        case CallBegun() | CallClosed():
            _move_call(state.sessions.get(op.session_id), op)
        case AttemptOpened():
            if op.attempt_id in state.attempts:
                raise StoreError(f"attempt {op.attempt_id!r} was opened twice")
            _require_room(state, op)
            state.attempts[op.attempt_id] = op
        case AttemptClosed():
            _close_attempt(state, op)
        case ApprovalRecorded():
            state.approvals.append(op)
        case _:
            assert_never(op)
    return state.rows


def _move_call(session: _Session | None, op: CallBegun | CallClosed) -> None:
    for place, run in enumerate(session.open_calls if session else ()):
        if session is not None and run.call.id == op.call_id:
            session.open_calls[place : place + 1] = (
                [OpenCall(run.call, time.time())] if isinstance(op, CallBegun) else []
            )
            return


def _session(state: _State, session_id: str) -> _Session:
    if session_id not in state.sessions:
        raise StoreError(f"no session {session_id!r}")
    return state.sessions[session_id]


def _create(state: _State, op: SessionCreated) -> None:
    if op.session_id in state.sessions:
        return
    _check_title(state, op.session_id, op.title)
    columns = {name: getattr(op, name) for name in op.__struct_fields__ if name != "session_id"}
    columns["started_at"] = op.started_at or time.time()
    state.sessions[op.session_id] = _Session(columns)


def _change(state: _State, op: SessionChanged) -> None:
    unknown = sorted(set(op.changes) - _COLUMNS)
    if unknown:
        raise StoreError(f"sessions have no column {unknown[0]!r}")
    if op.changes:
        _check_title(state, op.session_id, op.changes.get("title"))
        _session(state, op.session_id).columns |= op.changes


def _continue(state: _State, op: SessionContinued) -> None:
    old = _session(state, op.session_id)
    newest = (old.messages[-1].id or 0) if old.messages else 0
    if old.columns.get("end_reason") == "compression" or newest != op.last_row or op.child.session_id in state.sessions:
        raise SessionMoved(f"session {op.session_id!r} has moved on")
    old.columns |= {"ended_at": op.at, "end_reason": "compression"}
    title = old.columns.get("title")
    _create(state, msgspec.structs.replace(op.child, title=None))
    inherited = {"source": old.columns["source"], "user_id": old.columns.get("user_id")}
    child = state.sessions[op.child.session_id]
    child.columns |= {**inherited, "title": title and _numbered(state, title)}
    if old.lease is not None and old.lease.fence == state.fence:
        child.lease, child.renewed_at = old.lease, old.renewed_at
    old.lease = None


def _take(state: _State, op: LeaseTaken) -> None:
    session = _session(state, op.session_id)
    lease = session.held()
    if lease is not None and lease.fence != op.replaces:
        raise SessionInUse(op.session_id, lease.holder, lease.since)
    if len(session.messages) != op.message_count or _tip(state, op.session_id) is not None:
        raise SessionMoved(f"session {op.session_id!r} has moved on")
    session.renewed_at = time.time()
    session.lease = Lease(op.fence, "another agent of this process", session.renewed_at)


def _hold(state: _State, op: LeaseHeld | LeaseReleased) -> None:
    name = next((name for name, one in state.sessions.items() if one.lease and one.lease.fence == op.fence), None)
    if name is None:
        raise LeaseLost(f"session {op.session_id!r} was taken over by another agent")
    state.fence = op.fence
    session = state.sessions[name] = _copied(state.sessions[name])
    if isinstance(op, LeaseReleased):
        session.lease = None
    elif op.renews:
        session.renewed_at = time.time()


def _numbered(state: _State, title: str) -> str:
    base, _, number = title.rpartition(" #")
    base = base if number.isdecimal() else title
    taken = {session.columns.get("title") for session in state.sessions.values()}
    return next(name for n in range(2, len(taken) + 3) if (name := f"{base} #{n}") not in taken)


def _tip(state: _State, session_id: str) -> str | None:
    """The newest session that compressions made of this one."""
    tip = session_id
    while state.sessions[tip].columns.get("end_reason") == "compression":
        children = [name for name, one in state.sessions.items() if one.columns.get("parent_session_id") == tip]
        if not children:
            break
        tip = children[-1]
    return None if tip == session_id else tip


def _earlier(state: _State, session_id: str) -> tuple[str, ...]:
    line: list[str] = []
    parent = state.sessions[session_id].columns.get("parent_session_id")
    while parent in state.sessions and state.sessions[parent].columns.get("end_reason") == "compression":
        line.insert(0, parent)
        parent = state.sessions[parent].columns.get("parent_session_id")
    return tuple(line)


def _check_title(state: _State, session_id: str, title: str | None) -> None:
    taken = (other.columns.get("title") for name, other in state.sessions.items() if name != session_id)
    if title is not None and title in taken:
        raise ValueError(f"the title {title!r} is taken by another session")


def _attach(session: _Session, op: ContextAttached) -> int:
    if not session.messages:
        raise StoreError(f"session {op.session_id!r} has no message to attach context to")
    row = session.messages[-1].id
    assert row is not None
    before = session.contexts.get(row)
    session.contexts[row] = op.text if before is None else f"{before}\n\n{op.text}"
    return row


def _require_room(state: _State, op: AttemptOpened) -> None:
    for limit in op.limits:
        counted = [
            one
            for one in state.attempts.values()
            if one.started_at >= limit.since
            and (limit.session_id is None or _root(state, one.session_id) == _root(state, limit.session_id))
        ]
        ended = [state.closed[one.attempt_id].spent for one in counted if one.attempt_id in state.closed]
        under_way = [
            one.held + Spent(seconds=max(0.0, op.started_at - one.started_at))
            for one in counted
            if one.attempt_id not in state.closed
        ]
        limit.require_room(sum(ended, Spent()), sum(under_way, Spent()))


def _root(state: _State, session_id: str | None) -> str | None:
    """The first session of the family."""
    while session_id in state.sessions and (parent := state.sessions[session_id].columns.get("parent_session_id")):
        session_id = parent
    return session_id


def _close_attempt(state: _State, op: AttemptClosed) -> None:
    if op.attempt_id not in state.attempts or op.attempt_id in state.closed:
        raise StoreError(f"attempt {op.attempt_id!r} is not open")
    state.closed[op.attempt_id] = op
    if op.session_id is None:
        return
    session = _session(state, op.session_id)
    for name in session.totals:
        session.totals[name] += getattr(op.usage, name) or 0
    if op.cost_usd is not None:
        session.cost_usd = (session.cost_usd or 0.0) + op.cost_usd
