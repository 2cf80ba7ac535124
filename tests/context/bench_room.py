"""A project and its checkpoints, with real files, real git and a clock that is moved by hand."""

import os
import stat
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes.context.checkpoints import CheckpointLimits, Checkpoints, Touch
from hermes.tools.calling.pool import DaemonPool
from hermes.tools.supervisor.supervisor import ProcessSupervisor


@dataclass
class Bench:
    """What a test works with."""

    root: Path
    checkpoints: Checkpoints
    now: list[float]
    turn: int = 1
    calls: int = 0
    seen: list[str] = field(default_factory=list)

    async def edit(self, change: Callable[[], Any], *paths: str) -> None:
        """The agent changes files it names, as `write_file` and `patch` do."""
        await self._call(change, Touch(**self._facts("write_file"), paths=paths, text=" ".join(paths)))

    async def command(self, script: str, *, destructive: bool = False) -> None:
        """The agent runs a command."""
        touch = Touch(**self._facts("terminal"), paths=(), text=script, is_command=True, is_destructive=destructive)
        await self._call(lambda: self.shell(script), touch)

    async def _call(self, change: Callable[[], Any], touch: Touch) -> None:
        await self.checkpoints.before(touch)
        change()
        await self.checkpoints.after(touch)

    def new_turn(self) -> None:
        self.turn += 1
        self.now[0] += 60

    def shell(self, script: str) -> None:
        subprocess.run(["/bin/bash", "-ec", script], cwd=self.root, check=True, timeout=60)

    async def restore(self, which: str = "1", file: str | None = None, **more: Any) -> Any:
        return await self.checkpoints.restore(str(self.root), which, file, **more)

    async def numbers(self) -> list[str]:
        return [one.reason for one in await self.checkpoints.list(str(self.root))]

    def _facts(self, tool: str) -> dict[str, Any]:
        self.calls += 1
        return {
            "call_id": f"c{self.calls}",
            "turn_id": f"t{self.turn}",
            "session_id": "s1",
            "tool": tool,
            "cwd": str(self.root),
        }


@asynccontextmanager
async def bench(folder: Path, limits: CheckpointLimits | None = None) -> AsyncIterator[Bench]:
    """A small project with its checkpoints."""
    root = folder / "project"
    root.mkdir()
    (root / "pyproject.toml").write_text("[project]\n")
    supervisor, pool, now = ProcessSupervisor(), DaemonPool(), [1_700_000_000.0]
    made = Checkpoints(folder / "hermes", supervisor, pool.run, limits or CheckpointLimits(), lambda: now[0])
    try:
        yield Bench(root, made, now)
    finally:
        await supervisor.close()
        pool.close()


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below `root` but its own git: mode, and content or where a link leads."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(root.rglob("*")):
        below = str(path.relative_to(root))
        if below == ".git" or below.startswith(".git/"):
            continue
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            found[below] = (mode, os.fsencode(os.readlink(path)))
        elif stat.S_ISREG(mode):
            found[below] = (mode, path.read_bytes())
        else:
            found[below] = (mode, b"")
    return found
