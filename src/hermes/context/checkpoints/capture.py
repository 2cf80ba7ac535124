"""Bring what changed in a project into the store. Costs what the change costs; without one, nothing is started."""

import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from hermes.context.checkpoints.git import GitStore, Import
from hermes.context.checkpoints.model import CheckpointError, CheckpointLimits, Sig, State
from hermes.context.checkpoints.records import Known, large_state
from hermes.context.checkpoints.scan import Scan, look

InThread: TypeAlias = Callable[..., Awaitable[Any]]
_BATCH_FILES = 200
_BATCH_BYTES = 16_000_000


class Capture:
    """Takes one project from what is known of it to what is there now."""

    def __init__(self, root: Path, known: Known, limits: CheckpointLimits, in_thread: InThread) -> None:
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


META = b"meta"
FILES = b"files/"


@dataclass(frozen=True, slots=True)
class Meta:
    """Modes by path where they differ from the common ones, folders without files, and what was left out."""

    plain: int = 0o100644
    executable: int = 0o100755
    folder: int = 0o040755
    modes: dict[bytes, int] = field(default_factory=dict)
    empty: frozenset[bytes] = frozenset()
    too_large: frozenset[bytes] = frozenset()

    def mode(self, path: bytes, git_mode: str) -> int:
        """The exact mode of a file that git has under `git_mode`."""
        if git_mode == "120000":
            return self.modes.get(path, stat.S_IFLNK | 0o777)
        return self.modes.get(path, self.executable if git_mode == "100755" else self.plain)


def git_mode(mode: int) -> str:
    """The nearest mode that a git tree can hold."""
    if stat.S_ISLNK(mode):
        return "120000"
    return "100755" if mode & 0o100 else "100644"


def meta_of(found: Scan) -> bytes:
    """The text for a scan; the same for the same facts."""
    plain, executable, links = Counter[int](), Counter[int](), stat.S_IFLNK | 0o777
    for *_, mode in found.files.values():
        if not stat.S_ISLNK(mode):
            (executable if mode & 0o100 else plain)[mode] += 1
    common = {
        "plain": _most(plain, 0o100644),
        "executable": _most(executable, 0o100755),
        "folder": _most(Counter(found.folders.values()), 0o040755),
    }
    usual = {"100644": common["plain"], "100755": common["executable"], "120000": links}
    modes = {path: sig[3] for path, sig in found.files.items() if sig[3] != usual[git_mode(sig[3])]}
    modes.update((path, mode) for path, mode in found.folders.items() if mode != common["folder"])
    filled = {path[: path.rfind(b"/") + 1] for path in found.files}
    ancestors: set[bytes] = set()
    for folder in filled:
        while folder and folder not in ancestors:
            ancestors.add(folder)
            folder = folder[: folder.rfind(b"/", 0, -1) + 1]  # noqa: PLW2901 - climbs
    facts = {
        **common,
        "modes": {os.fsdecode(path): modes[path] for path in sorted(modes)},
        "empty": [os.fsdecode(path) for path in sorted(found.folders.keys() - ancestors)],
        "too_large": [os.fsdecode(path) for path in sorted(found.too_large)],
    }
    return json.dumps(facts, separators=(",", ":")).encode()


def parse_meta(data: bytes) -> Meta:
    """The facts in such a text."""
    facts = json.loads(data)
    return Meta(
        plain=facts["plain"],
        executable=facts["executable"],
        folder=facts["folder"],
        modes={os.fsencode(path): mode for path, mode in facts["modes"].items()},
        empty=frozenset(os.fsencode(path) for path in facts["empty"]),
        too_large=frozenset(os.fsencode(path) for path in facts["too_large"]),
    )


def states(listing: bytes, meta: Meta) -> dict[bytes, State]:
    """Every path of a snapshot with its state, out of what `git ls-tree -r -z` prints."""
    found: dict[bytes, State] = {}
    folders = set(meta.empty)
    for row in listing.split(b"\0"):
        facts, tab, name = row.partition(b"\t")
        if not tab or not name.startswith(FILES):
            continue
        path = name[len(FILES) :]
        mode, _, content = facts.split()
        found[path] = f"{meta.mode(path, mode.decode()):o} {content.decode()}"
        folders.add(path[: path.rfind(b"/") + 1])
    for folder in folders:
        while folder and folder not in found:
            found[folder] = f"{meta.modes.get(folder, meta.folder):o}"
            folder = folder[: folder.rfind(b"/", 0, -1) + 1]  # noqa: PLW2901 - climbs
    return found


def _most(counted: "Counter[int]", otherwise: int) -> int:
    return min(counted, key=lambda mode: (-counted[mode], mode)) if counted else otherwise
