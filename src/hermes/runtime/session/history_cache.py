"""Histories of sessions that were just talked to, so that a long one is not read and built anew for every turn."""

import asyncio
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct, structs

from hermes import ops as store_ops
from hermes.errors import LeaseLost, SessionInUse
from hermes.redact import Redactor
from hermes.runtime.redaction import CLEANERS
from hermes.runtime.session.history import History
from hermes.runtime.session.lease import SessionLease
from hermes.seams import EventStore
from hermes.state.session_versions import Version

if TYPE_CHECKING:
    from hermes.state.queries import SessionQueries
    from hermes.state.schedule_rows import ScheduleRows

MAX_SESSIONS = 64
MAX_CHARS = 16_000_000
_RECORD_OPS = frozenset(
    {store_ops.SessionChanged, store_ops.SessionContinued, store_ops.SessionCreated}
)  # those that change what a record says
LeaseOp: TypeAlias = store_ops.LeaseHeld | store_ops.LeaseReleased | store_ops.LeaseTaken


class Warm(Struct, frozen=True):
    """A history, and up to which row of the store it goes; the session's record while it is at `version`."""

    history: History
    last_row: int
    message_count: int
    record: store_ops.SessionRecord | None = None
    version: Version | None = None


class HistoryCache:
    """A small cache, shared by the process and bounded in number and size: idle sessions fall out of memory."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, str], Warm] = OrderedDict()
        self._chars = 0  # of all histories in it
        self._lock = threading.Lock()  # guards the two

    def take(self, store: EventStore, session_id: str) -> Warm | None:
        """The history, out of the cache: whoever takes it owns it."""
        with self._lock:
            return self._pop((id(store), session_id))

    def keep(self, store: EventStore, session_id: str, warm: Warm) -> None:
        """Put a history back, and let go of the oldest when there are too many."""
        key = (id(store), session_id)
        with self._lock:
            self._pop(key)
            self._kept[key] = warm
            self._chars += warm.history.chars
            while len(self._kept) > MAX_SESSIONS or self._chars > MAX_CHARS:
                self._pop(next(iter(self._kept)))

    def _pop(self, key: tuple[int, str]) -> Warm | None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._chars -= found.history.chars  # a history in the cache does not change
        return found


@runtime_checkable
class Versioned(Protocol):
    """A store that can tell without reading whether a session is as it was."""

    def version(self, session_id: str) -> Version | None: ...


class RedactingStore:
    """A session's way to the store, past which no secret gets, and no write to a session that is another's by now.

    It knows the newest message row, and so what a warm history lacks.
    """

    def __init__(self, inner: EventStore, session_id: str, redactor: Redactor, *, stores_events: bool = False) -> None:
        self.stores_events = stores_events  # what listeners are told is stored in the commits that make it true
        self._begun: set[str] = set()  # calls that listeners know
        self._inner = inner
        self._session_id = session_id
        self._redactor = redactor
        self._versioned = inner if isinstance(inner, Versioned) else None
        self._record: store_ops.SessionRecord | None = None  # as it was read last
        self._version: Version | None = None  # of the session then
        self._commits = 0  # of ours, since then
        self._count = 0  # of the session's messages, as the store counts them
        self._later: list[store_ops.StoreOp] = []  # what goes with the next commit
        self.last_row = 0
        self.lease = SessionLease(self.commit)

    @property
    def queries(self) -> "SessionQueries | None":
        """What can be asked about all sessions; None of a store that answers nothing but its events."""
        return getattr(self._inner, "queries", None)

    @property
    def schedule(self) -> "ScheduleRows | None":
        """Jobs and their due moments; None of a store that keeps none."""
        return getattr(self._inner, "schedule", None)

    def commit_later(self, op: store_ops.StoreOp) -> None:
        """Write `op` with the next commit, such as that of a call's result; `LeaseLost` as of `commit`."""
        if self.lease.lost is not None:
            raise LeaseLost(str(self.lease.lost))
        self._later.append(op)

    async def commit_rest(self) -> None:
        """Write what no commit has come for."""
        if self._later and self.lease.lost is None:
            await self.commit()

    async def commit(self, *ops: store_ops.StoreOp) -> tuple[int, ...]:
        """Write `ops` without their secrets; `LeaseLost` when a turn runs and its session is no longer ours.

        Once that was found out, by a call of the turn or by a renewal, it holds until the session is taken anew. The
        answer has no rows of events among its own.
        """
        if self.lease.lost is not None:
            raise LeaseLost(str(self.lease.lost))
        told: list[store_ops.StoreOp] = []
        if self.stores_events:
            ops, told = self._told(ops)
        session_id, clean_ops, newest, added = self._session_id, list(ops), -1, 0
        lease: LeaseOp | None = None
        for place, op in enumerate(ops):
            if isinstance(op, store_ops.MessageAppended):
                if op.session_id == session_id:
                    newest, added = place, added + 1
                if op.is_clean:
                    continue
            elif type(op) in _RECORD_OPS:
                self._version = None
            elif isinstance(op, LeaseOp):
                lease = op
            if (clean := CLEANERS.get(type(op))) is not None:
                clean_ops[place] = clean(op, self._redactor)
        clean_ops += told
        clean_ops += [clean(op, self._redactor) if (clean := CLEANERS.get(type(op))) else op for op in self._later]
        is_shown = lease is None and self.lease.fence != 0
        if is_shown:
            lease = self.lease.held()
            clean_ops.insert(0, lease)
        rows = await self._written(clean_ops, lease)
        rows = rows[is_shown : is_shown + len(ops)]
        if newest >= 0:
            self.last_row = rows[newest]
            self._count += added
        if ops and ops[-1].session_id == session_id:
            self._commits += 1  # the store has counted it, too; where it alone does, the session is read again
        return rows

    def _told(
        self, ops: tuple[store_ops.StoreOp, ...]
    ) -> tuple[tuple[store_ops.StoreOp, ...], list[store_ops.StoreOp]]:
        """What is stored, and in their order the events among it and those that it amounts to.

        Calls that begin and end are such, and the session that goes on elsewhere.
        """
        told: list[store_ops.StoreOp] = []
        for op in ops:
            if isinstance(op, store_ops.EventStored):
                told.append(CLEANERS[store_ops.EventStored](op, self._redactor))
            elif isinstance(op, store_ops.CallJournalled | store_ops.CallBegun):
                if isinstance(op, store_ops.CallBegun) or op.is_started:
                    about = op.call_id if isinstance(op, store_ops.CallBegun) else op.call.id
                    self._begun.add(about)
                    told.append(store_ops.EventStored(op.session_id, "call_started", about, {}))
            elif isinstance(op, store_ops.CallClosed):
                # One that never began is shown all the same; "unknown" is one that began in a process that is gone.
                if op.call_id not in self._begun and op.status != "unknown":
                    told.append(store_ops.EventStored(op.session_id, "call_started", op.call_id, {}))
                self._begun.discard(op.call_id)
                ended = {"status": op.status, "duration_ms": op.duration_ms}
                told.append(store_ops.EventStored(op.session_id, "call_finished", op.call_id, ended))
            elif isinstance(op, store_ops.SessionContinued):
                new = op.child.session_id
                told.append(store_ops.EventStored(new, "session_moved", new, {"previous": op.session_id}))
        return (tuple([op for op in ops if type(op) is not store_ops.EventStored]) if told else ops), told

    async def _written(self, ops: list[store_ops.StoreOp], lease: LeaseOp | None) -> tuple[int, ...]:
        """Commit; what that means for the lease is noted also when the caller was cancelled meanwhile."""
        later, self._later = self._later, []
        try:
            rows = await self._inner.commit(*ops)
        except LeaseLost as error:
            assert lease is not None
            self.lease.lose(lease.fence, error)
            raise
        except asyncio.CancelledError as stopped:
            if stopped.__cause__ is None:
                self._note(lease)
                raise
            self._later = later + self._later
            if isinstance(stopped.__cause__, LeaseLost) and lease is not None:
                self.lease.lose(lease.fence, stopped.__cause__)
            raise
        except Exception:
            self._later = later + self._later  # nothing of it was stored
            raise
        if lease is not None:
            self._note(lease)
        return rows

    def _note(self, lease: LeaseOp | None) -> None:
        if isinstance(lease, store_ops.LeaseTaken):
            self.lease.taken(lease)
        elif isinstance(lease, store_ops.LeaseReleased):
            self.lease.released()

    def taking(self) -> store_ops.LeaseTaken:
        """What makes the session ours, as it was read; part of the first commit of a turn."""
        return self.lease.taking(self._session_id, self._count)

    async def take(self, record: store_ops.SessionRecord) -> None:
        """Make the session of `record`, which was just read, ours at once."""
        self.refuse_used(record)
        await self.commit(self.lease.taking(record.session_id, record.message_count))

    def refuse_used(self, record: store_ops.SessionRecord | None) -> None:
        """`SessionInUse` when somebody else works on the session."""
        used = record.lease if record is not None else None
        if record is not None and used is not None and used.fence != self.lease.fence:
            raise SessionInUse(record.session_id, used.holder, used.since)

    def follow(self, record: store_ops.SessionRecord) -> None:
        """The session goes on as this one."""
        self._session_id = record.session_id
        self._version = None
        self._count = record.message_count
        self.last_row = record.messages[-1].id or 0 if record.messages else 0
        self.lease.moved(record.session_id)

    async def load_warm(self, cache: HistoryCache) -> tuple[History | None, store_ops.SessionRecord | None]:
        """The history up to now if the cache has it and the store agrees, and the session's record.

        Without a history the record is whole; with one it may hold only the newest messages.
        """
        warm = cache.take(self._inner, self._session_id)
        version = self._versioned.version(self._session_id) if self._versioned is not None else None
        if warm is not None and warm.record is not None and version is not None and version == warm.version:
            self._record, self._version, self._commits = warm.record, version, 0
            self.last_row, self._count = warm.last_row, warm.message_count
            return warm.history, warm.record
        found, record = await self._read(warm)
        self._record, self._version, self._commits = record, version, 0
        return found, record

    async def _read(self, warm: Warm | None) -> tuple[History | None, store_ops.SessionRecord | None]:
        if warm is None:
            return None, await self._load_whole()
        record = await self._inner.load(self._session_id, warm.last_row)
        agrees = record is not None and record.message_count == len(warm.history.dicts) + len(record.messages)
        if record is None or not agrees or record.open_calls:
            return None, await self._load_whole()
        self.last_row, self._count = warm.last_row, record.message_count
        for message in record.messages:
            warm.history.add(message, record.contexts.get(message.id or -1, ""))
            self.last_row = message.id or self.last_row
        return warm.history, record

    async def load_cold(self, cache: HistoryCache) -> store_ops.SessionRecord | None:
        """The whole record, for a turn that brings its own history."""
        cache.take(self._inner, self._session_id)
        self._version = None
        return await self._load_whole()

    def keep_warm(self, cache: HistoryCache, history: History) -> None:
        """Leave the history for the next turn, and the record when nothing but this turn can have changed it."""
        version = self._version.after(self._commits) if self._version is not None else None
        record = self._record if version is not None else None
        if record is not None and (record.messages or record.open_calls or record.lease):
            record = structs.replace(record, messages=(), contexts={}, open_calls=(), lease=None)
        cache.keep(self._inner, self._session_id, Warm(history, self.last_row, self._count, record, version))

    async def _load_whole(self) -> store_ops.SessionRecord | None:
        record = await self._inner.load(self._session_id)
        self._count = record.message_count if record is not None else 0
        if record is not None and record.messages:
            self.last_row = record.messages[-1].id or 0
        return record

    async def load(self, session_id: str, after: int = 0) -> store_ops.SessionRecord | None:
        return await self._inner.load(session_id, after)

    async def put_blob(self, data: bytes) -> str:
        return await self._inner.put_blob(data)

    async def get_blob(self, digest: str) -> bytes:
        return await self._inner.get_blob(digest)

    async def close(self) -> None:
        await self._inner.close()
