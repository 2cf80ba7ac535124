"""Look at every file of a project without opening any. Blocking; for a thread."""

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from hermes.context.checkpoints.checkpoint_paths import SKIPPED_ENDINGS, SKIPPED_FILES, SKIPPED_FOLDERS
from hermes.context.checkpoints.model import CheckpointError, CheckpointLimits, Sig

# A file changed this short before it is looked at may change again within the same tick of the file system's clock.
_RACY_NS = 50_000_000
_KIND = 0o170000
_KEPT = (stat.S_IFREG, stat.S_IFLNK)


@dataclass(slots=True)
class Scan:
    """What is there: files and links by path, folders by path with a slash, and files too large to keep."""

    files: dict[bytes, Sig] = field(default_factory=dict)
    folders: dict[bytes, int] = field(default_factory=dict)  # mode
    too_large: dict[bytes, Sig] = field(default_factory=dict)
    listed: dict[bytes, int] = field(default_factory=dict)  # mtime in ns of each folder that was looked into

    def same_as(self, other: "Scan") -> bool:
        """Whether nothing can have changed between the two."""
        return self.files == other.files and self.folders == other.folders and self.too_large == other.too_large


def look(root: bytes, was: Scan, limits: CheckpointLimits, own_home: bytes) -> Scan:
    """What is there now: the earlier look itself when nothing has changed since."""
    return was if is_unchanged(root, was) else scan(root, limits, own_home)


def is_unchanged(root: bytes, was: Scan) -> bool:
    """Whether all is still as an earlier look has found it.

    Costs one `lstat` a file and lists no folder: what is made, removed or renamed changes the time of its folder.
    """
    lstat = os.lstat
    try:
        for rel, changed in was.listed.items():
            info = lstat(root + b"/" + rel)
            if info.st_mtime_ns != changed or (rel and info.st_mode != was.folders[rel]):
                return False
        for files in (was.files, was.too_large):
            for rel, sig in files.items():
                info = lstat(root + b"/" + rel)
                if (info.st_ctime_ns, info.st_size, info.st_ino, info.st_mode) != sig:
                    return False
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False
    return bool(was.listed)


def look_again(root: bytes, was: Scan, limits: CheckpointLimits, own_home: bytes) -> tuple[Scan, set[bytes]]:
    """What is there now, and the paths that may have changed since `was`. Only folders that have changed are listed."""
    prefix, lstat = root + b"/", os.lstat
    fresh = time.time_ns() - _RACY_NS
    folders: list[tuple[bytes, os.stat_result | None]] = []
    files: list[tuple[bytes, os.stat_result | None]] = []
    for rel, stamp in was.listed.items():
        try:
            info = lstat(prefix + rel[:-1])
        except OSError:
            folders.append((rel, None))
            continue
        if info.st_mtime_ns != stamp or (rel and info.st_mode != was.folders[rel]):
            folders.append((rel, info))
    # Written flat, it runs for every file around each command: whatever changes a file changes one of these two.
    for known in (was.files, was.too_large):
        for rel, sig in known.items():
            try:
                info = lstat(prefix + rel)
            except OSError:
                files.append((rel, None))
                continue
            if info.st_ctime_ns != sig[0] or info.st_ino != sig[2]:
                files.append((rel, info))
    if not folders and not files:
        return was, set()
    now = Scan(dict(was.files), dict(was.folders), dict(was.too_large), dict(was.listed))
    changed = {rel for rel, _ in files}
    for rel, found in files:
        _put(now, rel, found, (limits.max_file_bytes, fresh))
    pending: list[tuple[bytes, bytes]] = []
    for rel, found in folders:
        if found is None or not stat.S_ISDIR(found.st_mode):
            now.listed.pop(rel, None)
            if now.folders.pop(rel, None) is not None:
                changed.add(rel)
            continue
        if rel and found.st_mode != was.folders[rel]:
            now.folders[rel] = found.st_mode
            changed.add(rel)
        if found.st_mtime_ns != was.listed[rel]:
            pending.append((rel, prefix + rel[:-1]))
    _list_again(now, changed, pending, (limits, fresh, own_home))
    return now, changed


