"""What git does not keep, in a text beside the files: exact modes, empty folders, files left out for their size."""

import json
import os
import stat
from collections import Counter
from dataclasses import dataclass, field

from hermes.context.checkpoints.model import State
from hermes.context.checkpoints.scanning import Scan

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
