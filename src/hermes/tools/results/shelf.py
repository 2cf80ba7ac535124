"""Large results on disk: one folder per session, one file per result, open until the session ends."""

import os
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

from hermes.errors import ToolError
from hermes.tools.calling.pool import DaemonPool

SCHEME = "hermes://result/"
MAX_RESULT_BYTES = 1 << 30
_ID = r"[A-Za-z0-9_-]{1,80}"

Result = TypeVar("Result")


class InThread(Protocol):
    """Something that runs blocking work, such as `DaemonPool.run`."""

    async def __call__(self, function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result: ...


class FileShelf:
    """`ResultShelf` over files under one folder, readable by their owner only.

    A session that comes back finds its results by the same handles.
    """

    def __init__(
        self, folder: Path, in_thread: InThread | None = None, *, clean: Callable[[bytes], bytes] | None = None
    ) -> None:
        self._folder = folder
        self._clean = clean  # takes secrets out of what is kept
        self._in_thread: InThread = in_thread or DaemonPool(size=4, name="hermes-shelf").run

    def move_to(self, folder: Path) -> None:
        """The session goes on under another id, and this is its folder now."""
        self._folder = folder

    async def put(self, name: str, data: bytes) -> str:
        sink = self.writer(name)
        try:
            await self._in_thread(sink.write, data if self._clean is None else self._clean(data))
        except BaseException:
            sink.discard()
            raise
        return await self._in_thread(sink.finish)

    async def put_file(self, name: str, path: str) -> str:
        return await self._in_thread(self._take_over, name, Path(path))

    def writer(self, name: str) -> "ResultWriter":
        """A result that is written as it arrives."""
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "result"
        return ResultWriter(self._folder, f"{stem}-{secrets.token_hex(6)}")

    async def read(self, handle: str, offset: int = 0, size: int | None = None) -> bytes:
        return await self._in_thread(_read, self.path(handle), offset, size)

    async def size(self, handle: str) -> int:
        return (await self._in_thread(self.path(handle).stat)).st_size

    def path(self, handle: str) -> Path:
        """The file behind a handle, for search; `ToolError` when this session has no such result."""
        ident = handle.removeprefix(SCHEME)
        file = self._folder / ident
        if not handle.startswith(SCHEME) or not re.fullmatch(_ID, ident) or not file.is_file():
            raise ToolError(f"no result {handle!r} in this session")
        return file

    def _take_over(self, name: str, path: Path) -> str:
        sink = self.writer(name)
        sink.write(b"")
        handle = sink.finish()
        shutil.move(path, self.path(handle))
        return handle


class ResultWriter:
    """One result on its way to disk. Bytes beyond the limit are counted and dropped, and `cut` says so."""

    def __init__(self, folder: Path, ident: str, limit_bytes: int = MAX_RESULT_BYTES) -> None:
        self._folder = folder
        self._ident = ident
        self._limit = limit_bytes
        self._file: BinaryIO | None = None
        self.total_bytes = 0
        self.kept_bytes = 0

    @property
    def cut(self) -> bool:
        return self.kept_bytes < self.total_bytes

    def write(self, data: bytes) -> None:
        """Append; blocking, so call it in a thread for more than a little."""
        if self._file is None:
            self._file = self._open()
        keep = data[: max(0, self._limit - self.kept_bytes)]
        self._file.write(keep)
        self.total_bytes += len(data)
        self.kept_bytes += len(keep)

    def finish(self) -> str:
        """Close the file and give its handle."""
        if self._file is None:
            self._file = self._open()
        self._file.close()
        (self._folder / f".{self._ident}").rename(self._folder / self._ident)
        return SCHEME + self._ident

    def discard(self) -> None:
        """Leave nothing behind."""
        if self._file is not None:
            self._file.close()
            (self._folder / f".{self._ident}").unlink(missing_ok=True)

    def _open(self) -> BinaryIO:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / f".{self._ident}"
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _read(path: Path, offset: int, size: int | None) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read() if size is None else file.read(size)
