"""Output of any size in bounded memory: its head, its tail, and all of it in a file once it is long."""

import logging
import os
import threading
from pathlib import Path
from typing import BinaryIO

from hermes.redact import Redactor
from hermes.tools.supervisor.keeper.clean_text import CleanText

log = logging.getLogger(__name__)

MEMORY_BYTES = 1 << 20
HEAD_SHARE = 0.4
DISK_BYTES = 256 << 20
_PIECE_BYTES = 64 << 10  # cleaned at a time: it takes twenty times as much while it works


class Spool:
    """Takes bytes; keeps everything up to `memory_bytes`, and beyond that the first 40 % and the last 60 % of it.

    From there on the whole goes to a file in `folder`, up to `disk_bytes` and without the secrets that `redactor`
    knows: hidden as they come, so that a flood costs its own time and not the caller's. Writing may block: see
    `wants_disk`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        memory_bytes: int = MEMORY_BYTES,
        disk_bytes: int = DISK_BYTES,
        redactor: Redactor | None = None,
    ) -> None:
        self.total_bytes = 0
        self._folder = folder
        self._clean = CleanText(redactor.known) if redactor is not None and redactor.is_on else None
        self._lock = threading.Lock()  # guards all below: an `add` that nobody waits for any more goes on in its thread
        self._limit = memory_bytes
        self._disk_left = disk_bytes
        self._head = bytearray()
        self._tail: bytearray | None = None  # None while everything fits
        self._file: BinaryIO | None = None
        self.path: Path | None = None

    @property
    def wants_disk(self) -> bool:
        """Whether the next bytes may go to disk, so that `add` belongs in a thread."""
        return self._tail is not None and self._disk_left > 0

    def add(self, data: bytes) -> None:
        with self._lock:
            self._add(data)

    def _add(self, data: bytes) -> None:
        self.total_bytes += len(data)
        if self._tail is None:
            self._head += data
            if len(self._head) <= self._limit:
                return
            data = bytes(self._head)
            at = int(self._limit * HEAD_SHARE)
            self._tail = self._head[at:]
            del self._head[at:]
        else:
            self._tail += data
        room = self._limit - len(self._head)
        if len(self._tail) > 2 * room:  # trimmed in steps, so that a flood of small chunks is not copied each time
            del self._tail[:-room]
        self._to_disk(data)

    def finish(self) -> bytes:
        """What is shown: everything, or head, a line that says how much was left out, and tail."""
        with self._lock:
            return self._finish()

    def _finish(self) -> bytes:
        if self._file is not None:
            try:
                if self._clean is not None:
                    self._file.write(self._clean.rest())
                self._file.close()
            except OSError as error:
                log.warning("the output is not kept whole: %s", error)
                self._drop_file()
        if self._tail is None:
            return bytes(self._head)
        room = self._limit - len(self._head)
        del self._tail[:-room]
        left_out = self.total_bytes - len(self._head) - len(self._tail)
        return b"".join((self._head, f"\n[... {left_out} bytes left out ...]\n".encode(), self._tail))

    def _to_disk(self, data: bytes) -> None:
        """Keep `data` in the file. A disk that takes no more costs the whole, never what is shown."""
        if self._disk_left <= 0:
            return
        try:
            self._write(data)
        except OSError as error:
            log.warning("the output is not kept whole: %s", error)
            self._disk_left = 0
            self._drop_file()

    def _drop_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self.path = None

    def _write(self, data: bytes) -> None:
        if self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path = self._folder / f"output-{os.urandom(6).hex()}"
            self._file = self.path.open("xb", buffering=0)
        kept = data[: self._disk_left]
        self._disk_left -= len(data)
        if self._clean is None:
            self._file.write(kept)
            return
        for start in range(0, len(kept), _PIECE_BYTES):
            self._file.write(self._clean.add(kept[start : start + _PIECE_BYTES]))
