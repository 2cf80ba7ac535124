"""The writing connection: the lock in front of it, opening, salvage, and the work that can wait."""

import logging
import os
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.disk_trouble import full_disk, reason_of
from hermes.errors import StoreError, StoreUnavailable
from hermes.state import schema
from hermes.state.codec import Fetch
from hermes.state.sqlite import connection, tables
from hermes.state.sqlite.lock import FairLock, Seal
from hermes.state.sqlite.writer import QUICK_S, Work, pace
from hermes.state.stores import Durability

if TYPE_CHECKING:
    from hermes.state.sqlite.salvage import Salvaged

INDEX_BATCH = 256
TAIL_LIMIT = 1024  # not indexed messages before indexing no longer waits for a quiet moment
CHECK_EVERY = 16
CHECKPOINT_EVERY = 64  # commits; writing anew over a short log costs half of making it longer
LOG_BYTES = 2 * connection.LOG_KEPT_BYTES  # of a log that no commit makes longer before it is moved into the file
STRANGER_POLL_S = 0.005

_log = logging.getLogger(__name__)


class WriteFile:
    """The writing connection and the lock in front of it; used by one thread at a time."""

    def __init__(self, path: Path, durability: Durability, fetch: Fetch, vfs: str | None = None) -> None:
        self.notes: list[str] = []
        self.salvaged: Salvaged | None = None
        self.opened = 0  # how often: a repair may put another file in its place
        self.commit_s = 1.0  # how long a commit takes here, lately
        self._path = path
        self._name = str(path)
        self._log_name = f"{path}-wal"
        self._durability = durability
        self._fetch = fetch
        self._vfs = vfs
        self._lock = FairLock(path.with_name(path.name + "-lock"))
        self._seal = Seal(path)
        self._is_sealed = False  # as of the last look: only then may what we wrote be sealed again
        self._conn: sqlite3.Connection | None = None
        self._inode = 0
        self._log_inode = 0  # of the write-ahead log, once there is one
        self._log_bytes = 0
        self._commits = 0
        self._checkpointed = 0
        self._looked_at = 0  # the number of commits when `is_busy` was asked
        self._mark = 0  # what is surely indexed; another process may have gone further
        self.mode: connection.JournalMode = "wal"

    def open(self) -> None:
        """Open or make the file; whatever forbids it is a `StoreUnavailable` with the reason."""
        folder = self._path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StoreUnavailable(f"cannot make the folder {str(folder)!r}: {reason_of(error)}") from error
        self._lock.open()
        try:
            self._lock.acquire()
            try:
                self._connect()
            finally:
                self._lock.release()
        except sqlite3.Error as error:
            self._lock.close()
            is_full = error.sqlite_errorcode == sqlite3.SQLITE_FULL if hasattr(error, "sqlite_errorcode") else False
            why = full_disk(folder, is_known=is_full) or error
            raise StoreUnavailable(f"cannot open {str(self._path)!r}: {why}") from error
        except OSError as error:
            self._lock.close()
            raise StoreUnavailable(f"cannot open {str(self._path)!r}: {reason_of(error)}") from error
        except BaseException:
            self._lock.close()
            raise

    @property
    def is_quick(self) -> bool:
        """Whether this file can be used on an event loop: nobody is waited for, and the disk is not felt."""
        return self.mode == "wal" and self.commit_s < QUICK_S

    def begin(self) -> sqlite3.Connection:
        """Take the lock between processes and start a transaction."""
        self._lock.acquire()
        try:
            conn = self._reconnected()
            _begin_waiting(conn)
            self._is_sealed = self.mode != "wal" and self._seal.is_unbroken()
        except BaseException:
            self._lock.release()
            raise
        return conn

    def try_begin(self) -> sqlite3.Connection | None:
        """`begin` if nobody has to be waited for, else None."""
        if self.mode != "wal" or self._conn is None or not self._lock.try_acquire():
            return None
        try:
            conn = self.current()
            if conn is not None and _begin_now(conn):
                return conn
        except BaseException:
            self._lock.release()
            raise
        self._lock.release()
        return None

    def alone(self, work: Work[Any]) -> Any:
        """Run `work` under the lock, outside a transaction."""
        self._lock.acquire()
        try:
            conn = self._reconnected()
            _wait_for_strangers(conn, connection.BUSY_TIMEOUT_MS)
            self._lock.hold_file()
            try:
                self._is_sealed = self._seal.is_unbroken()
                return work(conn)
            finally:
                self.seal()
                self._lock.let_file_go()
        finally:
            if self._conn is not None and self.mode == "wal":
                _wait_for_strangers(self._conn, 0)
            self._lock.release()

    def commit(self, *, by_thread: bool = False) -> bool:
        """Make the transaction durable; whether enough is waiting to wake the writing thread for it.

        `by_thread`: the writing thread does it, beside a loop that may hold it up.
        """
        conn = self._conn
        assert conn is not None
        began = time.perf_counter()
        try:
            conn.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise
        if self.mode != "wal":
            self.seal()
        elif self._log_bytes > LOG_BYTES:
            self._checkpoint(conn)  # beside other writers it would never come to the end of the log
        self._lock.release()
        took = time.perf_counter() - began
        commits = self._commits = self._commits + 1
        self.commit_s = took if commits == 1 else pace(self.commit_s, took, by_thread=by_thread)
        return commits - self._checkpointed >= CHECKPOINT_EVERY

    def rollback(self) -> None:
        try:
            if self._conn is not None and self._conn.in_transaction:
                self._conn.execute("ROLLBACK")
        finally:
            self._lock.release()

    def committed(self) -> None:
        """Index when much is waiting, also while the writer is never idle: searches scan what is not indexed."""
        if self._conn is None:
            return
        if self._commits - self._checkpointed >= CHECKPOINT_EVERY:
            self._checkpoint(self._conn)
        if self._commits % CHECK_EVERY == 0 and self._behind(self._conn) >= TAIL_LIMIT:
            self.idle()

    def is_busy(self) -> bool:
        """Whether commits were made since the last time this was asked, and not too much waits to be indexed."""
        was, self._looked_at = self._looked_at, self._commits
        return was != self._commits and self._conn is not None and self._behind(self._conn) < TAIL_LIMIT

    def idle(self) -> bool:
        """Move the log into the file when it is long, and index one batch; whether there is more to index."""
        if self._conn is None:
            return False
        if self._commits - self._checkpointed >= CHECKPOINT_EVERY:
            self._checkpoint(self._conn)
        if self._behind(self._conn) <= 0:
            return False
        conn = self.begin()
        try:
            from hermes.state.sqlite import search_index  # a start does not pay for it

            self._mark, _ = search_index.index_batch(conn, self._fetch, INDEX_BATCH)
        except BaseException:
            self.rollback()
            raise
        self.commit(by_thread=True)
        return self._behind(conn) > 0

    def _checkpoint(self, conn: sqlite3.Connection) -> None:
        """Move the log into the file. Here, not in a commit, so that no waiter pays for it."""
        self._checkpointed = self._commits
        if self.mode != "wal" or not self._lock.hold_file(waits=False):  # else another process is at it
            return
        try:
            self._is_sealed = self._seal.is_unbroken()
            conn.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self.seal()
        finally:
            self._lock.let_file_go()

    def seal(self) -> None:
        """Note the file as we leave it, if it was so before: what a stranger did to it must not be covered up."""
        if self._is_sealed:
            self._seal.set()

    def _behind(self, conn: sqlite3.Connection) -> int:
        return tables.newest_id(conn) - self._mark

    @property
    def is_far_behind(self) -> bool:
        """Whether so much is not indexed that searches feel it: an index that was emptied is made in the background."""
        return self._conn is not None and self._behind(self._conn) >= TAIL_LIMIT

    def shut(self) -> None:
        """Close the connection. `leave` follows when the readers are closed too: the last one empties the log."""
        self._lock.hold_file()
        self._is_sealed = self._seal.is_unbroken()
        if self._conn is not None:
            self._conn.close()
            self._conn = None

    def leave(self) -> None:
        """Note how the file was left; nobody looks at it between `shut` and this."""
        self.seal()
        self._lock.close()

    def _connect(self) -> None:
        """Open the file, under the lock; a damaged one is kept aside and salvaged.

        One that is not as we left it is looked through first: much of what can befall it SQLite does not notice.
        """
        if not self._path.exists():
            # Made here to be private from its first byte. Never opened by hand again: closing a second handle
            # would drop SQLite's own locks on it.
            self._path.touch(mode=0o600)
        self._lock.hold_file()
        try:
            self._is_sealed = self._seal.is_unbroken()
            self._open_examined()
            if not self._is_sealed:
                self._is_sealed = True
                self.seal()
        finally:
            self._lock.let_file_go()

    def _open_examined(self) -> None:
        try:
            if not self._is_sealed:
                self._look_through()
            self._open_connection()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not connection.is_damage(error):
                raise
            self._salvage()
            self._open_connection()

    def _look_through(self) -> None:
        from hermes.state.sqlite.examine import faults_of  # rarely needed

        faults = faults_of(self._path, self._vfs)
        if faults:
            raise connection.DamagedFile(faults[0])

    def _open_connection(self) -> None:
        conn = connection.connect(self._path, durability=self._durability, writer=True, vfs=self._vfs)
        try:
            self._prepare(conn)
        except BaseException:
            conn.close()
            raise
        self._conn, self._inode, self._log_inode = conn, self._path.stat().st_ino, 0
        self.opened += 1

    def _salvage(self) -> None:
        from hermes.state.sqlite.salvage import salvage  # rarely needed

        self.salvaged = salvage(self._path)
        self._note(self.salvaged.sentence(), logging.ERROR)

    def _note(self, note: str, level: int = logging.WARNING) -> None:
        if note not in self.notes:
            self.notes.append(note)
            _log.log(level, "%s: %s", self._path, note)

    def salvage_if_damaged(self, conn: sqlite3.Connection) -> None:
        """Check the whole file; when it is damaged, put a salvaged one in its place."""
        try:
            self._look_through()
        except connection.DamagedFile:
            conn.close()
            self._conn = None
            self._salvage()
            self._open_connection()
            self._is_sealed = True

    def _prepare(self, conn: sqlite3.Connection) -> None:
        version = conn.execute("PRAGMA user_version").fetchone()[0]
        if version > schema.SCHEMA_VERSION:
            raise StoreUnavailable(
                f"{str(self._path)!r} was written by a newer Hermes (schema {version}, this one knows "
                f"{schema.SCHEMA_VERSION}); update Hermes, or choose another HERMES_HOME"
            )
        if version == 0:
            conn.execute("PRAGMA auto_vacuum = INCREMENTAL")  # takes effect only before the first table
        self.mode, note = connection.choose_journal(conn, connection.file_system_of(self._path.parent))
        if note is not None:
            self._note(note)
        if version < schema.SCHEMA_VERSION:
            copy = tables.migrate(conn, self._path)
            if copy is not None:
                self._note(
                    f"the file was brought to schema {schema.SCHEMA_VERSION}; the old one is kept at {str(copy)!r}"
                )
        if not self._is_sealed or not tables.is_sound(conn):  # whether its words are all there cannot be told
            from hermes.state.sqlite import search_index  # rarely needed

            conn.execute("BEGIN IMMEDIATE")
            search_index.reset(conn)
            conn.execute("COMMIT")
        self._mark = tables.watermark(conn)
        if self.mode == "wal":
            _wait_for_strangers(conn, 0)  # from here on `begin` waits, where waiting is allowed

    def current(self) -> sqlite3.Connection | None:
        """The connection, if it is open and to the file that has the name now."""
        try:
            is_same = os.stat(self._name).st_ino == self._inode  # noqa: PTH116 - each commit pays it
        except FileNotFoundError as error:
            raise StoreError(
                f"{str(self._path)!r} was removed while it was in use; put it back, or start again without it"
            ) from error
        if is_same and self.mode == "wal":
            self._look_at_log()
        return self._conn if is_same else None

    def _look_at_log(self) -> None:
        """SQLite writes on into a log that was taken away, and nobody would ever read that again."""
        try:
            log = os.stat(self._log_name)  # noqa: PTH116 - as above
            inode, self._log_bytes = log.st_ino, log.st_size
        except FileNotFoundError:
            inode = self._log_bytes = 0
        if self._log_inode not in (0, inode):
            raise StoreError(f"{self._log_name!r} was removed while it was in use; what it held is lost: start again")
        self._log_inode = inode

    def _reconnected(self) -> sqlite3.Connection:
        """The connection, to the file that has the name now: a repair may have put another in its place."""
        conn = self.current()
        if conn is not None:
            return conn
        if self._conn is not None:
            self._conn.close()
            self._conn = None
        self._connect()
        assert self._conn is not None
        return self._conn


def _wait_for_strangers(conn: sqlite3.Connection, at_most_ms: int) -> None:
    conn.execute(f"PRAGMA busy_timeout = {at_most_ms}")


def _begin_waiting(conn: sqlite3.Connection) -> None:
    """Begin, waiting for programs that do not stand in our line, such as a sqlite3 shell."""
    give_up = time.monotonic() + connection.BUSY_TIMEOUT_MS / 1000
    while not _begin_now(conn):
        if time.monotonic() > give_up:
            raise StoreError("the write failed: another program has held the session file for too long")
        time.sleep(STRANGER_POLL_S)


def _begin_now(conn: sqlite3.Connection) -> bool:
    try:
        conn.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            return False
        raise
    return True
