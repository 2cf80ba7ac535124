"""Where a local session's shell state lies between two commands.

Three folders: `own` is written by the runtime and the login shell alone, `shared` by the commands themselves, `temp` is
their temporary folder. A confined command cannot write to `own`, and nothing in `shared` is believed: it is read
without following links, up to a limit, and never taken outside. Blocking, all of it on small files.
"""

import contextlib
import fcntl
import os
import shlex
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from hermes.config.paths import make_private

# What a command starts from: the state the last one left, the login shell's, or that for the runtime's own commands.
Start: TypeAlias = Literal["session", "outside", "typed", "runtime"]
_MOST_BYTES = 4 << 20
_YOUNG_S = 60.0
_OPEN, _PRIVATE, _LOCK = "hermes-shell-", "shell-", "lock"


class ShellState:
    """The snapshots of one session, numbered by the call that left them; 0 is the login shell's."""

    def __init__(self, folder: Path, *, is_private: bool) -> None:
        self._folder = folder
        self.own, self.shared, self.temp = folder, folder, folder
        if is_private:
            self.own, self.shared, self.temp = folder / "own", folder / "shared", folder / "temp"
            for each in (self.own, self.shared, self.temp):
                each.mkdir(mode=0o700)
            self.temp.chmod(0o1777)  # programs look whether it is as they know it; the folder around it is shut
        self.lock = f"{folder}/{_LOCK}"  # whoever has it locked, shared, uses these folders
        self._locks = [_locked(self.lock)]
        self._present = 0
        self._next = 1
        self._begun: dict[int, int] = {}  # call -> the snapshot it started from
        self._first = self.login  # what the session's first command takes up

    @classmethod
    def make(cls, private_root: Path | None) -> "ShellState":
        """Fresh folders, readable by this user only. `private_root` is a place that no confined command sees.

        What runtimes that were killed have left in the same places goes now.
        """
        _sweep(Path(tempfile.gettempdir()), _OPEN)
        if private_root is None:
            return cls(Path(tempfile.mkdtemp(prefix=_OPEN)), is_private=False)
        make_private(private_root)
        _sweep(private_root, _PRIVATE)
        return cls(Path(tempfile.mkdtemp(prefix=_PRIVATE, dir=private_root)), is_private=True)

    def remove(self) -> None:
        """Let go; the folders go now, or when the last background process that was left running has ended."""
        while self._locks:
            fd = self._locks.pop()
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(self._folder, ignore_errors=True)
            except BlockingIOError:
                pass  # in use; `_sweep` of a later session finds them
            finally:
                os.close(fd)

    @property
    def login(self) -> str:
        """The snapshot of the login shell."""
        return f"{self.own}/snapshot-0"

    @property
    def runtime(self) -> str:
        """The same for the runtime's own commands: without the folders of PATH that the agent may write."""
        return f"{self.own}/snapshot-runtime"

    @property
    def has_moved(self) -> bool:
        """Whether a command has left a state of its own."""
        return self._present > 0

    def add_to_login(self, lines: str) -> None:
        """Have every command that starts from the login shell's state begin with these lines."""
        for name in {self.login, self.runtime, self._first}:
            with open(name, "a", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - a name as text
                file.write(f"\n{lines}")

    def add_inside(self, variables: Mapping[str, str]) -> None:
        """Export these to the session's commands, whatever the login shell says; not to those that run outside."""
        lines = "".join(f"declare -x {name}={shlex.quote(value)}\n" for name, value in variables.items())
        file = self.own / "snapshot-inside"
        file.write_bytes(Path(self.login).read_bytes() + b"\n" + lines.encode("utf-8", "surrogateescape"))
        self._first = str(file)

    def begin(self) -> int:
        """A number for a call, which starts from the present state."""
        number, self._next = self._next, self._next + 1
        self._begun[number] = self._present
        return number

    def files(self, number: int, start: Start) -> tuple[str, str, str]:
        """The snapshot to take up, the one to write, and the file for the folder.

        Outside the sandbox a command starts from the login shell's state: what sandboxed commands have defined must not
        decide what an approved command does. Nor must a program that they have put into a folder of PATH, unless a
        person has typed the command.
        """
        if start in ("outside", "typed"):
            return (self.runtime if start == "outside" else self.login), "/dev/null", f"{self.own}/cwd-{number}"
        if start == "runtime":
            return self.runtime, "/dev/null", "/dev/null"
        return self._snapshot(self._begun[number]), f"{self.shared}/snapshot-{number}", f"{self.shared}/cwd-{number}"

    def end(self, number: int, start: Start) -> str | None:
        """The folder the call ended in, or None when it left no state: it was killed, or replaced itself by `exec`."""
        del self._begun[number]
        file = (self.own if start in ("outside", "typed") else self.shared) / f"cwd-{number}"
        where = (_read(file, 8192) or b"").decode("utf-8", "surrogateescape")
        (self.own / f"command-{number}").unlink(missing_ok=True)
        if not where.endswith("\n") or number < self._present:
            return None
        file.unlink(missing_ok=True)
        if start == "session":
            old, self._present = self._present, number
            if old and old not in self._begun.values():
                (self.shared / f"snapshot-{old}").unlink(missing_ok=True)
        return where[:-1]

    def present(self) -> bytes:
        """The present state, as a shell takes it up."""
        data = _read(Path(self._snapshot(self._present)), _MOST_BYTES)
        return data if data is not None else Path(self._first).read_bytes()

    def _snapshot(self, number: int) -> str:
        return f"{self.shared}/snapshot-{number}" if number else self._first


def _locked(lock: str) -> int:
    """Mark the folder of `lock` as in use while this process lives. Keepers of background children do so, too."""
    fd = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return fd


def _sweep(root: Path, prefix: str) -> None:
    """Remove the folders of this user whose owner is gone: nobody holds the lock in them.

    One that was just made is left alone, since its owner may not have come to lock it yet.
    """
    with os.scandir(root) as entries:
        names = [entry.path for entry in entries if entry.name.startswith(prefix)]
    for name in names:
        with contextlib.suppress(OSError):  # another user's, in use, or another runtime sweeps it, too
            if time.time() - os.stat(name).st_mtime < _YOUNG_S:  # noqa: PTH116
                continue
            fd = os.open(f"{name}/{_LOCK}", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(name, ignore_errors=True)
            finally:
                os.close(fd)


def _read(path: Path, most: int) -> bytes | None:
    """A regular file's bytes, or None: a fifo would make us wait, a link would lead us elsewhere."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return file.read(most)
    return None
