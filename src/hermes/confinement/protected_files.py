"""Files that commands must leave as they are, where nothing else holds them: compared after each command, put back.

What a mount protects needs none of this. A name that did not exist when the session began cannot be mounted over, a
link cannot either, and at level *files* nothing can.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from hermes.confinement.policy import Confinement, PathRule

_MOST_BYTES = 4 << 20  # of one protected folder or file
_MOST_FILES = 500


class _Entry(Struct, frozen=True):
    """One file, link or folder as it was."""

    mode: int
    data: bytes = b""  # what it holds, or where it leads


class _Memory(Struct):
    """What was at one path: its entries by their names below it, and how to tell cheaply that nothing moved."""

    rule: PathRule
    entries: dict[str, _Entry]
    signs: dict[str, tuple[int, int, int]]
    above: dict[
        str, tuple[int, int]
    ]  # the folders on the way that a command can rename, outermost first: device, inode


class ProtectedFiles:
    """The state of protected files at the start of a session. Blocking; a look costs one `lstat` for each entry."""

    def __init__(self, confined: Confinement, covered: Iterable[str] = ()) -> None:
        """`covered` are the paths that a mount holds already."""
        held = set(covered)
        rules = {rule.path: rule for rule in confined.rules}
        self._memories = [
            _remembered(rule, _folders_above(rule.path, confined))
            for rule in rules.values()
            if rule.kind in ("protected", "self-running", "git-config")
            and rule.access == "read"
            and (rule.path not in held or _has_second_names(rule.path))  # a mount does not hold those
            and confined.may_write(os.path.dirname(rule.path))  # noqa: PTH120
        ]

    @property
    def paths(self) -> tuple[str, ...]:
        """What is looked at."""
        return tuple(memory.rule.path for memory in self._memories)

    def changed(self) -> tuple[PathRule, ...]:
        """The rules whose files are not as they were; nothing is put back."""
        return tuple(memory.rule for memory in self._memories if _signs(memory.rule.path) != memory.signs)

    def accept(self, rule: PathRule) -> None:
        """From now on the present state of `rule.path` is the right one."""
        self._memories = [
            _remembered(rule, each.above) if each.rule.path == rule.path else each for each in self._memories
        ]

    def forget(self, path: str) -> None:
        """Look at `path` no more: something else holds it."""
        self._memories = [each for each in self._memories if each.rule.path != path]

    def put_back(self) -> Sequence[str]:
        """Undo every change; a sentence for each path where there was one."""
        told = []
        for memory in self._memories:
            path = memory.rule.path
            if _signs(path) == memory.signs:
                continue
            if _entries(path) == memory.entries:
                memory.signs = _signs(path)
                continue
            _free_the_way(memory.above)
            _restore(path, memory.entries)
            memory.signs = _signs(path)
            if _entries(path) != memory.entries:
                told.append(f"{path} was changed and could not be put back: {memory.rule.why}")
                continue
            told.append(f"{path} was changed and is put back: {memory.rule.why}; write_file asks the user about it")
        return told


def _remembered(rule: PathRule, above: dict[str, tuple[int, int]]) -> _Memory:
    return _Memory(rule, _entries(rule.path), _signs(rule.path), above)


def _folders_above(path: str, confined: Confinement) -> dict[str, tuple[int, int]]:
    found: list[tuple[str, tuple[int, int]]] = []
    folder = os.path.dirname(path)  # noqa: PTH120
    while confined.may_write(parent := os.path.dirname(folder)) and parent != folder:  # noqa: PTH120
        with contextlib.suppress(OSError):
            state = os.lstat(folder)
            found.append((folder, (state.st_dev, state.st_ino)))
        folder = parent
    return dict(reversed(found))


def _free_the_way(above: dict[str, tuple[int, int]]) -> None:
    """Give each folder on the way its name back where a link or a file stands there now, or nothing.

    Another folder of that name stays: what is protected is put into it. A file in the place of a folder is kept beside
    it, since it may be all that a command made; a link is only a name.
    """
    for folder, known in above.items():
        with contextlib.suppress(OSError):
            if os.path.isdir(folder) and not os.path.islink(folder):  # noqa: PTH112, PTH114
                continue
            if os.path.islink(folder):  # noqa: PTH114
                os.unlink(folder)  # noqa: PTH108
            elif os.path.lexists(folder):
                os.rename(folder, f"{folder}.replaced")  # noqa: PTH104
            parent = os.path.dirname(folder)  # noqa: PTH120
            with os.scandir(parent) as beside:
                moved = [entry.path for entry in beside if entry.inode() == known[1]]
            for path in moved:
                state = os.lstat(path)
                if (state.st_dev, state.st_ino) == known:
                    os.rename(path, folder)  # noqa: PTH104


def _has_second_names(path: str) -> bool:
    """Whether a file there can be written by another name: a hard link."""
    return any(stat.S_ISREG(state.st_mode) and state.st_nlink > 1 for _, state in _walk(path))


def _walk(path: str) -> list[tuple[str, os.stat_result]]:
    """The entry at `path` and all below it, by their names relative to it; links are not followed."""
    try:
        found = [("", os.lstat(path))]
    except OSError:
        return []
    todo = [""] if stat.S_ISDIR(found[0][1].st_mode) else []
    while todo and len(found) < _MOST_FILES:
        folder = todo.pop()
        with contextlib.suppress(OSError), os.scandir(f"{path}/{folder}") as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}" if folder else entry.name
                found.append((name, entry.stat(follow_symlinks=False)))
                if entry.is_dir(follow_symlinks=False):
                    todo.append(name)
    return sorted(found)


def _signs(path: str) -> dict[str, tuple[int, int, int]]:
    # The time of the last change of an entry cannot be set by whoever makes one.
    return {
        name: (state.st_ino, state.st_ctime_ns, state.st_mode)
        for name, state in _walk(path)
        if name or not stat.S_ISDIR(state.st_mode)  # a folder's own time moves with what is made beside it
    }


def _entries(path: str) -> dict[str, _Entry]:
    left = _MOST_BYTES
    found = {}
    for name, state in _walk(path):
        file = f"{path}/{name}" if name else path
        data = b""
        with contextlib.suppress(OSError):
            if stat.S_ISLNK(state.st_mode):
                data = os.fsencode(os.readlink(file))  # noqa: PTH115
            elif stat.S_ISREG(state.st_mode) and state.st_size <= left:
                data = Path(file).read_bytes()
                left -= len(data)
        found[name] = _Entry(state.st_mode, data)
    return found


def _restore(path: str, entries: dict[str, _Entry]) -> None:
    """Make `path` what it was. The folder that holds it is held open meanwhile: a process that a command left behind
    cannot swap it for a link between the look and the write."""
    parent, name = os.path.split(path)
    with contextlib.suppress(OSError):
        os.makedirs(parent, exist_ok=True)  # noqa: PTH103
        folder = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            here = f"/proc/self/fd/{folder}"
            if os.readlink(here) == parent:  # noqa: PTH115
                _restore_entries(f"{here}/{name}", entries)
        finally:
            os.close(folder)


def _restore_entries(path: str, entries: dict[str, _Entry]) -> None:
    now = _entries(path)
    for name in sorted(now.keys() - entries.keys(), reverse=True):
        _remove(f"{path}/{name}" if name else path)
    for name, entry in sorted(entries.items()):
        if now.get(name) == entry:
            continue
        target = f"{path}/{name}" if name else path
        if name in now and (stat.S_IFMT(now[name].mode) != stat.S_IFDIR or stat.S_IFMT(entry.mode) != stat.S_IFDIR):
            _remove(target)
        with contextlib.suppress(OSError):
            _make(target, entry)


def _remove(target: str) -> None:
    with contextlib.suppress(OSError):
        if os.path.isdir(target) and not os.path.islink(target):  # noqa: PTH112, PTH114
            shutil.rmtree(target)
        else:
            os.unlink(target)  # noqa: PTH108


def _make(target: str, entry: _Entry) -> None:
    os.makedirs(target if stat.S_ISDIR(entry.mode) else os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
    if stat.S_ISLNK(entry.mode):
        os.symlink(os.fsdecode(entry.data), target)  # noqa: PTH211
        return
    if stat.S_ISREG(entry.mode):
        # Never through a link that was put there: the name must be free.
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(entry.data)
    os.chmod(target, stat.S_IMODE(entry.mode))  # noqa: PTH101