def _put(now: Scan, rel: bytes, info: "os.stat_result | None", rules: tuple[int, int]) -> None:
    """Take in one file that has changed, or is gone."""
    most, fresh = rules
    now.files.pop(rel, None)
    now.too_large.pop(rel, None)
    if info is None or info.st_mode & _KIND not in _KEPT:
        return
    when = -fresh if info.st_ctime_ns > fresh else info.st_ctime_ns
    (now.too_large if info.st_size > most else now.files)[rel] = (when, info.st_size, info.st_ino, info.st_mode)


def _list_again(
    now: Scan,
    changed: set[bytes],
    pending: list[tuple[bytes, bytes]],
    rules: tuple[CheckpointLimits, int, bytes],
) -> None:
    """Look for what is new in folders that have changed, and in folders that are new themselves."""
    limits, fresh, own_home = rules
    while pending:
        below, path = pending.pop()
        try:
            stamp = os.lstat(path).st_mtime_ns
            entries = os.scandir(path)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
        now.listed[below] = -fresh if stamp > fresh else stamp
        found = Scan()
        with entries:
            inside = _look(entries, below, found, (limits.max_file_bytes, fresh))
        for rel, folder in inside:
            if folder != own_home and rel not in now.folders:
                now.folders[rel] = found.folders[rel]
                changed.add(rel)
                pending.append((rel, folder))
        for old, new in ((now.files, found.files), (now.too_large, found.too_large)):
            for rel, sig in new.items():
                if rel not in old:
                    old[rel] = sig
                    changed.add(rel)
        if len(now.files) > limits.max_files:
            raise CheckpointError(f"there are more than {limits.max_files} files; what commands change is not kept")


def scan(root: bytes, limits: CheckpointLimits, own_home: bytes) -> Scan:
    """Every file of the project. `CheckpointError` when there are more than the limit."""
    found = Scan()
    fresh = time.time_ns() - _RACY_NS
    pending: list[tuple[bytes, bytes]] = [(b"", root)]
    while pending:
        below, path = pending.pop()
        try:
            changed = os.lstat(path).st_mtime_ns  # before its names are read: what comes later makes another time
            entries = os.scandir(path)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue  # gone meanwhile, or not ours to read: nothing of it can be kept
        found.listed[below] = -fresh if changed > fresh else changed
        with entries:
            for rel, folder in _look(entries, below, found, (limits.max_file_bytes, fresh)):
                if folder != own_home:
                    pending.append((rel, folder))
                else:
                    del found.folders[rel]
        if len(found.files) > limits.max_files:
            raise CheckpointError(f"{os.fsdecode(root)!r} has more than {limits.max_files} files; no snapshot is taken")
    return found


def _look(
    entries: "Iterator[os.DirEntry[bytes]]", below: bytes, found: Scan, rules: tuple[int, int]
) -> list[tuple[bytes, bytes]]:
    """Take in one folder; return the folders in it. Written flat: it runs once per file before every first edit."""
    most, fresh = rules
    files, folders, too_large = found.files, found.folders, found.too_large
    inside: list[tuple[bytes, bytes]] = []
    for entry in entries:
        name = entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                if name not in SKIPPED_FOLDERS and not (b"env" in name and _is_virtualenv(entry)):
                    rel = below + name + b"/"
                    folders[rel] = entry.stat(follow_symlinks=False).st_mode
                    inside.append((rel, entry.path))
                continue
            if name[:4] == b".env" or name[name.rfind(b".") :] in SKIPPED_ENDINGS or name in SKIPPED_FILES:
                continue
            info = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        mode, changed, size = info.st_mode, info.st_ctime_ns, info.st_size
        if mode & _KIND not in _KEPT:
            continue
        # Unsure ones get a number that no other look gives, so that they never seem unchanged.
        sig = (-fresh if changed > fresh else changed, size, info.st_ino, mode)
        if size > most:
            too_large[below + name] = sig
        else:
            files[below + name] = sig
    return inside


def _is_virtualenv(entry: "os.DirEntry[bytes]") -> bool:
    return os.path.exists(entry.path + b"/pyvenv.cfg")  # noqa: PTH110 - a name in bytes
