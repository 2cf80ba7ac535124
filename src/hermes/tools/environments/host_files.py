"""File work on this machine, blocking: the body of the local environment's file methods."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

from hermes.errors import ToolError
from hermes.seams import FileInfo

P = ParamSpec("P")
Result = TypeVar("Result")
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
Kind = Literal["file", "dir", "fifo", "device", "socket", "other"]


def told(work: Callable[P, Result]) -> Callable[P, Result]:
    """Let an `OSError` leave as a `ToolError` that names the path."""

    @wraps(work)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Result:
        try:
            return work(*args, **kwargs)
        except OSError as error:
            path = error.filename or (args[0] if args else "")
            raise ToolError(f"{path}: {error.strerror or error}") from error

    return wrapper


@told
def stat_path(path: str) -> FileInfo | None:
    """What is at `path`, or None when nothing is."""
    try:
        found = os.stat(path)  # noqa: PTH116
        is_link = os.path.islink(path)  # noqa: PTH114
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            return None
        raise
    return FileInfo(
        path=os.path.realpath(path),
        kind=kind_of(found.st_mode),
        size=found.st_size,
        mtime_ns=found.st_mtime_ns,
        mode=stat.S_IMODE(found.st_mode),
        is_link=is_link,
    )


def first_file(paths: Sequence[str]) -> int | None:
    """The place of the first of `paths` that is a file."""
    return next((place for place, path in enumerate(paths) if os.path.isfile(path)), None)  # noqa: PTH113


def kind_of(mode: int) -> Kind:
    """The kind of file that a mode says."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    if stat.S_ISFIFO(mode):
        return "fifo"
    if stat.S_ISSOCK(mode):
        return "socket"
    if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
        return "device"
    return "other"


@told
def read_path(path: str, offset: int, size: int | None) -> bytes:
    """`size` bytes from `offset`, or all that follow. A fifo is refused: reading one may wait for ever."""
    return _read(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), path, offset, size)


@told
def read_exact(path: str, offset: int, size: int | None) -> bytes:
    """The same of a real path: a link that has come into it since it was looked at is an error."""
    with _folder_of(path) as (at, name):
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=at)
        return _read(fd, path, offset, size)


def _read(fd: int, path: str, offset: int, size: int | None) -> bytes:
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        file.seek(offset)
        return file.read() if size is None else file.read(size)


@told
def write_path(path: str, data: bytes, mode: int | None) -> None:
    """Replace the file in one step. A link is followed, so that it stays one; a new file gets the usual mode."""
    _write(os.path.realpath(path), data, mode)


@told
def write_exact(path: str, data: bytes, mode: int | None) -> None:
    """The same at a real path: a link that has come into it since it was looked at is an error."""
    _write(path, data, mode)


def _write(path: str, data: bytes, mode: int | None) -> None:
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


@told
def remove_path(path: str) -> None:
    """Delete a file, a link, or an empty folder. Links in the folders above it are followed."""
    folder, name = os.path.split(path)
    _remove(f"{os.path.realpath(folder).rstrip('/')}/{name}")


@told
def remove_exact(path: str) -> None:
    """Delete a file, a link, or an empty folder in a real folder: a link that has come into the path is an error."""
    _remove(path)


def _remove(path: str) -> None:
    with _folder_of(path) as (at, name):
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            os.rmdir(name, dir_fd=at)
        else:
            os.unlink(name, dir_fd=at)


@told
def rename_path(old: str, new: str) -> None:
    """Move, replacing a file that is there; folders above `new` are made."""
    Path(new).parent.mkdir(parents=True, exist_ok=True)
    os.replace(old, new)  # noqa: PTH105


@told
def list_path(path: str) -> list[str]:
    """The names in a folder, sorted."""
    return sorted(os.listdir(path))  # noqa: PTH208


def _mode(wanted: int | None, old: os.stat_result | None) -> int:
    if wanted is not None:
        return wanted
    if old is not None:
        return stat.S_IMODE(old.st_mode)
    umask = os.umask(0o022)
    os.umask(umask)
    return 0o666 & ~umask
