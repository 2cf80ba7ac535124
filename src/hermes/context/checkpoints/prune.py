"""Keep the store within its limits: by count, by age, by size, and without projects that are gone."""

import os
import shutil
from pathlib import Path

import msgspec
from msgspec import Struct

from hermes.context.checkpoints.capture import InThread
from hermes.context.checkpoints.git import REFS, GitStore
from hermes.context.checkpoints.model import CheckpointLimits
from hermes.context.checkpoints.records import Records
from hermes.typed import from_json

ROWS_A_TURN = 10  # at most, on average


class House(Struct, kw_only=True):
    """When the store was last cleaned, and what has gone into it since."""

    cleaned_at: float = 0.0
    added_bytes: int = 0


class Row(Struct, frozen=True):
    """One snapshot as the pruner sees it."""

    ref: str
    key: str
    at: float
    is_turn: bool


class Pruner:
    """Drops snapshots, then what only they held."""

    def __init__(self, store: GitStore, records: Records, limits: CheckpointLimits) -> None:
        self._store = store
        self._records = records
        self._limits = limits
        self._house = store.folder.parent / "house.json"

    async def after_snapshot(self, key: str, added: int, at: float) -> None:
        """Keep the project's count, and count what was added."""
        rows = [row for row in await self._rows() if row.key == key]
        await self._drop(_surplus(rows, self._limits.max_snapshots))
        house = self._read_house()
        house.cleaned_at = house.cleaned_at or at
        house.added_bytes += added
        self._write_house(house)

    async def is_due(self, at: float, in_thread: InThread) -> bool:
        """Whether the store is over its size, or has not been cleaned for long."""
        house = self._read_house()
        if self._limits.auto_prune and at - house.cleaned_at >= self._limits.min_interval_s:
            return True
        # What was added is counted unpacked, so the disk is asked only when it could be too much.
        if house.added_bytes <= self._limits.max_total_bytes:
            return False
        house.added_bytes = await in_thread(self.size_bytes)
        self._write_house(house)
        return house.added_bytes > self._limits.max_total_bytes

    async def prune(self, limits: CheckpointLimits, at: float, in_thread: InThread) -> dict[str, int]:
        """Delete what the limits do not allow; how many snapshots and bytes that were."""
        if not self._store.exists:
            return {"snapshots": 0, "projects": 0, "bytes": 0}
        before = await in_thread(self.size_bytes)
        rows = await self._rows()
        doomed = [row for row in rows if at - row.at > limits.retention_s or self._is_orphan(row.key, limits)]
        for key in {row.key for row in rows}:
            left = [row for row in rows if row.key == key and row not in doomed]
            doomed += _surplus(left, limits.max_snapshots)
        await self._drop(doomed)
        projects = self._forget_empty({row.key for row in rows if row not in doomed})
        await self._collect()
        rows = [row for row in rows if row not in doomed]
        while rows and await in_thread(self.size_bytes) > limits.max_total_bytes:
            oldest = sorted(rows, key=lambda row: row.at)[: max(1, len(rows) // 4)]
            await self._drop(oldest)
            doomed += oldest
            rows = [row for row in rows if row not in oldest]
            projects += self._forget_empty({row.key for row in rows})
            await self._collect()
        size = await in_thread(self.size_bytes)
        self._write_house(House(cleaned_at=at, added_bytes=size))
        return {"snapshots": len(doomed), "projects": projects, "bytes": max(0, before - size)}

    def clear(self) -> None:
        """Delete everything; blocking."""
        for key in self._records.projects():
            self._records.forget(key)
        # Under another name first: of a store that a kill leaves half deleted, nothing could be read or added to.
        aside = self._store.folder.with_name("deleted")
        shutil.rmtree(aside, ignore_errors=True)  # of an earlier time
        if self._store.folder.exists():
            self._store.folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)
        self._house.unlink(missing_ok=True)

    def size_bytes(self) -> int:
        """What the store takes on disk; blocking."""
        total = 0
        for top in (self._store.folder, self._store.folder.with_name("contents")):
            for folder, _, names in os.walk(top):
                for name in names:
                    try:
                        total += Path(folder, name).lstat().st_size
                    except FileNotFoundError:
                        continue
        return total

    def _is_orphan(self, key: str, limits: CheckpointLimits) -> bool:
        project = self._records.project(key)
        return limits.delete_orphans and (project is None or project.is_orphan)

    def _forget_empty(self, living: set[str]) -> int:
        gone = [key for key in self._records.projects() if key not in living]
        for key in gone:
            self._records.forget(key)
        return len(gone)

    async def _rows(self) -> list[Row]:
        form = "%(refname)%09%(committerdate:unix)%09%(contents:subject)"
        listed = await self._store.run("for-each-ref", "--sort=refname", f"--format={form}", f"{REFS}/")
        rows = []
        for line in listed.decode().splitlines():
            ref, at, message = line.split("\t", 2)
            rows.append(Row(ref, ref.split("/")[2], float(at), '"kind": "turn"' in message))
        return rows

    async def _drop(self, rows: list[Row]) -> None:
        if rows:
            await self._store.delete([row.ref for row in rows])
            for key in {row.key for row in rows}:
                known = self._records.known(key)
                if known.seq and any(row.key == key and row.ref.endswith(f"/{known.seq:08d}") for row in rows):
                    self._records.forget_index(key)  # the tree it builds upon may be collected

    async def _collect(self) -> None:
        await self._drop_scratch()
        self._store.unlock("packed-refs", "HEAD")
        await self._store.run("reflog", "expire", "--expire=now", "--all")
        await self._store.run("gc", "--quiet", "--prune=now")

    async def _drop_scratch(self) -> None:
        listed = await self._store.run("for-each-ref", "--format=%(refname)", "refs/hermes-now/")
        await self._store.delete(listed.decode().split())

    def _read_house(self) -> House:
        try:
            return from_json(self._house.read_bytes(), House)
        except (FileNotFoundError, msgspec.DecodeError):
            return House()

    def _write_house(self, house: House) -> None:
        self._house.write_bytes(msgspec.json.encode(house))


def _surplus(rows: list[Row], most: int) -> list[Row]:
    """Which to drop when more turns have some than are kept: all before the first turn that stays."""
    turns = [place for place, row in enumerate(rows) if row.is_turn]
    first = turns[-most] if len(turns) > most else max(0, len(rows) - ROWS_A_TURN * most)
    return [row for row in rows[:first] if row is not rows[-1]]
