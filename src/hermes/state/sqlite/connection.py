"""How a connection to the state file is opened, and what the file system under it allows."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeAlias

from hermes.errors import StoreUnavailable
from hermes.state.stores import Durability

JournalMode: TypeAlias = Literal["wal", "delete"]

LOG_KEPT_BYTES = 16 << 20  # what a longer log is cut to, once it has been moved into the file
BUSY_TIMEOUT_MS = 30_000  # for strangers (a sqlite3 shell, a backup); our own processes stand in line

# Write-ahead logging keeps its index in shared memory, which these do not share between machines.
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs", "fuse.s3fs"}
)

_SIGNS = ("malformed", "not a database", "encrypted", "unsupported file format", "Could not decode to UTF-8")


def connect(path: Path, *, durability: Durability, writer: bool, vfs: str | None = None) -> sqlite3.Connection:
    """A connection with explicit transactions; the schema is not looked at."""
    query = f"?vfs={vfs}" if vfs else ""
    conn = sqlite3.connect(
        f"{path.absolute().as_uri()}{query}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        timeout=BUSY_TIMEOUT_MS / 1000,
    )
    if writer:
        conn.execute(f"PRAGMA synchronous = {'FULL' if durability == 'power' else 'NORMAL'}")
        conn.execute("PRAGMA wal_autocheckpoint = 0")  # it would break the seal: `WriteFile` does it
        conn.execute(f"PRAGMA journal_size_limit = {LOG_KEPT_BYTES}")
    else:
        conn.execute("PRAGMA query_only = ON")
    return conn


def copy_file(source: Path, target: Path) -> None:
    """A consistent and private copy, also while sessions are being written."""
    with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(target)) as copy:
        live.backup(copy)
    target.chmod(0o600)


def choose_journal(conn: sqlite3.Connection, file_system: str) -> tuple[JournalMode, str | None]:
    """Switch to write-ahead logging where it works; else say which mode is used and why."""
    if file_system not in NETWORK_FILE_SYSTEMS:
        if conn.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal":
            return "wal", None
        reason = "write-ahead logging does not work here"
    else:
        reason = f"{file_system} is a network file system, where write-ahead logging is unsafe"
    mode = conn.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
    if mode != "delete":
        raise StoreUnavailable(f"{reason}, and the file is in use in journal mode {mode!r} by another program")
    return "delete", f"{reason}; using a rollback journal, so reading and writing wait for each other"


def file_system_of(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of the file system that holds `folder`, or "" where the system does not tell."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        device = folder.stat().st_dev
    except OSError:
        return ""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    real = str(folder.resolve())
    best, kind = -1, ""
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 5 or not right:
            continue
        point = fields[4].replace("\\040", " ")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) > best:
            best, kind = len(point), right.split()[0]
        elif best < 0 and fields[2] == wanted:
            kind = right.split()[0]
    return kind


class DamagedFile(sqlite3.DatabaseError):
    """A look through the file found what SQLite does not notice."""


def is_damage(error: BaseException | None) -> bool:
    """Whether the file itself is bad, not the disk, the rights or a lock."""
    if isinstance(error, UnicodeDecodeError):  # bytes of the file, also where SQLite quotes them in its complaint
        return True
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    return isinstance(error, DamagedFile) or any(sign in str(error) for sign in _SIGNS)
