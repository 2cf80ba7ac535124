"""File work on this machine, blocking: the body of the local environment's file methods."""

import errno
import os
import stat
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

from hermes.errors import ToolError
from hermes.seams import FileInfo

P = ParamSpec("P")
Result = TypeVar("Result")
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
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    return read_open(fd, path, offset, size)


def read_open(fd: int, path: str, offset: int, size: int | None) -> bytes:
    """What an open file holds; the descriptor is closed."""
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        file.seek(offset)
        return file.read() if size is None else file.read(size)


@told
def write_path(path: str, data: bytes, mode: int | None) -> None:
    """Replace the file in one step. A link is followed, so that it stays one; a new file gets the usual mode."""
    from hermes.tools.environments import exact_files  # paid by the first write

    exact_files.write_exact(os.path.realpath(path), data, mode)


@told
def remove_path(path: str) -> None:
    """Delete a file, a link, or an empty folder. Links in the folders above it are followed."""
    folder, name = os.path.split(path)
    from hermes.tools.environments import exact_files  # paid by the first write

    exact_files.remove_exact(f"{os.path.realpath(folder).rstrip('/')}/{name}")


@told
def rename_path(old: str, new: str) -> None:
    """Move, replacing a file that is there; folders above `new` are made."""
    Path(new).parent.mkdir(parents=True, exist_ok=True)
    os.replace(old, new)  # noqa: PTH105


@told
def list_path(path: str) -> list[str]:
    """The names in a folder, sorted."""
    return sorted(os.listdir(path))  # noqa: PTH208
