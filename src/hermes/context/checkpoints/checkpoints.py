"""`Checkpoints`: snapshots before the agent changes files, and the way back that leaves the user's own work alone."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hermes.config import paths
from hermes.context.checkpoints.capture import Capture, InThread, Meta, parse_meta, state_of, states
from hermes.context.checkpoints.checkpoint_paths import folder_for, is_folder_of_work, project_key, root_of
from hermes.context.checkpoints.contents import Contents
from hermes.context.checkpoints.git import REFS, GitStore
from hermes.context.checkpoints.model import (
    ABSENT,
    CheckpointError,
    CheckpointLimits,
    Reason,
    Restored,
    Snapshot,
    State,
)
from hermes.context.checkpoints.prune import Pruner
from hermes.context.checkpoints.records import Known, Ledger, Project, Records, locked
from hermes.context.checkpoints.restore import RestorePlan, Restorer, differing, is_within
from hermes.context.checkpoints.scan import Scan, look
from hermes.context.checkpoints.step_log import StepLog
from hermes.seams import Supervisor

_HASH = re.compile(r"[0-9a-f]{4,64}")
_NOW = "refs/hermes-now"
STEPS, CONTENTS = "steps", "contents"
_SHORTSTAT = re.compile(rb"(\d+) (file|insertion|deletion)")


class Touch(Struct, frozen=True, kw_only=True):
    """A call that may change files. `paths` are those it names; a command names the folder it runs in."""

    call_id: str
    turn_id: str
    session_id: str
    tool: str
    paths: tuple[str, ...]
    cwd: str
    text: str = ""  # what is done, for the list
    is_command: bool = False  # may touch anything in the project
    is_destructive: bool = False  # always worth a snapshot of its own


class Checkpoints:
    """All checkpoints of a `HERMES_HOME`. Safe for several sessions and processes at once; `close` is not needed."""

    def __init__(
        self,
        home: Path,
        supervisor: Supervisor,
        in_thread: InThread,
        limits: CheckpointLimits,
        now: Callable[[], float],
    ) -> None:
        self.own_home = Path(os.path.realpath(home))  # what the runtime itself writes: never in a snapshot
        self.folder = folder = paths.checkpoints_dir(self.own_home)
        self.store = GitStore(folder / "store", supervisor)
        self.records = Records(folder / "projects")
        self.limits = limits
        self._in_thread = in_thread
        self._now = now
        self._user_home = Path.home()
        self._taken: dict[str, str] = {}  # by project: the last turn that has its snapshot
        self._before: dict[str, list[tuple[Path, Scan]]] = {}  # by call: what was there when it began
        self._locks: dict[str, asyncio.Lock] = {}
        self._store_lock = folder / "store.lock"
        self._pruner = Pruner(self.store, self.records, limits)

    # -- around a call -------------------------------------------------------------------------------------------

    async def before(self, touch: Touch) -> tuple[Snapshot, ...]:
        """Take the snapshots that the call calls for: one per project and turn, and one before what destroys."""
        taken: list[Snapshot] = []
        for root in self.roots(touch):
            key = project_key(root)
            async with self._project(key):
                is_first = self._taken.get(key) != touch.turn_id
                if is_first or touch.is_destructive:
                    kind: Reason = "turn" if is_first else "command"
                    facts = {"session": touch.session_id, "turn": touch.turn_id}
                    found = await self._take(root, key, f"{touch.tool}: {touch.text}", kind, facts)
                    self._taken[key] = touch.turn_id
                    taken += [found] if found else []
                if touch.is_command:
                    known = (await self._in_thread(self.records.known, key)).as_scan()
                    self._before.setdefault(touch.call_id, []).append((root, await self._look(root, known)))
        if taken and await self._pruner.is_due(self._now(), self._in_thread):
            await self.prune()
        return tuple(taken)

    async def after(self, touch: Touch, files: Iterable[str] = ()) -> None:
        """Write down how the call left what it changed; `files` are paths it says it has changed."""
        for root, was in self._before.pop(touch.call_id, ()):
            await self._note(root, _changed(was, await self._look(root, was)))
        if touch.is_command:
            return
        named = _resolved(touch.cwd, (*touch.paths, *files))
        for root in self.roots(touch):
            inside = [path for path in named if root in path.parents]
            await self._note(root, {each for path in inside for each in _with_folders(root, path)})

    # -- looking and going back ----------------------------------------------------------------------------------

    async def diff(self, folder: str, which: str) -> str:
        """What has changed since a snapshot, as a unified diff from it to now."""
        root = self.root(folder)
        key = project_key(root)
        async with self._project(key):
            snapshot = await self._find(key, str(root), which)
            now = await self._captured(root, key, f"{_NOW}/{key}")
            said = await self.store.run(
                "diff-tree",
                "-p",
                "-M",
                "--no-ext-diff",
                "--no-textconv",
                "--no-color",
                "--src-prefix=a/",
                "--dst-prefix=b/",
                "--relative=files/",
                snapshot.hash,
                now.tree,
            )
        return said.decode("utf-8", "replace")

    async def restore(self, folder: str, which: str, file: str | None = None, *, force: bool = False) -> Restored:
        """Put the project, or one file or folder of it, back to a snapshot.

        A snapshot is taken first. Paths that the user has changed since are kept and told, unless `force`.
        """
        root = self.root(folder)
        key = project_key(root)
        only = None if file is None else _inside(root, folder, file)
        async with self._project(key):
            snapshot = await self._find(key, str(root), which)
            then, meta = await self._content(snapshot)
            if only is not None and not any(is_within(path, only) for path in {*then, *meta.too_large}):
                await self._in_thread(_require, root / os.fsdecode(only))
            undo = await self._take(root, key, f"before going back to {snapshot.short_hash}", "rollback", {})
            plan = await self._plan(key, snapshot, (then, meta), only, force=force)
            worker = Restorer(os.fsencode(root), plan, self.limits.max_file_bytes)
            await self._carry_out(worker, plan)
            ledger = self.records.ledger(key)
            for path in worker.done:
                ledger.agent[path] = plan.then.get(path, ABSENT)
            await self._in_thread(self.records.keep_ledger, key, ledger)
        return Restored(
            restored_to=snapshot.hash,
            reason=snapshot.reason,
            directory=str(root),
            restored=_shown(worker.done),
            kept=_shown(plan.kept),
            not_in_snapshot=_shown(plan.left_out),
            undo=undo.hash if undo else self.records.known(key).commit,
        )

    def root(self, folder: str) -> Path:
        """The folder that is covered when somebody works in `folder`."""
        here = Path(os.path.realpath(folder))
        found = root_of(here, self._user_home)
        if found is not None:
            return found
        if not is_folder_of_work(here, self._user_home):
            raise CheckpointError(f"no snapshots are taken of {str(here)!r}; go to a project's folder")
        return here

    def roots_of(self, folder: str) -> list[Path]:
        """The folder that is covered when commands run in `folder`; none where that makes no sense."""
        return self.roots(Touch(call_id="", turn_id="", session_id="", tool="", paths=(), cwd=folder, is_command=True))

    async def baseline(self, root: Path, max_files: int | None) -> Known:
        """All of a project in the store, as it is now. `CheckpointError` when it has more files than that."""
        key = project_key(root)
        limits = self.limits if max_files is None else replace(self.limits, max_files=max_files)
        if await self._pruner.is_due(self._now(), self._in_thread):
            await self.prune()
        async with self._project(key):
            await self._take(root, key, "as it was found", "found", {}, limits)
            known: Known = await self._in_thread(self.records.known, key)
            return known

    # -- keeping house -------------------------------------------------------------------------------------------

    async def status(self) -> dict[str, Any]:
        """How much there is, project by project."""
        projects = []
        for key in self.records.projects():
            known = self.records.project(key)
            if known is not None:
                found = await self._snapshots(key, known.root)
                projects.append(
                    {
                        "directory": known.root,
                        "snapshots": len(found),
                        "newest": found[0].timestamp if found else None,
                        "is_orphan": known.is_orphan,
                    }
                )
        size = await self._in_thread(self._pruner.size_bytes)
        return {"folder": str(self.folder), "size_bytes": size, "projects": projects}

    async def every(self) -> list[Snapshot]:
        """All snapshots of all projects, newest first."""
        found: list[Snapshot] = []
        for key in self.records.projects():
            known = self.records.project(key)
            found += await self._snapshots(key, known.root) if known else []
        return sorted(found, key=lambda one: -one.timestamp)

    async def prune(self, limits: CheckpointLimits | None = None) -> dict[str, int]:
        """Delete what is too old, too much or without its folder; how many snapshots and bytes that freed."""
        async with locked(self._store_lock):
            freed = await self._pruner.prune(limits or self.limits, self._now(), self._in_thread)
            freed["bytes"] += await self._in_thread(self._sweep, limits or self.limits)
            return freed

    def _sweep(self, limits: CheckpointLimits) -> int:
        """Drop the steps of old turns, and the contents that nothing refers to any more."""
        used = StepLog(self.folder / STEPS).prune(limits.max_snapshots, self._now() - limits.retention_s)
        return Contents(self.folder / CONTENTS).sweep(used)

    async def clear(self) -> None:
        """Delete every snapshot there is."""
        async with locked(self._store_lock):
            await self._in_thread(self._pruner.clear)
            for name in (STEPS, CONTENTS):
                await self._in_thread(shutil.rmtree, self.folder / name, True)

    # -- within --------------------------------------------------------------------------------------------------

    def roots(self, touch: Touch) -> list[Path]:
        """The folders that are covered for a call."""
        cwd = Path(os.path.realpath(touch.cwd))
        touched = _resolved(touch.cwd, touch.paths) or [cwd]
        # A command may reach anywhere; beyond the folder it runs in, only projects are worth a look.
        only = touch.is_command
        found = (folder_for(path, cwd, self._user_home, projects_only=only and path != cwd) for path in touched)
        own = self.own_home
        return list(dict.fromkeys(root for root in found if root and root != own and own not in root.parents))

    @asynccontextmanager
    async def _project(self, key: str) -> AsyncIterator[None]:
        """The project to itself, and the store safe from cleaning."""
        here = self._locks.setdefault(key, asyncio.Lock())  # guards the project against this process's other calls
        async with here, locked(self._store_lock, shared=True), locked(self.records.lock_file(key)):
            yield

    async def _look(self, root: Path, was: Scan) -> Scan:
        own = os.fsencode(self.own_home)
        found: Scan = await self._in_thread(look, os.fsencode(root), was, self.limits, own)
        return found

    async def _take(
        self,
        root: Path,
        key: str,
        reason: str,
        kind: Reason,
        facts: dict[str, str],
        limits: CheckpointLimits | None = None,
    ) -> Snapshot | None:
        """A new snapshot, or None when the newest one still holds."""
        await self.store.make()
        known = await self._in_thread(self.records.known, key)
        seq = known.seq + 1 if known.seq else await self._next_seq(key)
        at = self._now()
        message = json.dumps({"reason": reason[:200], "kind": kind, **facts})
        ref = f"{REFS}/{key}/{seq:08d}"
        capture = Capture(root, known, limits or self.limits, self._in_thread)
        now = await capture.into(self.store, ref, message, at, os.fsencode(self.own_home))
        if now is None:
            if capture.is_fresher:
                await self._in_thread(self.records.keep_known, key, known)
            return None
        now.seq = seq
        await self._in_thread(self._learn, key, known, now, capture.changed)
        await self._in_thread(self.records.keep_project, key, Project(root=str(root), used_at=at))
        await self._pruner.after_snapshot(key, capture.bytes_added, at)
        return _snapshot(1, [str(seq), now.commit, str(int(at)), message], str(root))

    def _learn(self, key: str, known: Known, now: Known, changed: set[bytes]) -> None:
        """Keep the new index, and note which of the changes since the last one were not the agent's."""
        if known.tree:
            ledger = self.records.ledger(key)
            strange = [path for path in changed if ledger.agent.get(path) != now.state(path)]
            if strange:
                ledger.user.update((path, now.seq) for path in strange)
                self.records.keep_ledger(key, ledger)
        self.records.keep_known(key, now)

    async def _captured(self, root: Path, key: str, ref: str) -> Known:
        """What is there now, in the store but on no list."""
        known = await self._in_thread(self.records.known, key)
        capture = Capture(root, known, self.limits, self._in_thread)
        now = await capture.into(self.store, ref, "{}", self._now(), os.fsencode(self.own_home))
        return now or known

    async def _next_seq(self, key: str) -> int:
        listed = await self.store.run("for-each-ref", "--format=%(refname:lstrip=3)", f"{REFS}/{key}/")
        return max((int(line) for line in listed.split()), default=0) + 1

    async def _snapshots(self, key: str, root: str) -> list[Snapshot]:
        if not self.store.exists:
            return []
        form = "%(refname:lstrip=3)%09%(objectname)%09%(committerdate:unix)%09%(contents:subject)"
        listed = await self.store.run("for-each-ref", "--sort=-refname", f"--format={form}", f"{REFS}/{key}/")
        lines = [line for line in listed.decode().splitlines() if '"kind": "found"' not in line]
        return [_snapshot(number, line.split("\t", 3), root) for number, line in enumerate(lines, 1)]

    async def _find(self, key: str, root: str, which: str) -> Snapshot:
        found = await self._snapshots(key, root)
        if which.isdecimal() and len(which) < 4:
            if 1 <= int(which) <= len(found):
                return found[int(which) - 1]
        elif _HASH.fullmatch(which.lower()):
            fitting = [one for one in found if one.hash.startswith(which.lower())]
            if len(fitting) == 1:
                return fitting[0]
        raise CheckpointError(f"there is no snapshot {which!r} of {root!r}; it has {len(found)}")

    async def _content(self, snapshot: Snapshot) -> tuple[dict[bytes, State], Meta]:
        """Every path of a snapshot with its state, and what git does not keep of them."""
        listing = await self.store.run("ls-tree", "-r", "-z", "--full-tree", snapshot.hash)
        meta = parse_meta(await self.store.run("cat-file", "blob", f"{snapshot.hash}:meta"))
        return states(listing, meta), meta

    async def _plan(
        self, key: str, snapshot: Snapshot, content: tuple[dict[bytes, State], Meta], only: bytes | None, *, force: bool
    ) -> RestorePlan:
        known = await self._in_thread(self.records.known, key)
        now = {path: known.state(path) for path in known.paths()}
        then, meta = content
        plan = RestorePlan(now=now, then=then)
        ledger = await self._in_thread(self.records.ledger, key)
        for path in differing(now, {**dict.fromkeys(meta.too_large, "too large to be kept"), **plan.then}, only):
            if path in meta.too_large:
                plan.left_out.append(path)
            elif not force and ledger.is_users(path, now.get(path, ABSENT), snapshot.seq):
                plan.kept.append(path)
            else:
                plan.todo.append(path)
        if only is not None:
            plan.todo += [each for each in _folders_above(only) if plan.then.get(each) and each not in now]
        return plan

    async def _carry_out(self, worker: Restorer, plan: RestorePlan) -> None:
        await self._in_thread(worker.clear_way)
        await self._in_thread(worker.make_folders)
        async for content, data in self.store.blobs(plan.contents):
            await self._in_thread(worker.write, content, data)
        await self._in_thread(worker.set_modes)

    async def _note(self, root: Path, changed: set[bytes]) -> None:
        """The agent has left these paths as they are now."""
        if not changed:
            return
        key = project_key(root)

        def write() -> None:
            ledger: Ledger = self.records.ledger(key)
            for path in changed:
                ledger.agent[path] = state_of(os.fsencode(root), path, self.limits.max_file_bytes)
            self.records.keep_ledger(key, ledger)

        async with self._project(key):
            await self._in_thread(write)

    # Last in the class: its name hides the type of that name from what follows.
    async def list(self, folder: str) -> list[Snapshot]:
        """The snapshots of the project that `folder` is in, newest first, with what going back would change."""
        root = self.root(folder)
        key = project_key(root)
        found = await self._snapshots(key, str(root))
        if not found:
            return found
        try:
            async with self._project(key):
                now = await self._captured(root, key, f"{_NOW}/{key}")
        except CheckpointError:  # such as a project that has grown too large; `restore` says so
            return found
        for place, one in enumerate(found):
            said = await self.store.run("diff-tree", "--shortstat", now.tree, one.hash, "--", "files")
            found[place] = _with_stat(one, said)
        return found


