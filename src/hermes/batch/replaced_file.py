"""Files that take the place of others only when all of them is written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hermes.disk_trouble import reason_of
from hermes.errors import UserError


@contextmanager
def replaced(file: Path, *, is_synced: bool = True) -> "Iterator[IO[bytes]]":
    """A file that takes the place of `file` when all of it is written; `is_synced` also survives the loss of power."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    with disk_told(file):
        try:
            with beside.open("wb") as out:
                yield out
                if is_synced:
                    out.flush()
                    os.fsync(out.fileno())
            beside.replace(file)
        finally:
            beside.unlink(missing_ok=True)


@contextmanager
def disk_told(file: Path) -> Iterator[Path]:
    """Trouble with the disk as a `UserError` that names `file`."""
    try:
        yield file
    except OSError as error:
        raise UserError(f"cannot write {str(file)!r}: {reason_of(error)}") from error
