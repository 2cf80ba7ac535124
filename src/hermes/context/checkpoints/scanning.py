"""Look at every file of a project without opening any. Blocking; for a thread."""

import os
import stat
import time
from dataclasses import dataclass, field

from hermes.context.checkpoints.model import CheckpointError, Limits, Sig
from hermes.context.checkpoints.places import SKIPPED_BEGINNINGS, SKIPPED_ENDINGS, SKIPPED_FILES, SKIPPED_FOLDERS

# A file changed this short before it is looked at may change again within the same tick of the file system's clock.
_RACY_NS = 50_000_000


@dataclass(slots=True)
class Scan:
    """What is there: files and links by path, folders by path with a slash, and files too large to keep."""

    files: dict[bytes, Sig] = field(default_factory=dict)
    folders: dict[bytes, int] = field(default_factory=dict)  # mode
    too_large: dict[bytes, Sig] = field(default_factory=dict)

    def same_as(self, other: "Scan") -> bool:
        """Whether nothing can have changed between the two."""
        return self.files == other.files and self.folders == other.folders and self.too_large == other.too_large


def scan(root: bytes, limits: Limits, own_home: bytes) -> Scan:
    """Every file of the project. `CheckpointError` when there are more than the limit."""
    found = Scan()
    fresh = time.time_ns() - _RACY_NS
    pending: list[tuple[bytes, bytes]] = [(b"", root)]
    while pending:
        below, path = pending.pop()
        try:
            entries = os.scandir(path)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue  # gone meanwhile, or not ours to read: nothing of it can be kept
        with entries:
            for entry in entries:
                _take(entry, below, found, pending, (limits.max_file_bytes, fresh, own_home))
        if len(found.files) > limits.max_files:
            raise CheckpointError(f"{os.fsdecode(root)!r} has more than {limits.max_files} files; no snapshot is taken")
    return found


def _take(
    entry: "os.DirEntry[bytes]",
    below: bytes,
    found: Scan,
    pending: list[tuple[bytes, bytes]],
    rules: tuple[int, int, bytes],
) -> None:
    name = entry.name
    most, fresh, own_home = rules
    if entry.is_dir(follow_symlinks=False):
        if name not in SKIPPED_FOLDERS and entry.path != own_home and not _is_virtualenv(entry, name):
            rel = below + name + b"/"
            found.folders[rel] = entry.stat(follow_symlinks=False).st_mode
            pending.append((rel, entry.path))
        return
    if name in SKIPPED_FILES or name.endswith(SKIPPED_ENDINGS) or name.startswith(SKIPPED_BEGINNINGS):
        return
    try:
        info = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    mode = info.st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        return
    changed = info.st_ctime_ns
    # Unsure ones get a number that no other look gives, so that they never seem unchanged.
    sig = (-fresh if changed > fresh else changed, info.st_size, info.st_ino, mode)
    if info.st_size > most:
        found.too_large[below + name] = sig
    else:
        found.files[below + name] = sig


def _is_virtualenv(entry: "os.DirEntry[bytes]", name: bytes) -> bool:
    return b"env" in name and os.path.exists(entry.path + b"/pyvenv.cfg")  # noqa: PTH110 - bytes
