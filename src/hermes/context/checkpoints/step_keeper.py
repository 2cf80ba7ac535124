"""Keep what calls are about to change: the files that a file tool names, and what a command leaves different."""

import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hermes.context.checkpoints.capture import InThread, read_entry, state_of
from hermes.context.checkpoints.checkpoint_paths import folder_for
from hermes.context.checkpoints.checkpoints import CONTENTS, STEPS, Checkpoints, Touch
from hermes.context.checkpoints.contents import Contents
from hermes.context.checkpoints.model import State
from hermes.context.checkpoints.records import Known
from hermes.context.checkpoints.scan import look_again
from hermes.context.checkpoints.step_log import FileStep, StepLog, name_of, path_of

MAX_FOLDER_FILES = 20_000  # of a folder that is no git work tree


class StepKeeper:
    """The steps of one session's calls. A project is looked at once; from then on only what changed is read."""

    def __init__(self, checkpoints: Checkpoints, in_thread: InThread, now: Callable[[], float]) -> None:
        self._checkpoints, self._in_thread, self._now = checkpoints, in_thread, now
        self.contents = Contents(checkpoints.folder / CONTENTS)
        self.log = StepLog(checkpoints.folder / STEPS)
        self._known: dict[str, Known] = {}  # by root: what is there, with contents that are kept somewhere
        self._begun: dict[str, list[FileStep]] = {}  # by call

    async def prepare(self, folder: str) -> None:
        """Look at the project that `folder` is in, so that the first command need not wait for it."""
        for root in await self._in_thread(self._checkpoints.roots_of, folder):
            await self._index(root)

    async def before(self, touch: Touch) -> None:
        """Keep what the call may change. `CheckpointError` when the changes of a command cannot be kept."""
        if not touch.is_command:
            steps = await self._in_thread(self._begin_edit, touch)
            await self._in_thread(self.log.add, touch.session_id, *steps)
            self._begun[touch.call_id] = steps
            return
        begun: list[FileStep] = []
        for root in self._checkpoints.roots(touch):
            await self._sync(root)
            begun.append(self._step(touch, root, {}))
        self._begun[touch.call_id] = begun

    async def after(self, touch: Touch) -> bool:
        """Write down how the call left what it changed; whether it changed anything."""
        is_changed = False
        for step in self._begun.pop(touch.call_id, ()):
            done = await self._compared(step) if touch.is_command else await self._in_thread(self._ended, step)
            if done is not None:
                await self._in_thread(self.log.add, touch.session_id, done)
                is_changed = is_changed or done.now != done.was
        return is_changed

    # -- file tools ----------------------------------------------------------------------------------------------

    def _begin_edit(self, touch: Touch) -> list[FileStep]:
        cwd = Path(os.path.realpath(touch.cwd))
        by_root: dict[Path, dict[str, State]] = {}
        for given in touch.paths:
            # The last name itself may be a link, which an edit replaces or follows: both are kept.
            spelled = Path(os.path.normpath(cwd / given))
            for path in dict.fromkeys((spelled.parent.resolve() / spelled.name, spelled.resolve())):
                root = folder_for(path, cwd, Path.home()) or _standing(path)
                entries = by_root.setdefault(root, {})
                for entry in _with_folders(root, path):
                    entries[name_of(entry)] = self._kept(os.fsencode(root), entry)
        return [self._step(touch, root, was) for root, was in by_root.items()]

    def _kept(self, root: bytes, entry: bytes) -> State:
        """The state of a path, with its content kept when it is not too large."""
        state = state_of(root, entry, self._checkpoints.limits.max_file_bytes)
        name = state.partition(" ")[2]
        if name and not name.startswith("~") and not self.contents.has(name):
            read = read_entry(root, entry)
            if read is not None:
                self.contents.put(read[1])
        return state

    def _ended(self, step: FileStep) -> FileStep | None:
        root, most = path_of(step.root), self._checkpoints.limits.max_file_bytes
        now = {path: state_of(root, path_of(path), most) for path in step.was}
        return FileStep(id=step.id, at=step.at, turn=step.turn, tool=step.tool, root=step.root, now=now)

    def _step(self, touch: Touch, root: Path, was: dict[str, State]) -> FileStep:
        return FileStep(
            id=secrets.token_hex(6),
            at=self._now(),
            turn=touch.turn_id,
            tool=touch.tool,
            text=touch.text,
            root=name_of(os.fsencode(root)),
            was=was,
        )

    # -- commands ------------------------------------------------------------------------------------------------

    async def _index(self, root: Path) -> Known:
        """What is known of a project; at first all of it is read into the store of snapshots."""
        known = self._known.get(str(root))
        if known is None:
            is_git = await self._in_thread((root / ".git").exists)
            taken = await self._checkpoints.baseline(root, None if is_git else MAX_FOLDER_FILES)
            known = Known(
                files=dict(taken.files), contents=dict(taken.contents), folders=dict(taken.folders),
                too_large=dict(taken.too_large), listed=dict(taken.listed),
            )  # fmt: skip
            self._known[str(root)] = known
        return known

    async def _sync(self, root: Path) -> None:
        """Know the project as it is now, with the contents of all that has changed since it was known."""
        known = await self._index(root)
        await self._in_thread(self._absorb, root, known)

    def _absorb(self, root: Path, known: Known) -> dict[bytes, tuple[State, State]]:
        """Take in what has changed; the states before and after of what really differs."""
        own = os.fsencode(self._checkpoints.own_home)
        top = os.fsencode(root)
        found, suspects = look_again(top, known.as_scan(), self._checkpoints.limits, own)
        if not suspects:
            known.listed = found.listed
            return {}
        before = {path: known.state(path) for path in suspects}
        known.folders, known.too_large, known.listed = found.folders, found.too_large, found.listed
        for path in suspects:
            if path.endswith(b"/") or path in found.too_large:
                continue
            read = read_entry(top, path) if path in found.files else None
            if read is None:
                found.files.pop(path, None)
                known.contents.pop(path, None)
            else:
                known.contents[path] = self.contents.put(read[1]) if known.contents.get(path) != read[0] else read[0]
        known.files = found.files
        after = {path: known.state(path) for path in suspects}
        return {path: (before[path], after[path]) for path in sorted(suspects) if before[path] != after[path]}

    async def _compared(self, step: FileStep) -> FileStep | None:
        root = Path(os.fsdecode(path_of(step.root)))
        changed: dict[bytes, Any] = await self._in_thread(self._absorb, root, await self._index(root))
        if not changed:
            return None
        was = {name_of(path): pair[0] for path, pair in changed.items()}
        now = {name_of(path): pair[1] for path, pair in changed.items()}
        return FileStep(
            id=step.id, at=step.at, turn=step.turn, tool=step.tool, text=step.text, root=step.root, was=was, now=now
        )


def _standing(path: Path) -> Path:
    """The nearest folder above a path that is there."""
    folder = path.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return folder


def _with_folders(root: Path, path: Path) -> Iterable[bytes]:
    below = os.fsencode(path.relative_to(root))
    parts = below.split(b"/")[:-1]
    return [below, *(b"/".join(parts[: count + 1]) + b"/" for count in range(len(parts)))]
