"""A store that keeps everything in memory: the fake for tests. It passes the same contract suites."""

import hashlib
import threading
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, assert_never

import msgspec

from hermes import dicts
from hermes import ops as store_ops
from hermes.errors import LeaseLost, SessionInUse, SessionMoved, StoreError
from hermes.spend import Spent
from hermes.state import titles
from hermes.state.codec import decode_json
from hermes.state.schema import MESSAGE_COLUMNS, SESSION_COLUMNS, TABLES
from hermes.types import Message, Usage

Answer = TypeVar("Answer")
Row = dict[str, Any]

_COLUMNS = SESSION_COLUMNS.keys() - {"id"}
_NOTHING: Row = {name: 0 if "DEFAULT 0" in kind else None for name, kind in SESSION_COLUMNS.items()}


@dataclass(frozen=True)
class KeptMessage:
    """A message as the kernel and as `SessionDB` see it."""

    message: Message
    row: Row


@dataclass
class MemorySession:
    """One session; the two counters of its row are counted when they are asked for."""

    columns: Row
    messages: list[KeptMessage] = field(default_factory=list)
    contexts: dict[int, str] = field(default_factory=dict)
    open_calls: list[store_ops.OpenCall] = field(default_factory=list)
    lease: store_ops.Lease | None = None
    renewed_at: float = 0.0

    def held(self) -> store_ops.Lease | None:
        return self.lease if time.time() - self.renewed_at < store_ops.LEASE_S else None

    def active(self) -> list[KeptMessage]:
        return [kept for kept in self.messages if kept.row["active"]]

    def copy(self) -> "MemorySession":
        return replace(
            self,
            columns=dict(self.columns),
            messages=list(self.messages),
            contexts=dict(self.contexts),
            open_calls=list(self.open_calls),
        )


@dataclass
class MemoryState:
    """Everything. One that was committed never changes: a write works on a copy."""

    sessions: dict[str, MemorySession] = field(default_factory=dict)
    attempts: dict[str, store_ops.AttemptOpened] = field(default_factory=dict)
    closed: dict[str, store_ops.AttemptClosed] = field(default_factory=dict)
    approvals: list[store_ops.ApprovalRecorded] = field(default_factory=list)
    runs: list[Row] = field(default_factory=list)  # of tools
    events: list[tuple[int, float, store_ops.EventStored]] = field(default_factory=list)
    meta: dict[str, str] = field(default_factory=dict)
    routes: dict[tuple[str, str], str] = field(default_factory=dict)
    locks: dict[str, tuple[str, float]] = field(default_factory=dict)
    rows: int = 0  # that were ever made, and messages among them
    newest: int = 0
    fence: int = 0  # that the commit under way has shown

    def session(self, session_id: str) -> MemorySession:
        if session_id not in self.sessions:
            raise StoreError(f"no session {session_id!r}")
        return self.sessions[session_id]

    def copy(self) -> "MemoryState":
        sessions = {name: session.copy() for name, session in self.sessions.items()}
        held = {name: copy(value) for name, value in vars(self).items()}
        return MemoryState(**{**held, "sessions": sessions, "runs": [dict(run) for run in self.runs], "fence": 0})


