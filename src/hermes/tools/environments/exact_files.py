"""Files at real paths, reached by descriptors: a link that comes into a path after it was looked at is an error.

Blocking, on this machine. Whoever calls has followed every link before, and was allowed what it found.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator

from hermes.tools.environments.host_files import read_open, told

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@told
def read_exact(path: str, offset: int, size: int | None) -> bytes:
    """`size` bytes from `offset` of the file, or all that follow."""
    with _folder_of(path) as (at, name):
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=at)
        return read_open(fd, path, offset, size)


@told
def write_exact(path: str, data: bytes, mode: int | None) -> None:
    """Replace the file in one step; a new one gets the usual mode. Folders above it are made."""
    with _folder_of(path, make=True) as (at, name):
        old = _stat_at(at, name)
        if old is not None and stat.S_ISLNK(old.st_mode):
            raise OSError(errno.ELOOP, "a link has taken its place", path)
        temporary = f".{name[:80]}.{secrets.token_hex(6)}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=at)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(fd)
                os.fchmod(fd, _mode(mode, old))
                if old is not None and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()) and os.geteuid() == 0:
                    os.fchown(fd, old.st_uid, old.st_gid)
            os.replace(temporary, name, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=at)
            raise


@told
def remove_exact(path: str) -> None:
    """Delete a file, a link, or an empty folder."""
    with _folder_of(path) as (at, name):
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            os.rmdir(name, dir_fd=at)
        else:
            os.unlink(name, dir_fd=at)


@contextlib.contextmanager
def _folder_of(path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """A descriptor of the folder that a real path lies in, and its name there.

    It is walked to from the root without following a link, so what was looked at is what is touched: whoever swaps a
    folder for a link between look and write gets an error.
    """
    first, *folders, name = path.split("/") if "/" in path else ("", path)
    if first or not path.startswith("/") or name in ("", ".", "..") or ".." in folders:
        raise OSError(errno.EINVAL, "no real path", path)
    at = os.open("/", _FOLDER)
    try:
        for folder in filter(None, folders):
            try:
                inner = os.open(folder, _FOLDER, dir_fd=at)
            except FileNotFoundError:
                if not make:
                    raise
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=at)
                inner = os.open(folder, _FOLDER, dir_fd=at)
            os.close(at)
            at = inner
        yield at, name
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise OSError(error.errno, f"{error.strerror} (did a link take a folder's place?)", path) from error
        error.filename = path
        raise
    finally:
        os.close(at)


def _stat_at(at: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _mode(wanted: int | None, old: os.stat_result | None) -> int:
    if wanted is not None:
        return wanted
    if old is not None:
        return stat.S_IMODE(old.st_mode)
    umask = os.umask(0o022)
    os.umask(umask)
    return 0o666 & ~umask
