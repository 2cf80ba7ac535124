"""Large results: a session that goes on under another id opens those that were put on the shelf before."""

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes.config import paths
from hermes.errors import StoreError
from hermes.runtime.parts import Joining, Part
from hermes.tools.results.shelf import FileShelf


class LargeResults(Part):
    """Keeps the shelf where the session is."""

    limit_s = 60.0  # results are copied where the file system cannot link them

    def __init__(self, home: Path, shelf: FileShelf, in_thread: Callable[..., Awaitable[Any]]) -> None:
        self._home = home
        self._shelf = shelf
        self._in_thread = in_thread

    @classmethod
    def join(cls, agent: Joining) -> "LargeResults | None":
        shelf = agent.services.shelf
        return cls(agent.settings.home, shelf, agent.services.pool.run) if isinstance(shelf, FileShelf) else None

    @asynccontextmanager
    async def around_move(self, old: str, new: str) -> AsyncIterator[None]:
        """Before it is stored: a crash must not leave a session whose handles open nothing."""
        target = paths.results_dir(self._home, new)
        await self._in_thread(_link_all, paths.results_dir(self._home, old), target)
        try:
            yield
        except StoreError:  # a cancellation says nothing: it may be stored all the same
            await self._in_thread(shutil.rmtree, target, True)
            raise

    async def session_moved(self, old: str, new: str) -> None:
        self._shelf.move_to(paths.results_dir(self._home, new))


def _link_all(source: Path, target: Path) -> None:
    """Every finished result of one folder in the other, without copying where the file system can do that."""
    if not source.is_dir():
        return
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    for file in source.iterdir():
        if file.name.startswith(".") or (target / file.name).exists():
            continue
        try:
            os.link(file, target / file.name)
        except OSError:
            shutil.copy2(file, target / file.name)


part = LargeResults
