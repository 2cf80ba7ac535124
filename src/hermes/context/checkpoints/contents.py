"""Contents of files by the name that git would give them, each kept once. Blocking; for a thread."""

import os
import secrets
import time
import zlib
from collections.abc import Collection
from pathlib import Path

from hermes.context.checkpoints.capture import content_name

_YOUNG_S = 3_600.0  # what somebody may be about to refer to is not swept away


class Contents:
    """A folder of contents. Several processes may put and get at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """Keep `data`; its name."""
        name = content_name(data)
        file = self._file(name)
        try:
            os.utime(file)
        except FileNotFoundError:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = file.with_name(f".{name}.{secrets.token_hex(4)}")
            fresh.write_bytes(zlib.compress(data, 1))
            fresh.replace(file)
        return name

    def get(self, name: str) -> bytes | None:
        """The content of that name; None when it is not here, or no longer whole."""
        try:
            data = zlib.decompress(self._file(name).read_bytes())
        except (OSError, zlib.error):
            return None
        return data if content_name(data) == name else None

    def has(self, name: str) -> bool:
        return self._file(name).exists()

    def sweep(self, used: Collection[str]) -> int:
        """Delete what nothing refers to, and is not brand new; how many bytes that freed."""
        freed, now = 0, time.time()
        for file in self._folder.glob("??/*"):
            if file.name in used:
                continue
            info = file.stat()
            if now - info.st_mtime > _YOUNG_S:
                file.unlink(missing_ok=True)
                freed += info.st_size
        return freed

    def _file(self, name: str) -> Path:
        return self._folder / name[:2] / name
