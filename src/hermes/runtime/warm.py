"""Histories of sessions that were just talked to, so that a long one is not read and built anew for every turn."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from hermes.ops import MessageAppended, SessionRecord, StoreOp
from hermes.runtime.history import History
from hermes.seams import EventStore

MAX_SESSIONS = 64
MAX_CHARS = 16_000_000


class Warm(Struct, frozen=True):
    """A history, and up to which row of the store it goes."""

    history: History
    last_row: int


class WarmHistories:
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


class TrackedStore:
    """A session's way to the store; it knows the newest message row, and so what a warm history lacks."""

    def __init__(self, inner: EventStore, session_id: str, clean: Callable[[StoreOp], StoreOp] = lambda op: op) -> None:
        self._inner = inner
        self._session_id = session_id
        self._clean = clean  # takes secrets out of what is stored
        self.last_row = 0

    async def commit(self, *ops: StoreOp) -> tuple[int, ...]:
        clean = self._clean
        rows = await self._inner.commit(*[clean(op) for op in ops])
        for op, row in zip(ops, rows, strict=True):
            if type(op) is MessageAppended and op.session_id == self._session_id:
                self.last_row = row
        return rows

    def follow(self, record: SessionRecord) -> None:
        """The session goes on as this one."""
        self._session_id = record.session_id
        self.last_row = record.messages[-1].id or 0 if record.messages else 0

    async def load_warm(self, cache: WarmHistories) -> tuple[History | None, SessionRecord | None]:
        """The history up to now if the cache has it and the store agrees, and the session's record.

        Without a history the record is whole; with one it may hold only the newest messages.
        """
        warm = cache.take(self._inner, self._session_id)
        if warm is None:
            return None, await self._load_whole()
        record = await self._inner.load(self._session_id, warm.last_row)
        agrees = record is not None and record.message_count == len(warm.history.dicts) + len(record.messages)
        if record is None or not agrees or record.open_calls:
            return None, await self._load_whole()
        for message in record.messages:
            warm.history.add(message, record.contexts.get(message.id or -1, ""))
            self.last_row = message.id or self.last_row
        return warm.history, record

    def keep_warm(self, cache: WarmHistories, history: History) -> None:
        """Leave the history for the next turn."""
        cache.keep(self._inner, self._session_id, Warm(history, self.last_row))

    async def _load_whole(self) -> SessionRecord | None:
        record = await self._inner.load(self._session_id)
        if record is not None and record.messages:
            self.last_row = record.messages[-1].id or 0
        return record

    async def load(self, session_id: str, after: int = 0) -> SessionRecord | None:
        return await self._inner.load(session_id, after)

    async def put_blob(self, data: bytes) -> str:
        return await self._inner.put_blob(data)

    async def get_blob(self, digest: str) -> bytes:
        return await self._inner.get_blob(digest)

    async def close(self) -> None:
        await self._inner.close()