class MemoryStore:
    """`commits` lists what was committed, for assertions; `fail_next` makes the next commits fail."""

    def __init__(self) -> None:
        self.commits: list[tuple[store_ops.StoreOp, ...]] = []
        self.blobs: dict[str, bytes] = {}
        self.path: Path | None = None
        self.state = MemoryState()
        self._lock = threading.Lock()  # guards the change from one state to the next
        self._failures: list[Exception] = []
        self._closed = False

    def fail_next(self, *errors: Exception) -> None:
        """Raise each of `errors` from one coming commit; nothing of those commits is stored."""
        self._failures.extend(errors)

    async def commit(self, *ops: store_ops.StoreOp) -> tuple[int, ...]:
        """Write all or nothing; a row id per op."""
        return self.commit_sync(*ops)

    def commit_sync(self, *ops: store_ops.StoreOp) -> tuple[int, ...]:
        """`commit` for a plain thread."""
        if self._failures:
            raise self._failures.pop(0)
        answer = self.write(lambda state: tuple([_apply(state, op) for op in ops]))
        self.commits.append(ops)
        return answer

    def write(self, work: Callable[[MemoryState], Answer]) -> Answer:
        """Let `work` change a copy of everything, which counts when nothing was raised."""
        self._check_open()
        with self._lock:
            draft = self.state.copy()
            answer = work(draft)
            self.state = draft
        return answer

    async def load(self, session_id: str, after: int = 0) -> store_ops.SessionRecord | None:
        """The session as it stands, or None; of its messages those above row id `after`."""
        return self.load_sync(session_id, after)

    def load_sync(self, session_id: str, after: int = 0) -> store_ops.SessionRecord | None:
        """`load` for a plain thread."""
        self._check_open()
        session = self.state.sessions.get(session_id)
        if session is None:
            return None
        columns, active = session.columns, session.active()
        config = columns["model_config"]
        later = line_after(self.state, session_id)
        return store_ops.SessionRecord(
            session_id=session_id,
            source=columns["source"],
            model=columns["model"],
            system_prompt=columns["system_prompt"],
            tool_definitions=columns["tool_definitions"],
            cwd=columns["cwd"],
            ended=columns["ended_at"] is not None,
            messages=tuple(kept.message for kept in active if kept.row["id"] > after),
            contexts={row: text for row, text in session.contexts.items() if row > after},
            open_calls=tuple(session.open_calls),
            totals=Usage(**{name: columns[name] for name in Usage.__struct_fields__}),
            cost_usd=columns["estimated_cost_usd"],
            title=columns["title"],
            model_config=decode_json(config) if isinstance(config, str) else config,
            message_count=len(active),
            continued_by=later[-1] if len(later) > 1 else None,
            earlier=tuple(line_before(self.state, session_id)),
            compress_after=columns["compression_failure_cooldown_until"] or 0.0,
            idle_compressions=columns["compression_fallback_streak"],
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
        self.close_sync()

    def close_sync(self) -> None:
        """`close` for a plain thread."""
        self._closed = True

    @property
    def attempts(self) -> dict[str, tuple[store_ops.AttemptOpened, store_ops.AttemptClosed | None]]:
        """The ledger by attempt id; an attempt that is still open has no second half."""
        return {name: (opened, self.state.closed.get(name)) for name, opened in self.state.attempts.items()}

    @property
    def approvals(self) -> tuple[store_ops.ApprovalRecorded, ...]:
        return tuple(self.state.approvals)

    def columns(self, session_id: str) -> dict[str, Any]:
        """The session's columns as they were set."""
        return dict(self.state.sessions[session_id].columns)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed")


def _apply(state: MemoryState, op: store_ops.StoreOp) -> int:
    state.rows += 1
    match op:
        case store_ops.SessionCreated():
            _create(state, op)
        case store_ops.SessionChanged():
            _change(state, op)
        case store_ops.SessionContinued():
            _continue(state, op)
        case store_ops.LeaseTaken():
            _take(state, op)
        case store_ops.LeaseHeld() | store_ops.LeaseReleased():
            _hold(state, op)
        case store_ops.MessageAppended():
            state.session(op.session_id).messages.append(_kept(state, op))
            return state.newest
        case store_ops.ContextAttached():
            return _attach(state.session(op.session_id), op)
        case store_ops.CallJournalled():
            _journal(state, op)
        case store_ops.CallBegun() | store_ops.CallClosed():
            _move_call(state, op)
        case store_ops.AttemptOpened():
            if op.attempt_id in state.attempts:
                raise StoreError(f"attempt {op.attempt_id!r} was opened twice")
            _require_room(state, op)
            state.attempts[op.attempt_id] = op
        case store_ops.AttemptClosed():
            _close_attempt(state, op)
        case store_ops.ApprovalRecorded():
            state.approvals.append(op)
        case store_ops.EventStored():
            state.events.append((state.rows, time.time(), op))
        case _:
            assert_never(op)
    return state.rows


def _kept(state: MemoryState, op: store_ops.MessageAppended) -> KeptMessage:
    state.newest += 1
    message = msgspec.structs.replace(op.message, id=state.newest, timestamp=op.message.timestamp or time.time())
    row = dict.fromkeys(MESSAGE_COLUMNS) | {"session_id": op.session_id, "active": 1, "compacted": 0, "observed": 0}
    row |= {name: getattr(message, name) for name in message.__struct_fields__}
    row["content"] = dicts.content_to_json(message.content)
    row["tool_calls"] = [dicts.call_to_dict(call) for call in message.tool_calls] or None
    return KeptMessage(message, row)


def _journal(state: MemoryState, op: store_ops.CallJournalled) -> None:
    run = store_ops.OpenCall(op.call, time.time() if op.is_started else 0.0)
    if op.session_id in state.sessions:
        state.sessions[op.session_id].open_calls.append(run)
    told = {"session_id": op.session_id, "call_id": op.call.id, "name": op.call.name, "started_at": run.started_at}
    state.runs.append({**dict.fromkeys(TABLES["tool_runs"]), "id": state.rows, "owner": "", **told})


def _move_call(state: MemoryState, op: store_ops.CallBegun | store_ops.CallClosed) -> None:
    now, told = time.time(), Row()
    told |= (
        {"started_at": now}
        if isinstance(op, store_ops.CallBegun)
        else {"status": op.status, "duration_ms": op.duration_ms}
    )
    for run in state.runs:
        if (run["session_id"], run["call_id"], run["status"]) == (op.session_id, op.call_id, None):
            run.update(told)
    session = state.sessions.get(op.session_id)
    for place, open_call in enumerate(session.open_calls if session else ()):
        if session is not None and open_call.call.id == op.call_id:
            session.open_calls[place : place + 1] = (
                [store_ops.OpenCall(open_call.call, now)] if told.get("started_at") else []
            )
            return


def _create(state: MemoryState, op: store_ops.SessionCreated) -> None:
    columns = {name: getattr(op, name) for name in op.__struct_fields__ if name != "session_id"}
    create_session(state, op.session_id, columns | {"started_at": op.started_at or time.time()})


def create_session(state: MemoryState, session_id: str, columns: Row) -> bool:
    """Make it unless it is there; whether it was made."""
    if session_id in state.sessions:
        return False
    check_title(state, session_id, columns.get("title"))
    state.sessions[session_id] = MemorySession({**_NOTHING, "source": "unknown", **columns})
    return True


def _change(state: MemoryState, op: store_ops.SessionChanged) -> None:
    if op.changes:
        state.session(op.session_id)
        change_session(state, op.session_id, op.changes)


def change_session(state: MemoryState, session_id: str, changes: Row) -> None:
    """Set columns of a session that is there."""
    unknown = sorted(set(changes) - _COLUMNS)
    if unknown:
        raise StoreError(f"sessions have no column {unknown[0]!r}")
    check_title(state, session_id, changes.get("title"))
    state.sessions[session_id].columns |= changes


def _continue(state: MemoryState, op: store_ops.SessionContinued) -> None:
    old = state.session(op.session_id)
    newest = max((kept.row["id"] for kept in old.active()), default=0)
    if old.columns.get("end_reason") == "compression" or newest != op.last_row or op.child.session_id in state.sessions:
        raise SessionMoved(f"session {op.session_id!r} has moved on")
    old.columns |= {"ended_at": op.at, "end_reason": "compression"}
    title = old.columns.get("title")
    _create(state, msgspec.structs.replace(op.child, title=None))
    inherited = {"source": old.columns["source"], "user_id": old.columns.get("user_id")}
    child = state.sessions[op.child.session_id]
    child.columns |= {**inherited, "title": title and titles.next_free(title, lambda base: titles_like(state, base))}
    if old.lease is not None and old.lease.fence == state.fence:
        child.lease, child.renewed_at = old.lease, old.renewed_at
    old.lease = None


def _take(state: MemoryState, op: store_ops.LeaseTaken) -> None:
    session = state.session(op.session_id)
    lease = session.held()
    if lease is not None and lease.fence != op.replaces:
        raise SessionInUse(op.session_id, lease.holder, lease.since)
    if len(session.active()) != op.message_count or len(line_after(state, op.session_id)) > 1:
        raise SessionMoved(f"session {op.session_id!r} has moved on")
    session.renewed_at = time.time()
    session.lease = store_ops.Lease(op.fence, "another agent of this process", session.renewed_at)


def _hold(state: MemoryState, op: store_ops.LeaseHeld | store_ops.LeaseReleased) -> None:
    name = next((name for name, one in state.sessions.items() if one.lease and one.lease.fence == op.fence), None)
    if name is None:
        raise LeaseLost(f"session {op.session_id!r} was taken over by another agent")
    state.fence = op.fence
    session = state.sessions[name]
    if isinstance(op, store_ops.LeaseReleased):
        session.lease = None
    elif op.renews:
        session.renewed_at = time.time()


def titles_like(state: MemoryState, base: str) -> list[str]:
    """The titles that are `base`, or begin with it and " #"."""
    used = [session.columns["title"] or "" for session in state.sessions.values()]
    return [title for title in used if title and (title == base or title.startswith(f"{base} #"))]


def line_after(state: MemoryState, session_id: str) -> list[str]:
    """The session and those that compressions made of it, oldest first."""
    line = [session_id]
    while line[-1] in state.sessions and state.sessions[line[-1]].columns["end_reason"] == "compression":
        old = state.sessions[line[-1]].columns
        children = [
            (one.columns["started_at"], name)
            for name, one in state.sessions.items()
            if one.columns["parent_session_id"] == line[-1]
            and (one.columns["source"] == old["source"] or one.columns["source"] not in ("subagent", "tool"))
            and one.columns["started_at"] >= old["ended_at"] - 1.0
        ]
        if not children or max(children)[1] in line:
            break
        line.append(max(children)[1])
    return line


def line_before(state: MemoryState, session_id: str) -> list[str]:
    """The sessions that compressions made this one of, oldest first."""
    line = [session_id]
    while line[0] in state.sessions and (parent := state.sessions[line[0]].columns["parent_session_id"]):
        if parent in line or parent not in state.sessions:
            break
        if state.sessions[parent].columns["end_reason"] != "compression":
            break
        line.insert(0, parent)
    return line[:-1]


def check_title(state: MemoryState, session_id: str, title: str | None) -> None:
    """`ValueError` when another session has it."""
    taken = (other.columns["title"] for name, other in state.sessions.items() if name != session_id)
    if title is not None and title in taken:
        raise ValueError(f"the title {title!r} is taken by another session")


def _attach(session: MemorySession, op: store_ops.ContextAttached) -> int:
    if not session.messages:
        raise StoreError(f"session {op.session_id!r} has no message to attach context to")
    row: int = session.messages[-1].row["id"]
    before = session.contexts.get(row)
    session.contexts[row] = op.text if before is None else f"{before}\n\n{op.text}"
    return row


def _require_room(state: MemoryState, op: store_ops.AttemptOpened) -> None:
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


def _root(state: MemoryState, session_id: str | None) -> str | None:
    """The first session of the family."""
    while session_id in state.sessions and (parent := state.sessions[session_id].columns.get("parent_session_id")):
        session_id = parent
    return session_id


def _close_attempt(state: MemoryState, op: store_ops.AttemptClosed) -> None:
    if op.attempt_id not in state.attempts or op.attempt_id in state.closed:
        raise StoreError(f"attempt {op.attempt_id!r} is not open")
    state.closed[op.attempt_id] = op
    if op.session_id is None:
        return
    columns, opened = state.session(op.session_id).columns, state.attempts[op.attempt_id]
    for name in Usage.__struct_fields__:
        columns[name] += getattr(op.usage, name) or 0
    columns["api_call_count"] += 1
    if op.cost_usd is None:
        columns["cost_status"] = "unknown" if op.outcome == "ok" else columns["cost_status"]
        return
    columns["estimated_cost_usd"] = (columns["estimated_cost_usd"] or 0.0) + op.cost_usd
    columns |= {"cost_status": "estimated", "cost_source": op.cost_source}
    columns["pricing_version"] = op.pricing_version or columns["pricing_version"]
    if opened.purpose == "turn" and columns["billing_provider"] is None:
        columns |= {"billing_provider": opened.provider, "billing_base_url": opened.base_url}
        columns["billing_mode"] = "per_token" if op.cost_usd else "included"
