"""The durable `EventStore`: one SQLite file, one writing thread, as many readers as needed."""

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from hermes.errors import StoreError, StoreUnavailable
from hermes.ops import SessionRecord, StoreOp
from hermes.state import schema
from hermes.state.apply import Plan
from hermes.state.blobs import BlobFolder
from hermes.state.connection import Durability, JournalMode, choose_journal, connect, file_system_of
from hermes.state.lock import FairLock
from hermes.state.migrate import migrate
from hermes.state.owner import this_process
from hermes.state.pool import ReadPool
from hermes.state.read import load_session
from hermes.state.salvage import Salvaged, is_damage, salvage
from hermes.state.search import index
from hermes.state.search.find import Search, find
from hermes.state.writer import Work, Writer

Answer = TypeVar("Answer")

INDEX_BATCH = 256
TAIL_LIMIT = 512  # not indexed messages before indexing no longer waits for a quiet moment
CHECK_TAIL_EVERY = 16

_log = logging.getLogger(__name__)


class SqliteStore:
    """Sessions in the file at `path`, which is made when it is not there.

    `durability="power"` survives the loss of power, `"process"` only that of the process. `notes` says in words what
    is unusual about this file: another journal mode, a repair that was made.
    """

    def __init__(self, path: Path | str, *, durability: Durability = "power", vfs: str | None = None) -> None:
        if durability not in ("power", "process"):
            raise StoreUnavailable(f"state.durability is 'power' or 'process', not {durability!r}")
        self.path = Path(path).absolute()
        self.durability: Durability = durability
        self.notes: list[str] = []
        self.salvaged: Salvaged | None = None  # set when the file was damaged and another took its place
        self.blobs = BlobFolder(self.path.with_name(self.path.name + "-blobs"), synced=durability == "power")
        self._vfs = vfs
        self._owner = this_process()
        self._file = _WriteFile(self)
        self._file.open()
        self._writer = Writer(self._file)
        self._reads = ReadPool(self._read_connection, self._file_now)

    # -- the EventStore seam -----------------------------------------------------------------------------------------

    async def commit(self, *ops: StoreOp) -> tuple[int, ...]:
        """Write all `ops` in one transaction; return a row id for each, 0 for one that changes an older row.

        Raises `StoreError` when it cannot be made durable; then nothing of it is stored.
        """
        plan = Plan(ops, self._owner)
        if plan.blobs.found:
            await self._reads.run(lambda: self._put_blobs(plan))
        return await self._writer.write(plan.run)

    async def load(self, session_id: str, after: int = 0) -> SessionRecord | None:
        """The session as it stands, or None; of its messages those above row id `after`. Nothing of it is kept here."""
        return await self._reads.run(lambda: self.load_sync(session_id, after))

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes once by content; return their sha256."""
        return await self._reads.run(lambda: self.blobs.put(data))

    async def get_blob(self, digest: str) -> bytes:
        """The bytes, checked against their digest; `StoreError` when they are gone or damaged."""
        return await self._reads.run(lambda: self.blobs.get(digest))

    async def close(self) -> None:
        """Finish the writes that were asked for and let the file go; a second time does nothing."""
        if self._reads.is_closed:
            return
        await self._reads.run(self._writer.close)
        self._reads.close()

    # -- the same for plain threads ----------------------------------------------------------------------------------

    def commit_sync(self, *ops: StoreOp) -> tuple[int, ...]:
        """`commit` for a plain thread."""
        plan = Plan(ops, self._owner)
        self._put_blobs(plan)
        return self._writer.write_sync(plan.run)

    def load_sync(self, session_id: str, after: int = 0) -> SessionRecord | None:
        """`load` for a plain thread."""
        return self.read(lambda conn: load_session(conn, session_id, self.blobs.get, after))

    def write(self, work: Work[Answer]) -> Answer:
        """Run `work` in a transaction on the writing thread, all or nothing; it may be run twice."""
        return self._writer.write_sync(work)

    def write_alone(self, work: Work[Answer]) -> Answer:
        """Run `work` on the writing thread outside a transaction, for statements that allow none."""
        return self._writer.write_sync(work, alone=True)

    def read(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Run `work` here, on a read connection of its own."""
        with self._reads.connection() as conn:
            return work(conn)

    async def search(self, search: Search) -> list[dict[str, Any]]:
        """Messages that match, as result rows."""
        return await self._reads.run(lambda: self.search_sync(search))

    def search_sync(self, search: Search) -> list[dict[str, Any]]:
        """`search` for a plain thread."""
        return self.read(lambda conn: find(conn, search, self.blobs.get))

    def index_all(self) -> int:
        """Index everything that is not indexed yet; how many messages that was."""
        total = 0
        while count := self.write(lambda conn: index.index_batch(conn, self.blobs.get, INDEX_BATCH)[1]):
            total += count
        return total

    def salvage_if_damaged(self) -> Salvaged | None:
        """Check the whole file; when it is damaged, keep it aside and carry over what can be read."""
        before = self.salvaged
        self._writer.write_sync(self._file.salvage_if_damaged, alone=True)
        return None if self.salvaged is before else self.salvaged

    def rebuild_index(self) -> int:
        """Make the index anew from the messages; how many it holds."""
        self.write(index.reset)
        return self.index_all()

    def reclaim(self) -> None:
        """Give free pages back to the file system."""

        def work(conn: sqlite3.Connection) -> None:
            conn.executescript("PRAGMA incremental_vacuum")  # `execute` would take one step: one page
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        self.write_alone(work)

    def close_sync(self) -> None:
        """`close` for a plain thread."""
        self._writer.close()
        self._reads.close()

    @property
    def journal_mode(self) -> JournalMode:
        """`wal`, or `delete` where that does not work."""
        return self._file.mode

    def _put_blobs(self, plan: Plan) -> None:
        for digest, data in plan.blobs.found.items():
            self.blobs.put(data, digest)

    def _file_now(self) -> int:
        try:
            return self.path.stat().st_ino
        except OSError as error:
            raise StoreError(f"{str(self.path)!r} cannot be read: {error.strerror}") from error

    def _read_connection(self) -> sqlite3.Connection:
        return connect(self.path, durability=self.durability, writer=False, vfs=self._vfs)


