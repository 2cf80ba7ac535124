"""Git's settings files after each command: what starts nothing is taken over, any other change is dropped and told.

Git replaces a settings file by renaming another over it, which no mount of a single file allows. So commands write the
real one, and what they made of it is looked at before their result is told. Nothing in such a file is run on the way:
it is copied to a folder that commands cannot write, and git reads the copy.
"""

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from hermes.confinement.policy import Confinement
from hermes.errors import ToolError
from hermes.own_git import GitAnswer, OwnGit
from hermes.tools.environments import exact_files
from hermes.tools.git_access.harmless_settings import is_harmless
from hermes.tools.git_access.session_git import GitPerson

_MOST_BYTES = 1 << 20
_MOST_FOLDERS = 400  # of the workspace, that are looked at for repositories made since
_PURPOSE = "settings of a repository"
Settings = dict[str, tuple[str, ...]]


class _Known(Struct, frozen=True):
    """A file as it was left: how to tell cheaply that it changed, what it held, None where there was none."""

    sign: tuple[int, int, int] | None
    data: bytes | None = None
    mode: int = 0o644


class GitConfigGuard:
    """Remembers the settings of the workspace's repositories; called after each command."""

    def __init__(self, person: GitPerson, confinement: Confinement, read: Sequence[str] = ()) -> None:
        """`read` are the files that git reads its settings from; those that commands may write are looked at, too."""
        self._git = OwnGit(person.supervisor, person.environ, person.workspace)
        self._workspace = confinement.workspace
        files = [rule.path for rule in confinement.of_kind("git-config")]
        files += [file for file in read if confinement.may_write(os.path.dirname(file))]  # noqa: PTH120
        self._known = {file: _look(file) for file in (*files, *_made_since(self._workspace))}

    @property
    def files(self) -> tuple[str, ...]:
        """What is looked at."""
        return tuple(self._known)

    async def __call__(self, confinement: Confinement) -> Sequence[str]:
        """Settle every file that changed; a sentence for each from which something was dropped."""
        for file in _made_since(self._workspace):
            self._known.setdefault(file, _Known(None))
        told: list[str] = []
        for file, known in list(self._known.items()):
            if _sign(file) != known.sign:
                told += await self._settle(file, known)
        return told

    async def _settle(self, file: str, known: _Known) -> list[str]:
        try:
            now = _look(file)
        except OSError as error:
            return self._put_back(file, known, f"it is no plain file any more ({error.strerror})")
        if now.data == known.data:
            self._known[file] = now
            return []
        if now.data is None and known.data is not None and not Path(file).parent.exists():
            self._known[file] = now  # the whole repository is gone
            return []
        with tempfile.TemporaryDirectory(prefix="hermes-git-") as folder:
            before = await self._read(known.data or b"", folder)
            after = await self._read(now.data or b"", folder)
            if after is None or before is None:
                return self._put_back(file, known, "git cannot read what a command made of it")
            changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
            dropped = sorted(key for key in changed if not is_harmless(key, after.get(key, ())))
            if not dropped:
                self._known[file] = now
                return []
            kept = {key: after.get(key, ()) for key in changed if key not in dropped}
            merged = await self._merged(known.data or b"", kept, folder)
        names = ", ".join(dropped[:8])
        return self._put_back(file, _Known(None, merged, known.mode), f"{names}: git may start what this names")

    def _put_back(self, file: str, right: _Known, why: str) -> list[str]:
        """Make the file what it should be, by descriptors: a folder above it may be a link by now."""
        try:
            if right.data is None:
                exact_files.remove_exact(file)
            else:
                exact_files.write_exact(file, right.data, right.mode)
            self._known[file] = _look(file)
        except (ToolError, OSError) as error:
            return [f"a change of {file} could not be undone ({error}); tell the user to look at it ({why})"]
        return [f"a change of {file} was dropped ({why}); if it is needed, ask the user to make it"]

    async def _read(self, data: bytes, folder: str) -> Settings | None:
        """The settings in a file's text by key, as git reads them; None when it cannot."""
        copy = _copied(data, folder)
        answer = await self._ask("--file", copy, "--list", "-z")
        if answer.code != 0:
            return None
        found: Settings = {}
        for entry in filter(None, answer.output.decode("utf-8", "surrogateescape").split("\0")):
            key, _, value = entry.partition("\n")
            found[key] = (*found.get(key, ()), value)
        return found

    async def _merged(self, data: bytes, kept: Settings, folder: str) -> bytes:
        copy = _copied(data, folder)
        for key, values in kept.items():
            await self._ask("--file", copy, "--unset-all", key)
            for value in values:
                await self._ask("--file", copy, "--add", key, value)
        with open(copy, "rb") as file:  # noqa: ASYNC230, PTH123 - a small file of our own
            return file.read()

    async def _ask(self, *words: str) -> GitAnswer:
        return await self._git.ask("config", *words, purpose=_PURPOSE)


def _copied(data: bytes, folder: str) -> str:
    """A copy where no command can reach it."""
    copy = Path(folder, "config")
    copy.write_bytes(data)
    return str(copy)


def _look(file: str) -> _Known:
    """Raises `OSError` for what is neither a plain file nor nothing."""
    sign = _sign(file)
    if sign is None:
        return _Known(None)
    fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as handle:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_BYTES:
            raise OSError(errno.EINVAL, "no small plain file", file)
        return _Known(sign, handle.read(), stat.S_IMODE(about.st_mode))


def _sign(file: str) -> tuple[int, int, int] | None:
    try:
        about = os.lstat(file)
    except OSError:
        return None
    return about.st_ino, about.st_ctime_ns, about.st_size


def _made_since(workspace: str) -> Iterator[str]:
    """The settings of repositories at the top of the workspace, and of modules and worktrees: new ones count, too."""
    git = f"{workspace}/.git"
    for folder in (git, *(f"{one}/.git" for one in _folders(workspace))):
        if os.path.lexists(f"{folder}/config"):
            yield f"{folder}/config"
    for inner in ("modules", "worktrees"):
        for folder in _folders(f"{git}/{inner}"):
            for name in ("config", "config.worktree"):
                if os.path.lexists(f"{folder}/{name}"):
                    yield f"{folder}/{name}"


def _folders(folder: str) -> Iterable[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        found = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        return found[:_MOST_FOLDERS]
    return ()
