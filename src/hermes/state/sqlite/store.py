"""The durable `EventStore`: one SQLite file, one writing thread, as many readers as needed."""

import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hermes.errors import StoreError, StoreUnavailable
from hermes.ops import SessionRecord, StoreOp
from hermes.scope import unbroken
from hermes.state.blobs import BlobFolder
from hermes.state.owner import this_process
from hermes.state.session_versions import Version, Versions
from hermes.state.sqlite.connection import JournalMode, connect, is_damage
from hermes.state.sqlite.ledger_sums import Sums
from hermes.state.sqlite.pool import ReadPool
from hermes.state.sqlite.read import load_session
from hermes.state.sqlite.store_ops_sql import Plan
from hermes.state.sqlite.write_file import INDEX_BATCH, WriteFile
from hermes.state.sqlite.writer import Work, Writer
from hermes.state.stores import Durability

if TYPE_CHECKING:
    from hermes.state.batch_rows import BatchRows
    from hermes.state.message_line import MessageLine
    from hermes.state.queries import Search
    from hermes.state.schedule_rows import ScheduleRows
    from hermes.state.sqlite.queries import SqliteQueries
    from hermes.state.sqlite.salvage import Salvaged

Answer = TypeVar("Answer")

_EXISTS = "SELECT 1 FROM sessions WHERE id = ?"


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
        self.blobs = BlobFolder(self.path.with_name(self.path.name + "-blobs"), synced=durability == "power")
        self._vfs = vfs
        self._owner = this_process()
        self._sums = Sums()
        self._versions = Versions()
        self._file = WriteFile(self.path, durability, self.blobs.get, vfs)
        self._file.open()
        self._writer = Writer(self._file)
        self._reads = ReadPool(self._read_connection, self._file_now)
        if self._file.is_far_behind:
            self._writer.start()

    # -- the EventStore seam -----------------------------------------------------------------------------------------

    def commit(self, *ops: StoreOp) -> Coroutine[Any, Any, tuple[int, ...]]:
        """Write all `ops` in one transaction; return a row id for each, 0 for one that changes an older row.

        Raises `StoreError` when it cannot be made durable; then nothing of it is stored. A cancellation is held back
        until that is known.
        """
        plan = Plan(ops, self._owner, self._sums, self._versions)
        if plan.found:
            return unbroken(self._commit_with_blobs(plan))
        return self._writer.write(plan.run)

    async def _commit_with_blobs(self, plan: Plan) -> tuple[int, ...]:
        await self._reads.run(lambda: self._put_blobs(plan))
        return await self._writer.write(plan.run)

    async def load(self, session_id: str, after: int = 0) -> SessionRecord | None:
        """The session as it stands, or None; of its messages those above row id `after`. Nothing of it is kept here.

        The end of a session that was just written is in memory; reading it is quicker than asking a thread to.
        """
        if after and self._file.is_quick:
            seen = self._looked(lambda conn: load_session(conn, session_id, self.blobs.get, after))
            return self.load_sync(session_id, after) if seen is None else seen[0]
        if self._looked(lambda conn: conn.execute(_EXISTS, (session_id,)).fetchone()) == (None,):
            return None  # a session that begins
        return await self._reads.run(lambda: self.load_sync(session_id, after))

    async def read_soon(self, work: Work[Answer]) -> Answer:
        """A short `read` for a loop: at once where that is not felt, else on a thread."""
        seen = self._looked(work)
        return await self._reads.run(lambda: self.read(work)) if seen is None else seen[0]

    def _looked(self, work: Work[Answer]) -> tuple[Answer] | None:
        """What `work` reads over the writing connection; None when that is not to be had."""
        try:
            return self._writer.look(work) if self._file.is_quick else None
        except (sqlite3.Error, OSError, UnicodeDecodeError):  # told, or mended, by the read that follows
            return None

    def version(self, session_id: str) -> Version | None:
        """The state that a session is in, to be compared with an earlier one; None when it cannot be told at once."""
        if self._file.mode != "wal":
            return None  # the file itself would have to be read

        def now(conn: sqlite3.Connection) -> Version:
            return self._versions.of(session_id, self._file.opened, conn.execute("PRAGMA data_version").fetchone()[0])

        try:
            seen = self._writer.look(now)
        except (sqlite3.Error, OSError):  # whoever reads the session is told
            return None
        return None if seen is None else seen[0]

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
        try:
            self._reads.close()
        finally:
            self._file.leave()

    # -- the same for plain threads ----------------------------------------------------------------------------------

    def commit_sync(self, *ops: StoreOp) -> tuple[int, ...]:
        """`commit` for a plain thread."""
        plan = Plan(ops, self._owner, self._sums, self._versions)
        self._put_blobs(plan)
        return self._writer.write_sync(plan.run)

    def load_sync(self, session_id: str, after: int = 0) -> SessionRecord | None:
        """`load` for a plain thread."""
        return self.read(lambda conn: load_session(conn, session_id, self.blobs.get, after))

    def write(self, work: Work[Answer]) -> Answer:
        """Run `work` in a transaction on the writing thread, all or nothing; it may be run twice."""
        return self._writer.write_sync(self._counted(work))

    def write_alone(self, work: Work[Answer]) -> Answer:
        """Run `work` on the writing thread outside a transaction, for statements that allow none."""
        return self._writer.write_sync(self._counted(work), alone=True)

    def read(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Run `work` here, on a read connection of its own; again, should it meet damage that could be mended."""
        try:
            with self._reads.connection() as conn:
                return work(conn)
        except StoreError as error:
            if not is_damage(error.__cause__):
                raise
            if self.salvage_if_damaged() is None:
                self.rebuild_index()  # the one part of the file that is not looked through
        with self._reads.connection() as conn:
            return work(conn)

    @property
    def queries(self) -> "SqliteQueries":
        """What `SessionDB` asks."""
        from hermes.state.sqlite.queries import SqliteQueries  # a turn does without

        return SqliteQueries(self)

    async def search(self, search: "Search") -> list[dict[str, Any]]:
        """Messages that match, as result rows."""
        return await self._reads.run(lambda: self.search_sync(search))

    def search_sync(self, search: "Search") -> list[dict[str, Any]]:
        """`search` for a plain thread."""
        from hermes.state.sqlite.search import find  # a start does not pay for it

        return self.read(lambda conn: find(conn, search, self.blobs.get))

    def index_all(self) -> int:
        """Index everything that is not indexed yet; how many messages that was."""
        from hermes.state.sqlite import search_index  # a start does not pay for it

        total = 0
        while count := self.write(lambda conn: search_index.index_batch(conn, self.blobs.get, INDEX_BATCH)[1]):
            total += count
        return total

    def salvage_if_damaged(self) -> "Salvaged | None":
        """Check the whole file; when it is damaged, keep it aside and carry over what can be read."""
        before = self.salvaged
        self._writer.write_sync(self._file.salvage_if_damaged, alone=True)
        return None if self.salvaged is before else self.salvaged

    def rebuild_index(self) -> int:
        """Make the index anew from the messages; how many it holds."""
        from hermes.state.sqlite import search_index  # a start does not pay for it

        self.write(search_index.reset)
        return self.index_all()

    def reclaim(self) -> None:
        """Give free pages back to the file system."""

        def work(conn: sqlite3.Connection) -> None:
            conn.executescript("PRAGMA incremental_vacuum")  # `execute` would take one step: one page
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        self.write_alone(work)

    def close_sync(self) -> None:
        """`close` for a plain thread; a second time does nothing."""
        if self._reads.is_closed:
            return
        self._writer.close()
        try:
            self._reads.close()
        finally:
            self._file.leave()

    @property
    def message_line(self) -> "MessageLine":
        """What waits for its turn, session by session."""
        from hermes.state.sqlite.message_line import SqliteMessageLine  # a start does not pay for it

        return SqliteMessageLine(self)

    async def in_line(self, work: "Callable[[MessageLine], Answer]") -> Answer:
        """Do `work` with the lines, for a loop: what its sessions ask for in one round is one commit."""
        from hermes.state.sqlite.message_line import within  # as above

        # Not `_counted`: a line is no part of a session's record.
        return await self._writer.write(lambda conn: work(within(conn)))

    @property
    def schedule(self) -> "ScheduleRows":
        """Jobs, their due moments, and what is to be delivered."""
        from hermes.state.sqlite.schedule_rows import SqliteScheduleRows  # a start does not pay for it

        return SqliteScheduleRows(self)

    @property
    def batch_rows(self) -> "BatchRows":
        """Batch runs and their samples."""
        from hermes.state.sqlite.batch_rows import SqliteBatchRows  # a start does not pay for it

        return SqliteBatchRows(self)

    @property
    def notes(self) -> list[str]:
        """What is unusual about this file, in words."""
        return self._file.notes

    @property
    def salvaged(self) -> "Salvaged | None":
        """Set when the file was damaged and another took its place."""
        return self._file.salvaged

    @property
    def journal_mode(self) -> JournalMode:
        """`wal`, or `delete` where that does not work."""
        return self._file.mode

    def _counted(self, work: Work[Answer]) -> Work[Answer]:
        def counted(conn: sqlite3.Connection) -> Answer:
            self._versions.wrote()
            return work(conn)

        return counted

    def _put_blobs(self, plan: Plan) -> None:
        for digest, data in plan.found.items():
            self.blobs.put(data, digest)

    def _file_now(self) -> int:
        try:
            return self.path.stat().st_ino
        except OSError as error:
            raise StoreError(f"{str(self.path)!r} cannot be read: {error.strerror}") from error

    def _read_connection(self) -> sqlite3.Connection:
        return connect(self.path, durability=self.durability, writer=False, vfs=self._vfs)