class _WriteFile:
    """The writing connection and the lock in front of it; used by one thread at a time."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._path = store.path
        self._lock = FairLock(store.path.with_name(store.path.name + "-lock"))
        self._conn: sqlite3.Connection | None = None
        self._inode = 0
        self._groups = 0
        self._mark = 0  # what is surely indexed; another process may have gone further
        self.mode: JournalMode = "wal"

    def open(self) -> None:
        """Open or make the file; whatever forbids it is a `StoreUnavailable` with the reason."""
        folder = self._path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StoreUnavailable(f"cannot make the folder {str(folder)!r}: {error.strerror}") from error
        self._lock.open()
        try:
            self._lock.acquire()
            try:
                self._connect()
            finally:
                self._lock.release()
        except sqlite3.Error as error:
            self._lock.close()
            raise StoreUnavailable(f"cannot open {str(self._path)!r}: {error}") from error
        except OSError as error:
            self._lock.close()
            raise StoreUnavailable(f"cannot open {str(self._path)!r}: {error.strerror}") from error
        except BaseException:
            self._lock.close()
            raise

    def begin(self) -> sqlite3.Connection:
        self._lock.acquire()
        try:
            conn = self._current()
            conn.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._lock.release()
            raise
        return conn

    def alone(self, work: Work[Any]) -> Any:
        """Run `work` under the lock, outside a transaction."""
        self._lock.acquire()
        try:
            return work(self._current())
        finally:
            self._lock.release()

    def commit(self) -> None:
        conn = self._conn
        assert conn is not None
        try:
            conn.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise
        self._lock.release()

    def rollback(self) -> None:
        try:
            if self._conn is not None and self._conn.in_transaction:
                self._conn.execute("ROLLBACK")
        finally:
            self._lock.release()

    def committed(self) -> None:
        """Index when much is waiting, also while the writer is never idle: searches scan what is not indexed."""
        self._groups += 1
        if self._groups % CHECK_TAIL_EVERY == 0 and self._conn is not None and self._behind(self._conn) >= TAIL_LIMIT:
            self.idle()

    def idle(self) -> bool:
        """Index one batch; whether there is more."""
        if self._conn is None or self._behind(self._conn) <= 0:
            return False
        conn = self.begin()
        try:
            self._mark, count = index.index_batch(conn, self._store.blobs.get, INDEX_BATCH)
        except BaseException:
            self.rollback()
            raise
        self.commit()
        return count == INDEX_BATCH

    def _behind(self, conn: sqlite3.Connection) -> int:
        row = conn.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
        return (row[0] if row else 0) - self._mark

    def shut(self) -> None:
        if self._conn is not None:
            self._conn.close()
            self._conn = None
        self._lock.close()

    def _connect(self) -> None:
        """Open the file, under the lock; a damaged one is kept aside and salvaged."""
        if not self._path.exists():
            # Made here to be private from its first byte. Never opened by hand again: closing a second handle
            # would drop SQLite's own locks on it.
            self._path.touch(mode=0o600)
        try:
            self._open_connection()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self._salvage()
            self._open_connection()

    def _open_connection(self) -> None:
        store = self._store
        conn = connect(self._path, durability=store.durability, writer=True, vfs=store._vfs)
        try:
            self._prepare(conn)
        except BaseException:
            conn.close()
            raise
        self._conn, self._inode = conn, self._path.stat().st_ino

    def _salvage(self) -> None:
        self._store.salvaged = salvage(self._path)
        self._note(self._store.salvaged.sentence())

    def _note(self, note: str) -> None:
        if note not in self._store.notes:
            self._store.notes.append(note)
            _log.warning("%s: %s", self._path, note)

    def salvage_if_damaged(self, conn: sqlite3.Connection) -> None:
        """Check the whole file; when it is damaged, put a salvaged one in its place."""
        try:
            sound = conn.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
        except sqlite3.DatabaseError:
            sound = False
        if not sound:
            conn.close()
            self._conn = None
            self._salvage()
            self._open_connection()

    def _prepare(self, conn: sqlite3.Connection) -> None:
        version = conn.execute("PRAGMA user_version").fetchone()[0]
        if version > schema.SCHEMA_VERSION:
            raise StoreUnavailable(
                f"{str(self._path)!r} was written by a newer Hermes (schema {version}, this one knows "
                f"{schema.SCHEMA_VERSION}); update Hermes, or choose another HERMES_HOME"
            )
        if version == 0:
            conn.execute("PRAGMA auto_vacuum = INCREMENTAL")  # takes effect only before the first table
        self.mode, note = choose_journal(conn, file_system_of(self._path.parent))
        if note is not None:
            self._note(note)
        if version < schema.SCHEMA_VERSION:
            copy = migrate(conn, self._path)
            if copy is not None:
                self._note(
                    f"the file was brought to schema {schema.SCHEMA_VERSION}; the old one is kept at {str(copy)!r}"
                )
        self._mark = index.watermark(conn)
        if not index.is_sound(conn):
            conn.execute("BEGIN IMMEDIATE")
            index.reset(conn)
            conn.execute("COMMIT")
            self._mark = 0

    def _current(self) -> sqlite3.Connection:
        """The connection, to the file that has the name now: a repair may have put another in its place."""
        try:
            if self._conn is not None and self._path.stat().st_ino == self._inode:
                return self._conn
        except FileNotFoundError as error:
            raise StoreError(f"{str(self._path)!r} was removed while it was in use") from error
        if self._conn is not None:
            self._conn.close()
            self._conn = None
        self._connect()
        assert self._conn is not None
        return self._conn
