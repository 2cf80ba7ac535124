"""Bytes by content, one file each beside the database: `<db>-blobs/ab/<sha256>`."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from hermes.disk_trouble import reason_of
from hermes.errors import StoreError
from hermes.state.codec import sha256

GRACE_S = 600.0
UNUSED_S = 7 * 86_400.0  # results that a tool keeps for its session have no row of their own


class BlobFolder:
    """Content-addressed files. A blob is complete under its name or not there at all."""

    def __init__(self, root: Path, *, synced: bool = True) -> None:
        self.root = root
        self.grace_s = GRACE_S
        self._synced = synced

    def put(self, data: bytes, digest: str | None = None) -> str:
        """Keep `data`; return its digest. Safe from any thread or process."""
        digest = digest or sha256(data)
        path = self._path(digest)
        try:
            # A wrong size is a torn file (a crash without power-safe writes): written anew.
            if path.stat().st_size == len(data):
                os.utime(path)  # young again, so that `sweep` spares it until its row is committed
                return digest
        except FileNotFoundError:
            pass
        try:
            self._write(path, data)
        except OSError as error:
            raise StoreError(f"cannot store {len(data)} bytes at {str(path)!r}: {reason_of(error)}") from error
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes of `digest`, checked; `StoreError` when they are gone or damaged."""
        try:
            data = self._path(digest).read_bytes()
        except OSError as error:
            raise StoreError(f"blob {digest} cannot be read: {error.strerror}") from error
        if sha256(data) != digest:
            raise StoreError(f"blob {digest} is damaged: its bytes do not match its name")
        return data

    def remove(self, digest: str) -> int:
        """Delete one blob that no row refers to; the bytes that became free.

        A young one stays: a commit that is under way may be about to refer to it. `sweep` comes back for it.
        """
        return _unlink_older(self._path(digest), self.grace_s)

    def sweep(self, used: Callable[[str], bool], unused_s: float = UNUSED_S) -> int:
        """Delete what nobody refers to and has not been touched for long, and leftovers of interrupted writes."""
        freed = 0
        for path in self.files():
            if path.name.endswith(".tmp"):
                freed += _unlink_older(path, self.grace_s)
            elif not path.suffix and not used(path.name):
                freed += _unlink_older(path, unused_s)
        return freed

    def set_aside(self, digest: str) -> None:
        """Rename a damaged blob, so that the next `put` of its content writes it anew."""
        path = self._path(digest)
        if path.exists():
            path.replace(path.with_name(f"{digest}.damaged"))

    def files(self) -> Iterator[Path]:
        """Every file in the folder, also leftovers of interrupted writes."""
        if self.root.is_dir():
            yield from (path for path in self.root.glob("??/*") if path.is_file())

    def _path(self, digest: str) -> Path:
        if len(digest) != 64 or not digest.isalnum():
            raise StoreError(f"{digest!r} is not a sha256 in hex")
        return self.root / digest[:2] / digest

    def _write(self, path: Path, data: bytes) -> None:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._synced:
                _sync_folder(self.root)
        unfinished = path.with_name(f"{path.name}.{os.urandom(8).hex()}.tmp")
        try:
            with open(unfinished, "xb", opener=_private) as file:
                file.write(data)
                file.flush()
                if self._synced:
                    os.fsync(file.fileno())
            unfinished.replace(path)
        except OSError:
            with contextlib.suppress(OSError):  # the first error is the one to tell
                unfinished.unlink(missing_ok=True)
            raise
        if self._synced:
            _sync_folder(path.parent)


def _unlink_older(path: Path, age_s: float) -> int:
    try:
        stat = path.stat()
        if stat.st_mtime > time.time() - age_s:
            return 0
        path.unlink()
    except FileNotFoundError:
        return 0
    return stat.st_size


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