def _resolved(cwd: str, paths: Iterable[str]) -> list[Path]:
    return list(dict.fromkeys(Path(os.path.realpath(Path(cwd) / path)) for path in paths))


def _changed(was: Scan, now: Scan) -> set[bytes]:
    """The paths that differ between two looks."""
    changed: set[bytes] = set()
    for old, new in ((was.files, now.files), (was.too_large, now.too_large), (was.folders, now.folders)):
        pairs: tuple[dict[bytes, Any], dict[bytes, Any]] = (old, new)
        changed |= {path for path in {*pairs[0], *pairs[1]} if pairs[0].get(path) != pairs[1].get(path)}
    return changed


def _with_folders(root: Path, path: Path) -> list[bytes]:
    """The path and the folders between it and the root, as entries."""
    below = os.fsencode(path.relative_to(root))
    return [below, *_folders_above(below)]


def _folders_above(path: bytes) -> list[bytes]:
    parts = path.rstrip(b"/").split(b"/")[:-1]
    return [b"/".join(parts[: count + 1]) + b"/" for count in range(len(parts))]


def _inside(root: Path, folder: str, file: str) -> bytes:
    """A path of the user's as an entry of the project."""
    full = Path(os.path.normpath(Path(os.path.realpath(folder)) / file))
    if root not in full.parents:
        raise CheckpointError(f"{file!r} is not in {str(root)!r}")
    return os.fsencode(full.relative_to(root))


def _require(path: Path) -> None:
    if not os.path.lexists(path):
        raise CheckpointError(f"{str(path)!r} is neither there nor in the snapshot; list what is with /rollback diff")


def _snapshot(number: int, row: list[str], root: str) -> Snapshot:
    seq, commit, at, message = row
    facts = json.loads(message)
    return Snapshot(
        number=number,
        seq=int(seq),
        hash=commit,
        timestamp=float(at),
        reason=facts["reason"],
        kind=facts["kind"],
        directory=root,
        session_id=facts.get("session", ""),
        turn_id=facts.get("turn", ""),
    )


def _with_stat(snapshot: Snapshot, said: bytes) -> Snapshot:
    counts = {kind: int(number) for number, kind in _SHORTSTAT.findall(said)}
    return replace(
        snapshot,
        files_changed=counts.get(b"file", 0),
        insertions=counts.get(b"insertion", 0),
        deletions=counts.get(b"deletion", 0),
    )


def _shown(paths: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(os.fsdecode(path) for path in sorted(set(paths)))
