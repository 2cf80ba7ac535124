"""Put paths of a project back to what a snapshot has. Blocking; for a thread."""

# ruff: noqa: PTH101, PTH102, PTH104, PTH106, PTH108, PTH112, PTH211 - names of files are bytes here, as the file system has them

import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hermes.context.checkpoints.capture import parents_are_folders, state_of
from hermes.context.checkpoints.model import ABSENT, State


@dataclass(slots=True)
class RestorePlan:
    """What is to be done: paths with the state they have and the state they get."""

    now: dict[bytes, State]
    then: dict[bytes, State]
    todo: list[bytes] = field(default_factory=list)
    kept: list[bytes] = field(default_factory=list)
    left_out: list[bytes] = field(default_factory=list)

    @property
    def contents(self) -> list[str]:
        """The contents that are needed, each once."""
        wanted = (content_of(self.then.get(path, ABSENT)) for path in self.todo)
        return list(dict.fromkeys(content for content in wanted if content))


def content_of(state: State) -> str:
    """The content's name in a state; empty for a folder and for what is not there."""
    return state.partition(" ")[2]


class Restorer:
    """Does the work in one root: removals first, then folders, then files. What has changed meanwhile is kept."""

    def __init__(self, root: bytes, plan: RestorePlan, max_bytes: int) -> None:
        self._root = root
        self._plan = plan
        self._max_bytes = max_bytes
        self.done: list[bytes] = []

    def clear_way(self) -> None:
        """Take away what the snapshot does not have, deepest first."""
        plan = self._plan
        for path in sorted(plan.todo, reverse=True):
            if plan.then.get(path, ABSENT) != ABSENT or not self._is_as_planned(path):
                continue
            full = self._root + b"/" + path.rstrip(b"/")
            try:
                if path.endswith(b"/"):
                    os.rmdir(full)
                else:
                    os.unlink(full)
            except FileNotFoundError:
                pass
            except OSError:  # a folder that still holds something of the user's
                plan.kept.append(path)
                continue
            self.done.append(path)

    def make_folders(self) -> None:
        """Have the snapshot's folders, outermost first; modes are set at the end."""
        for path in self._wanted(folders=True):
            full = self._root + b"/" + path.rstrip(b"/")
            if not parents_are_folders(self._root, path):
                self._plan.kept.append(path)
            elif not os.path.lexists(full):
                os.mkdir(full, 0o700)
            elif not stat.S_ISDIR(os.lstat(full).st_mode):
                self._plan.kept.append(path)  # something of the user's stands there

    def write(self, content: str, data: bytes) -> None:
        """Put this content wherever the snapshot has it."""
        for path in self._wanted(folders=False):
            if content_of(self._plan.then[path]) == content and path not in self.done:
                self._write_one(path, data)

    def set_modes(self) -> None:
        """Give folders the modes they had, innermost first."""
        for path in reversed(self._wanted(folders=True)):
            full = self._root + b"/" + path.rstrip(b"/")
            if path not in self._plan.kept and os.path.isdir(full):
                os.chmod(full, stat.S_IMODE(int(self._plan.then[path], 8)))
                self.done.append(path)

    def _wanted(self, *, folders: bool) -> list[bytes]:
        then = self._plan.then
        return [path for path in sorted(self._plan.todo) if then.get(path, ABSENT) and path.endswith(b"/") == folders]

    def _write_one(self, path: bytes, data: bytes) -> None:
        if not self._is_as_planned(path) or not parents_are_folders(self._root, path):
            self._plan.kept.append(path)
            return
        full = self._root + b"/" + path
        mode = int(self._plan.then[path].partition(" ")[0], 8)
        fresh = full[: full.rfind(b"/") + 1] + b".hermes-" + secrets.token_hex(6).encode()
        try:
            if stat.S_ISLNK(mode):
                os.symlink(data, fresh)
            else:
                fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
                with os.fdopen(fd, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fchmod(file.fileno(), stat.S_IMODE(mode))
                    os.fsync(file.fileno())
            os.rename(fresh, full)
        except OSError:
            if os.path.lexists(fresh):
                os.unlink(fresh)
            self._plan.kept.append(path)
            return
        self.done.append(path)

    def _is_as_planned(self, path: bytes) -> bool:
        """Whether nobody has touched the path since the plan was made; if so it is kept."""
        planned = self._plan.now.get(path, ABSENT)
        if path.endswith(b"/"):  # its mode tells little, and rmdir takes only what is empty
            return parents_are_folders(self._root, path)
        if state_of(self._root, path, self._max_bytes) == planned:
            return True
        self._plan.kept.append(path)
        return False


def differing(now: Mapping[bytes, State], then: Mapping[bytes, State], only: bytes | None) -> Iterable[bytes]:
    """The paths whose state differs; `only` limits them to one file, or to a folder and what is below it."""
    for path in sorted({*now, *then}):
        if (only is None or is_within(path, only)) and now.get(path, ABSENT) != then.get(path, ABSENT):
            yield path


def is_within(path: bytes, place: bytes) -> bool:
    """Whether `path` is that file or folder, or below it."""
    return path == place or path.startswith(place + b"/")
