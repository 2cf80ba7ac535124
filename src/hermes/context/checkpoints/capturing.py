"""Bring what changed in a project into the store. Costs what the change costs; without one, nothing is started."""

import hashlib
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

from hermes.context.checkpoints.git import GitStore, Import
from hermes.context.checkpoints.metadata import FILES, META, git_mode, meta_of
from hermes.context.checkpoints.model import CheckpointError, Limits, Sig, State
from hermes.context.checkpoints.records import Known, large_state
from hermes.context.checkpoints.scanning import Scan, look

InThread: TypeAlias = Callable[..., Awaitable[Any]]
_BATCH_FILES = 200
_BATCH_BYTES = 16_000_000


class Capture:
    """Takes one project from what is known of it to what is there now."""

    def __init__(self, root: Path, known: Known, limits: Limits, in_thread: InThread) -> None:
        self._root = os.fsencode(root)
        self._known = known
        self._limits = limits
        self._in_thread = in_thread
        self.changed: set[bytes] = set()  # paths whose state differs from the one known
        self.bytes_added = 0
        self.is_fresher = False  # nothing changed, but the index has newer signatures that are worth keeping
        self._removed: set[bytes] = set()

    async def into(self, store: GitStore, ref: str, message: str, at: float, own_home: bytes) -> Known | None:
        """The new state of knowledge with `ref` on it, or None when nothing has changed."""
        found: Scan = await self._in_thread(look, self._root, self._known.as_scan(), self._limits, own_home)
        if self._known.tree and found.same_as(self._known.as_scan()):
            self._known.listed = found.listed
            return None
        now, suspects = self._carried(found)
        one: Import | None = None
        try:
            for batch in _batches(suspects, found):
                for path, read in (await self._in_thread(self._read, batch)).items():
                    if (
                        read is None
                    ):  # gone, or changing under our eyes: as if it were not there, and read again next time
                        now.files.pop(path, None)
                        now.contents.pop(path, None)
                        continue
                    content, data = read
                    now.contents[path] = content
                    sig = now.files[path]
                    if self._known.state(path) == f"{sig[3]:o} {content}":
                        continue
                    self.changed.add(path)
                    if self._known.contents.get(path) == content and git_mode(self._known.files[path][3]) == git_mode(
                        sig[3]
                    ):
                        continue  # only its exact mode is another, and that is in the meta text
                    one = one or await self._begin(store, ref, message, at)
                    await one.put(FILES + path, git_mode(sig[3]), data)
                    self.bytes_added += len(data)
            now.meta = meta_of(Scan(now.files, now.folders, now.too_large))
            self._compare(now)
            gone = self._known.files.keys() - now.files.keys()
            if not (one or gone or now.meta != self._known.meta or not self._known.tree):
                self._known.files, self._known.folders = now.files, now.folders
                self._known.too_large, self._known.listed = now.too_large, now.listed
                self.is_fresher = True
                return None
            one = one or await self._begin(store, ref, message, at)
            for path in sorted(gone - self._removed):
                await one.remove(FILES + path)
            await one.put(META, "100644", now.meta)
            await one.finish()
        except BaseException:
            if one is not None:
                one.discard()
            raise
        named = (await store.run("rev-parse", ref, f"{ref}^{{tree}}")).decode().split()
        now.commit, now.tree = named
        return now

    async def _begin(self, store: GitStore, ref: str, message: str, at: float) -> Import:
        one = await Import.begin(store, ref, message, at, self._known.tree)
        for path in sorted(self._removed):
            await one.remove(FILES + path)
        return one

    def _carried(self, found: Scan) -> tuple[Known, list[bytes]]:
        """What of the old knowledge still holds, and the files that must be read."""
        known = self._known
        self._removed = set(known.files.keys() - found.files.keys())
        now = Known(
            files=dict(found.files),
            folders=found.folders,
            too_large=found.too_large,
            listed=found.listed,
            seq=known.seq,
        )
        suspects = []
        for path, sig in found.files.items():
            if known.files.get(path) == sig:
                now.contents[path] = known.contents[path]
            else:
                suspects.append(path)
        return now, suspects

    def _compare(self, now: Known) -> None:
        """Complete `changed` with what is gone, with folders, and with files that are not kept."""
        known = self._known
        self.changed |= known.files.keys() - now.files.keys()
        others = {*known.folders, *now.folders, *known.too_large, *now.too_large}
        self.changed |= {path for path in others if known.state(path) != now.state(path)}

    def _read(self, paths: list[bytes]) -> dict[bytes, tuple[str, bytes] | None]:
        return {path: read_entry(self._root, path) for path in paths}


def read_entry(root: bytes, path: bytes) -> tuple[str, bytes] | None:
    """The name of a file's or link's content, and the content; None when it is gone."""
    full = root + b"/" + path
    try:
        if stat.S_ISLNK(os.lstat(full).st_mode):
            data = os.readlink(full)  # noqa: PTH115 - a name in bytes
        else:
            fd = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(fd, "rb") as file:
                data = file.read()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as error:
        raise CheckpointError(f"{os.fsdecode(full)!r} cannot be read: {error.strerror}") from error
    return content_name(data), data


def content_name(data: bytes) -> str:
    """The name git gives to this content."""
    digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


def state_of(root: bytes, path: bytes, max_bytes: int) -> State:
    """What a path is now; blocking."""
    if not parents_are_folders(root, path):
        return ""
    full = root + b"/" + path.rstrip(b"/")  # with a slash at its end a link would be followed
    try:
        info = os.lstat(full)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    if path.endswith(b"/"):
        return f"{info.st_mode:o}" if stat.S_ISDIR(info.st_mode) else ""
    if not (stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)):
        return ""
    if info.st_size > max_bytes:
        sig: Sig = (info.st_ctime_ns, info.st_size, info.st_ino, info.st_mode)
        return large_state(sig)
    read = read_entry(root, path)
    return "" if read is None else f"{info.st_mode:o} {read[0]}"


def parents_are_folders(root: bytes, path: bytes) -> bool:
    """Whether every folder above the path is a real one: nothing is looked at or written through a link."""
    place = root
    for part in path.rstrip(b"/").split(b"/")[:-1]:
        place += b"/" + part
        try:
            if not stat.S_ISDIR(os.lstat(place).st_mode):
                return False
        except FileNotFoundError:
            return False
    return True


def _batches(paths: list[bytes], found: Scan) -> list[list[bytes]]:
    batches: list[list[bytes]] = []
    size = 0
    for path in paths:
        if not batches or len(batches[-1]) >= _BATCH_FILES or size > _BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(path)
        size += found.files[path][1]
    return batches
